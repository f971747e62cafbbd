# SPDX-License-Identifier: MIT
"""A pod that tries the way to the lead, on a real API server whose nodes are played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from burst_kube.provider import KubeProvider

from burst.errors import Refused
from burst.model.finding import Finding, Level
from tests.kubernetes.bursts import Bursts, attempt, wait_for_number, with_guests
from tests.kubernetes.conftest import account
from tests.kubernetes.rights import grant
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kubernetes
__all__ = ["account"]


def probe(
    bursts: Bursts, provider: KubeProvider, status: int, message: str = ""
) -> Finding:
    """Run a probe whose program ends so, as soon as it runs; nothing is left of it."""

    def hear(line: str) -> None:
        if line.endswith("tries to reach the lead"):
            (pod,) = bursts.objects("pods")
            bursts.end_pod(pod, status, message, "probe")

    (found,) = provider.probe(bursts.lead, hear)
    for kind in ("jobs", "pods"):
        wait_for_number(bursts, kind, 0)
    return found


def test_the_role_of_the_manifests_is_enough(
    bursts: Bursts, account: KubeProvider
) -> None:
    error = attempt(lambda: account.probe(bursts.lead, print))
    assert isinstance(error, Refused)
    assert "may not patch jobs.batch" in error.what
    assert "apply a Role with verb patch on jobs" in error.advice
    grant(bursts, account)
    assert probe(bursts, account, 0).level is Level.OK


def test_for_a_guest_it_owns_what_its_pod_mounts(
    bursts: Bursts, tmp_path: Path
) -> None:
    lead, words = with_guests(bursts.lead, tmp_path)
    provider = bursts.provider(**words)
    kinds = ("jobs", "pods", "secrets", "configmaps")

    def ours() -> list[Any]:
        found = (item for kind in kinds for item in bursts.objects(kind))
        return [o for o in found if o["metadata"]["name"].startswith("burst-probe-")]

    owners: list[str] = []

    def hear(line: str) -> None:
        pods = bursts.objects("pods")
        # Before that, kwok would write over it that the pod runs.
        if pods and pods[0]["status"].get("podIP") and not owners:
            owned = (o["metadata"].get("ownerReferences", []) for o in ours())
            owners.extend(owner["kind"] for refs in owned for owner in refs)
            bursts.end_pod(pods[0], 0, "burst-guest-uid:\n", "probe")

    found = provider.probe(lead, hear, "root")
    assert any("there is no user root there" in finding.what for finding in found)
    # The pod, the Secret and the ConfigMap.
    assert owners == ["Job"] * 3
    wait_until(lambda: not ours(), ours)
