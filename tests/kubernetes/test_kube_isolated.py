# SPDX-License-Identifier: MIT
"""Isolated bursts on a real API server: the objects it takes, their end, their reaping.

That pods run is played by kwok, and their end by the test.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from burst.model.burst import BurstId
from burst.provider import BurstSpec, Phase
from burst.testing import isolate
from tests.kubernetes.bursts import Bursts, bring_up, reap_all, wait_status
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kubernetes
KINDS = ("jobs", "pods", "configmaps", "secrets", "services")


@pytest.fixture
def spec(bursts: Bursts) -> BurstSpec:
    return isolate(
        msgspec.structs.replace(bursts.spec, burst_id=BurstId("burst-iso-0a1b2c"))
    )


def ours(bursts: Bursts, spec: BurstSpec) -> dict[str, list[Any]]:
    """Return the burst's objects by kind."""
    key = "burst.flux-framework.org/id"
    return {
        kind: [
            item
            for item in bursts.objects(kind)
            if item["metadata"].get("labels", {}).get(key) == spec.burst_id
        ]
        for kind in KINDS
    }


def lead_pod(bursts: Bursts, spec: BurstSpec) -> Any:
    index = "batch.kubernetes.io/job-completion-index"
    pods = ours(bursts, spec)["pods"]
    (found,) = [p for p in pods if p["metadata"]["labels"][index] == "0"]
    return found


def test_a_lead_that_fails_is_not_made_again(bursts: Bursts, spec: BurstSpec) -> None:
    provider = bursts.provider()
    bring_up(provider, spec)
    lead = lead_pod(bursts, spec)
    bursts.end_pod(lead, 1)
    status = wait_status(provider, lambda s: s.phase is Phase.FAILED)
    assert "ended without a result: exit status 1" in status.why

    def counted() -> bool:
        (job,) = ours(bursts, spec)["jobs"]
        return bool(job["status"].get("failedIndexes") == "0")

    wait_until(counted, lambda: ours(bursts, spec)["jobs"])
    assert lead_pod(bursts, spec)["metadata"]["uid"] == lead["metadata"]["uid"]
    assert len(ours(bursts, spec)["pods"]) == 2
    reap_all(provider, spec)
