# SPDX-License-Identifier: MIT
"""A pod on a dead node, which no kubelet ends, does not keep its burst for ever.

Kubernetes itself deletes pods of nodes that do not exist, a minute later (its collector
does not run here), and waits for those of nodes that are not ready.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from burst.errors import NotFound
from burst.kits.pods import PodBursts
from burst.provider import Phase
from tests.kubernetes.bursts import (
    Bursts,
    attempt,
    finds_no_nodes,
    wait_for_number,
    wait_status,
)
from tests.support.pod_words import pod_words
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kubernetes
NODE = "not-there"


def seen_at(bursts: Bursts, clock: Callable[[], float]) -> PodBursts:
    """Return the same bursts as seen by another clock."""
    provider = bursts.provider()
    cluster = provider.bursts().cluster
    return PodBursts(cluster, bursts.settings, provider.tags, clock=clock)


def later(bursts: Bursts) -> PodBursts:
    """Return the same bursts as seen when the pods are overdue."""
    return seen_at(bursts, lambda: time.time() + 120)


def wait_gone(found: PodBursts, bursts: Bursts) -> None:
    def gone() -> bool:
        error = attempt(lambda: found.reap(bursts.spec.burst_id))
        return isinstance(error, NotFound)

    wait_until(gone, found.observe)


def test_on_a_node_that_is_gone(bursts: Bursts) -> None:
    nowhere = {"node.kubernetes.io/instance-type": "none"}
    provider = bursts.provider(pod=pod_words(nodeSelector=nowhere))
    provider.provision(bursts.spec)
    wait_status(provider, finds_no_nodes)
    for pod in bursts.objects("pods"):
        bursts.bind(pod["metadata"]["name"], NODE)
    provider.reap(bursts.spec.burst_id)
    status = wait_status(provider, lambda status: status.phase is Phase.ENDING)
    assert len(status.followers) == 2
    # Before they are overdue, however long all this takes.
    seen_at(bursts, lambda: 0.0).reap(bursts.spec.burst_id)
    assert len(bursts.objects("pods")) == 2
    wait_gone(later(bursts), bursts)
    for kind in ("pods", "secrets"):
        wait_for_number(bursts, kind, 0)


@pytest.mark.parametrize("made_as", [1, 2])
def test_a_shrink_from_a_node_that_is_gone(bursts: Bursts, made_as: int) -> None:
    """Whether the pod is of the first Job or of that of a growth."""
    one = replace(bursts.spec, hosts=bursts.spec.hosts[:1], ranks=bursts.spec.ranks[:1])
    small = {"node.kubernetes.io/instance-type": "no"}
    provider = bursts.provider(pod=pod_words(nodeSelector=small))
    provider.provision(one if made_as == 1 else bursts.spec)
    provider.resize(bursts.spec)
    wait_until(lambda: len(bursts.objects("pods")) == 2, provider.observe)
    wait_status(provider, lambda status: "finds no node" in status.why)
    for pod in bursts.objects("pods"):
        bursts.bind(pod["metadata"]["name"], NODE)
    provider.resize(one)
    found = later(bursts)
    left = bursts.spec.hosts[1]

    def is_listed() -> bool:
        (status,) = found.observe()
        return left in {follower.host for follower in status.followers}

    assert is_listed()
    why = f"its node {NODE} may be dead"
    wait_until(lambda: why in str(found.observe()), found.observe)

    def gone() -> bool:
        found.resize(one)
        return not is_listed()

    wait_until(gone, found.observe)
    (pod,) = bursts.objects("pods")
    assert "deletionTimestamp" not in pod["metadata"]
    provider.reap(one.burst_id)
    wait_gone(found, bursts)
