# SPDX-License-Identifier: MIT
"""Each job starts where it delays none before it, as Fluxion's conservative does."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from burst.core.worth.conservative import Profile, simulate_conservative
from burst.core.worth.queue_model import BACKFILL_DEPTH, Scheduling, simulate_queue
from burst.model.jobid import JobId
from burst.model.scheduler import Order

NOW = 1000.0
NO_JOB = JobId(0)


def starts(
    free: int,
    running: Sequence[tuple[int, float]],
    *queue: tuple[int, float],
    order: Order = Order.CONSERVATIVE,
) -> list[float]:
    """Return in how many seconds each job starts; jobs as (cores, seconds)."""
    ends = sorted((NOW + s, c, JobId(n)) for n, (c, s) in enumerate(running, 1))
    found = simulate_queue(NOW, free, ends, queue, Scheduling(order))
    return [start - NOW for start, _ in found]


def test_a_job_passes_where_it_delays_none_before_it() -> None:
    # The first waits for the end at 50, the second for that of the first at 60. The
    # third would end at 55 and delay the second, whose cores it would have by then.
    jobs = [(8, 10.0), (10, 5.0), (2, 65.0), (2, 55.0)]
    assert starts(2, [(8, 50)], *jobs) == [50, 60, 65, 0]
    # With EASY only the first is safe: the third delays the second by 5 seconds.
    assert starts(2, [(8, 50)], *jobs, order=Order.EASY) == [50, 65, 0, 70]


def test_a_gap_is_used_by_what_fits_into_it() -> None:
    assert starts(0, [(4, 10), (6, 30)], (10, 5), (4, 20), (4, 21)) == [30, 10, 35]


def test_what_never_ends_and_what_is_too_large_never_starts() -> None:
    found = starts(2, [(4, math.inf), (4, 10)], (11, 1), (7, 1), (6, 1), (6, math.inf))
    assert found == [math.inf, math.inf, 10, 11]
    assert starts(4, [], (4, math.inf), (1, 1)) == [0, math.inf]


def test_it_is_told_by_whose_end_a_job_starts() -> None:
    ends = [(NOW - 5, 2, JobId(7)), (NOW + 50, 8, JobId(8))]
    scheduling = Scheduling(Order.CONSERVATIVE)
    queue = [(2, 10.0), (10, 10.0), (1, 1.0), (10, 1.0)]
    assert simulate_queue(NOW, 0, ends, queue, scheduling) == [
        (NOW, JobId(7)),
        (NOW + 50, JobId(8)),
        (NOW + 10, JobId(7)),
        (NOW + 60, JobId(8)),
    ]


def test_what_leaves_the_queue_is_in_nobodys_way() -> None:
    leaves = Scheduling(Order.CONSERVATIVE, lambda place, _, __: place == 0)
    ends = [(NOW + 50, 8, JobId(1))]
    found = simulate_queue(NOW, 2, ends, [(10, 9.0), (10, 9.0)], leaves)
    assert [start - NOW for start, _ in found] == [50, 50]


def test_no_job_passes_more_than_so_many() -> None:
    told: list[float] = []

    def goes(_index: int, start: tuple[float, JobId]) -> bool:
        told.append(start[0])
        return False

    profile = Profile(0.0, 2, [(10.0, 8, JobId(1))])
    simulate_conservative(profile, [(10, 5.0)] * 3 + [(2, 1.0)], 2, goes)
    # It fits now, and the first is as far before it as a job may pass.
    assert told == [10, 15, 20, 10 + 15]


@given(st.lists(st.tuples(st.integers(1, 10), st.integers(1, 50)), max_size=25))
def test_no_job_delays_one_before_it(queue: list[tuple[int, int]]) -> None:
    jobs = [(cores, float(run)) for cores, run in queue]
    assert len(jobs) < BACKFILL_DEPTH
    whole = starts(4, [(6, 30)], *jobs)
    for length in range(len(jobs)):
        assert starts(4, [(6, 30)], *jobs[:length]) == whole[:length]
