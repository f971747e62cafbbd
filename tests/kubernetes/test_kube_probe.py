# SPDX-License-Identifier: MIT
"""A pod that tries the way to the lead, on a real API server whose nodes are played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from burst_kube.provider import KubeProvider

from burst.errors import Refused
from tests.kubernetes.bursts import Bursts, attempt, with_guests
from tests.kubernetes.rights import grant
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kubernetes


def test_with_the_role_of_the_manifests_it_runs_and_owns_what_its_pod_mounts(
    bursts: Bursts, account: KubeProvider, tmp_path: Path
) -> None:
    """For a guest: without one it mounts nothing."""
    error = attempt(lambda: account.probe(bursts.lead, print))
    assert isinstance(error, Refused)
    assert "may not patch jobs.batch" in error.what
    assert "apply a Role with verb patch on jobs" in error.advice
    grant(bursts, account)
    lead, words = with_guests(bursts.lead, tmp_path)
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

    found = bursts.provider(**words).probe(lead, hear, "root")
    assert any("there is no user root there" in finding.what for finding in found)
    # The pod, the Secret and the ConfigMap.
    assert owners == ["Job"] * 3
    wait_until(lambda: not ours(), ours)
