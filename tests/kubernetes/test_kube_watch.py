# SPDX-License-Identifier: MIT
"""Watches of a real API server: what is told, and what is asked for."""

from __future__ import annotations

import pytest

from burst.errors import NotFound, Transient
from burst.model.burst import BurstId
from burst.provider import Phase
from tests.kubernetes.bursts import Bursts, attempt, reap_all, wait_status
from tests.kubernetes.proxy import Fault, Proxy
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kubernetes


def lists(proxy: Proxy) -> int:
    return sum("limit=500" in path for _, path in proxy.seen)


def test_a_burst_comes_and_goes_without_a_list(bursts: Bursts, proxy: Proxy) -> None:
    provider = bursts.provider(kubeconfig=str(proxy.kubeconfig))
    for _ in range(2):
        assert provider.observe() == []
    watched = sum("watch=true" in path for _, path in proxy.seen)
    assert watched == 2, "jobs and pods"
    other = bursts.provider()
    other.provision(bursts.spec)
    before = [path for _, path in proxy.seen if "limit=500" in path]
    wait_status(provider, lambda status: status.phase is Phase.RUNNING)
    reap_all(other, bursts.spec)
    wait_until(lambda: not provider.observe(), provider.observe)
    after = [path for _, path in proxy.seen if "limit=500" in path]
    assert not [path for path in after[len(before) :] if "/events" not in path]


def test_the_same_name_again_is_another_pod(bursts: Bursts) -> None:
    """As of a Job that makes a pod in place of one that was deleted."""
    provider = bursts.provider()
    provider.provision(bursts.spec)
    wait_status(provider, lambda status: status.phase is Phase.RUNNING)
    reap_all(provider, bursts.spec)
    provider.provision(bursts.spec)
    assert [status.burst_id for status in provider.observe()] == [bursts.spec.burst_id]
    wait_status(provider, lambda status: status.phase is Phase.RUNNING)
    reap_all(provider, bursts.spec)


def test_a_way_that_is_lost_is_told_at_once(bursts: Bursts, proxy: Proxy) -> None:
    provider = bursts.provider(kubeconfig=str(proxy.kubeconfig))
    provider.provision(bursts.spec)
    wait_status(provider, lambda status: status.phase is Phase.RUNNING)
    proxy.faults.append(Fault("GET", "", drop=True))
    proxy.cut_watches()
    for _ in range(2):
        assert isinstance(attempt(provider.observe), Transient)
    proxy.faults.clear()
    reap_all(bursts.provider(), bursts.spec)
    wait_until(lambda: not provider.observe(), provider.observe)


def test_a_version_that_is_gone_is_listed_again(bursts: Bursts, proxy: Proxy) -> None:
    provider = bursts.provider(kubeconfig=str(proxy.kubeconfig))
    provider.provision(bursts.spec)
    wait_status(provider, lambda status: status.phase is Phase.RUNNING)
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    provider.observe()
    wait_until(lambda: len(proxy.relays) == 4, "both sides of both watches")
    proxy.faults.append(Fault("GET", "watch=true", status=410, body=gone))
    listed = lists(proxy)
    proxy.cut_watches()
    (status,) = provider.observe()
    assert status.phase is Phase.RUNNING
    assert lists(proxy) == listed + 2
    reap_all(provider, bursts.spec)


def test_with_the_role_of_before_all_is_listed(bursts: Bursts, proxy: Proxy) -> None:
    """Without `watch` in it."""
    denied = {
        "kind": "Status",
        "reason": "Forbidden",
        "message": "pods is forbidden: User cannot watch resource",
    }
    proxy.faults.append(Fault("GET", "watch=true", status=403, body=denied))
    provider = bursts.provider(kubeconfig=str(proxy.kubeconfig))
    provider.provision(bursts.spec)
    wait_status(provider, lambda status: status.phase is Phase.RUNNING)
    before = lists(proxy)
    provider.observe()
    assert lists(proxy) == before + 2
    reap_all(provider, bursts.spec)
    assert provider.observe() == []
    none = attempt(lambda: provider.reap(BurstId("burst-0-000000")))
    assert isinstance(none, NotFound)
