# SPDX-License-Identifier: MIT
"""Burst jobs in one asynchronous batch: what the scheduler gets of them.

Half are larger than the instance, half small but for lent nodes only, which never come.
"""

from __future__ import annotations

import pytest

from benchmarks.blocking import bench

pytestmark = pytest.mark.flux

# `benchmarks.blocking --race` has more.
JOBS = 400


def test_of_a_batch_none_is_denied_and_none_started_on_own_nodes() -> None:
    """In the other modes Flux gets them held, or in a queue that is stopped."""
    with bench("scheduler") as place:
        found = place.race(JOBS)
    assert found.jobs == JOBS
    assert (found.denied, found.started) == (0, 0)
