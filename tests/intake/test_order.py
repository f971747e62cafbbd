# SPDX-License-Identifier: MIT
"""Without burst jobs, sched-burst does what the scheduler does that it is made of."""

from __future__ import annotations

import pytest

from benchmarks.order import measure

pytestmark = pytest.mark.flux


JOBS = 200


@pytest.mark.parametrize(("policy", "guests"), [("fifo", True), ("backfill", False)])
def test_a_recorded_workload_gets_the_same_nodes_in_the_same_order(
    policy: str, guests: bool
) -> None:
    found = measure(JOBS, policy, rounds=1, guests=guests)
    assert found["identical"]
    assert found["started"] == JOBS
