# SPDX-License-Identifier: MIT
"""When the lease of a burst ends, by the objects that there are of it."""

from datetime import UTC, datetime

import pytest

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.names import LEASE
from burst.kits.pods.status.owned import group_by_owner
from burst.kits.pods.template.render import render
from burst.provider import BurstSpec
from tests.kits.pods import SETTINGS, TAGS, replace

NOW = 1_800_000_000.0


def created(objects: list[Manifest], at: float) -> list[Manifest]:
    """Have the API server make them, by its own clock."""
    for item in objects:
        time = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        item["metadata"]["creationTimestamp"] = time
    return objects


@pytest.mark.parametrize("off", [0.0, -7200.0, 7200.0])
def test_a_lease_ends_by_the_clock_of_the_api_server(
    spec: BurstSpec, off: float
) -> None:
    """Else `burst gc --expired` would delete what lives, had the daemon's been slow."""
    leased = replace(spec, lease_end=NOW + off + 600.0)
    objects = created(render(leased, SETTINGS, TAGS, NOW + off), NOW)
    (found,) = group_by_owner(objects)
    assert (found.burst_id, found.lease_end) == (spec.burst_id, NOW + 600.0)
    pod = {**objects[-1]["spec"]["template"], "kind": "Pod"}
    (found,) = group_by_owner([*objects, *created([pod], NOW + 500.0)])
    assert found.lease_end == NOW + 600.0


@pytest.mark.parametrize("edited", ["soon", None])
def test_one_without_a_lease_or_that_somebody_edited_never_expires(
    spec: BurstSpec, edited: str | None
) -> None:
    leased = replace(spec, lease_end=NOW + 600.0 if edited else 0.0)
    objects = created(render(leased, SETTINGS, TAGS, NOW), NOW)
    for item in objects if edited else ():
        item["metadata"]["annotations"][LEASE] = edited
    (found,) = group_by_owner(objects)
    assert (found.burst_id, found.lease_end) == (spec.burst_id, 0.0)
