# SPDX-License-Identifier: MIT
"""What a person deletes, or takes labels from, is told as that, and nothing stays."""

from __future__ import annotations

import pytest

from burst.kits.kube.kinds import name_of
from burst.kits.pods.names import OWNER
from tests.kubernetes.bursts import (
    Bursts,
    bring_up,
    reap_all,
    resize_all,
    sized,
    wait_for_number,
    wait_status,
)

pytestmark = pytest.mark.kubernetes


def strip(bursts: Bursts, name: str) -> None:
    """Take the owner's label from a Job."""
    path = bursts.job(name)
    bursts.api.patch(path, {"metadata": {"labels": {OWNER: None}}})


@pytest.mark.parametrize("stripped", ["main", "growth", "both"])
def test_a_job_without_its_owner_is_reaped_all_the_same(
    bursts: Bursts, stripped: str
) -> None:
    provider = bursts.provider()
    one, two = sized(bursts, "burst-0-0"), sized(bursts, "burst-0-[0-1]")
    bring_up(provider, one)
    resize_all(provider, two)
    names = sorted(map(name_of, bursts.objects("jobs")))
    for name in {"main": names[:1], "growth": names[1:], "both": names}[stripped]:
        strip(bursts, name)
    if stripped == "both":
        words = "labels of burst were removed from it"
        wait_status(provider, lambda status: words in status.why)
    reap_all(provider, two)
    for kind in ("jobs", "pods", "secrets"):
        wait_for_number(bursts, kind, 0)
