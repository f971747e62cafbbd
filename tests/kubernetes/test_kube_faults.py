# SPDX-License-Identifier: MIT
"""An API server that fails, hangs, forgets or lies, with a real one behind it."""

from __future__ import annotations

import pytest
from burst_kube.provider import KubeProvider

from burst.errors import NotFound, Transient
from tests.kubernetes.bursts import (
    Bursts,
    attempt,
    bring_up,
    reap_all,
    wait_for_number,
)
from tests.kubernetes.proxy import Fault, Proxy

pytestmark = pytest.mark.kubernetes


@pytest.fixture
def provider(bursts: Bursts, proxy: Proxy) -> KubeProvider:
    return bursts.provider(kubeconfig=str(proxy.kubeconfig))


def test_one_that_hangs_is_left_in_time(bursts: Bursts, proxy: Proxy) -> None:
    provider = bursts.provider(kubeconfig=str(proxy.kubeconfig), timeout=0.5)
    proxy.faults.append(Fault("GET", ".", silent=True))
    error = attempt(provider.observe)
    assert isinstance(error, Transient)
    assert "does not answer in time" in error.what


def test_a_list_from_before_does_not_pass_for_gone(
    bursts: Bursts, proxy: Proxy, provider: KubeProvider
) -> None:
    proxy.stale = "labelSelector"
    assert isinstance(attempt(lambda: provider.reap(bursts.spec.burst_id)), NotFound)
    provider.provision(bursts.spec)
    assert attempt(lambda: provider.reap(bursts.spec.burst_id)) is None
    reap_all(provider, bursts.spec)
    assert bursts.objects("jobs") == []
    # The Job's controller may make a pod as its Job goes. Kubernetes deletes it and the
    # Secret as their owner is gone; that they are there is seen by no stale list.
    for kind in ("pods", "secrets"):
        wait_for_number(bursts, kind, 0)


def test_a_deletion_that_did_nothing_is_not_believed(
    bursts: Bursts, proxy: Proxy, provider: KubeProvider
) -> None:
    bring_up(provider, bursts.spec)
    lie = Fault("DELETE", ".", 200, {"kind": "Status", "status": "Success"})
    proxy.faults.append(lie)
    for _ in range(3):
        assert attempt(lambda: provider.reap(bursts.spec.burst_id)) is None
    assert len(bursts.objects("pods")) == 2
    proxy.faults.clear()
    reap_all(provider, bursts.spec)
    wait_for_number(bursts, "pods", 0)
