# SPDX-License-Identifier: MIT
"""Without burst jobs, sched-burst does what the scheduler does that it is made of."""

from __future__ import annotations

import pytest

from benchmarks.order import measure
from tests.flux_instance import FLUX, MISSING

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]


@pytest.mark.parametrize("guests", [False, True])
@pytest.mark.parametrize(("policy", "jobs"), [("fifo", 600), ("backfill", 200)])
def test_a_recorded_workload_gets_the_same_nodes_in_the_same_order(
    policy: str, jobs: int, guests: bool
) -> None:
    found = measure(jobs, policy, rounds=1, guests=guests)
    assert found["identical"]
    assert found["started"] == jobs
