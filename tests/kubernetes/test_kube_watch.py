# SPDX-License-Identifier: MIT
"""Watches of a real API server: what is told, and what is asked for.

What breaks one is played in `tests/kits/test_kube_watch.py`.
"""

from __future__ import annotations

import pytest

from burst.errors import NotFound
from burst.provider import Phase
from tests.kubernetes.bursts import Bursts, attempt, wait_status
from tests.kubernetes.proxy import Proxy
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kubernetes


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

    def gone() -> bool:
        # One that is not asked for long would have to list.
        provider.observe()
        return isinstance(attempt(lambda: other.reap(bursts.spec.burst_id)), NotFound)

    wait_until(gone, other.observe)
    wait_until(lambda: not provider.observe(), provider.observe)
    after = [path for _, path in proxy.seen if "limit=500" in path]
    assert not [path for path in after[len(before) :] if "/events" not in path]
