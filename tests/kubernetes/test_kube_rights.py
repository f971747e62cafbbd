# SPDX-License-Identifier: MIT
"""With the rights of manifests/ all goes; without, it is said which is lacking."""

from __future__ import annotations

import time

import msgspec
import pytest
from burst_kube.provider import KubeProvider

from burst.errors import Refused
from burst.model.finding import Level
from burst.provider import BurstSpec, Event
from tests.kubernetes.bursts import (
    Bursts,
    attempt,
    bring_up,
    reap_all,
    resize_all,
)
from tests.kubernetes.operator import PlayedOperator
from tests.kubernetes.rights import grant, grant_operator

pytestmark = pytest.mark.kubernetes


def test_the_role_of_the_manifests_is_enough(
    bursts: Bursts, account: KubeProvider
) -> None:
    """To look, make, resize, tell of and delete; without it, what lacks is told."""
    error = attempt(account.observe)
    assert isinstance(error, Refused)
    assert f"may not list jobs.batch in namespace {bursts.namespace}" in error.what
    assert "verb list on jobs" in error.advice
    (lacking,) = (f for f in account.examine(None) if f.level is Level.WRONG)
    for right in ("create secrets", "delete jobs.batch", "get pods/log", "list events"):
        assert right in lacking.what
    grant(bursts, account)
    found = {finding.what for finding in account.examine(None)}
    accepted = "the API server accepts the Job of nodes"
    standard = "pods comply with the Pod Security Standard restricted"
    assert {accepted, standard} <= found
    assert "may not create events" not in str(found)
    _live(bursts.provider(names=True), bursts.spec)


@pytest.mark.usefixtures("miniclusters")
def test_the_role_of_the_manifests_is_enough_with_an_operator(
    bursts: Bursts, account: KubeProvider
) -> None:
    grant(bursts, account)
    provider = bursts.provider(form="operator")
    (lacking,) = (f for f in provider.examine(None) if f.level is Level.WRONG)
    assert "get miniclusters" in lacking.what
    assert "manifests/parts/miniclusters" in lacking.advice
    grant_operator(bursts, provider)
    with PlayedOperator(bursts.api, bursts.namespace):
        _live(provider, bursts.spec)


def _live(provider: KubeProvider, spec: BurstSpec) -> None:
    """Have a burst made, grow, shrink and be deleted."""
    bring_up(provider, spec)
    provider.record_event(spec.burst_id, Event(time.time(), "online"), "it is online")
    hosts = (*spec.hosts, spec.lead.hosts[spec.ranks[-1] + 1])
    ranks = (*spec.ranks, spec.ranks[-1] + 1)
    for count in (3, 2, 1):
        kept = {"hosts": hosts[:count], "ranks": ranks[:count]}
        resize_all(provider, msgspec.structs.replace(spec, **kept))
    reap_all(provider, spec)
