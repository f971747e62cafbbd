# SPDX-License-Identifier: MIT
"""Each job starts where it delays none before it, as Fluxion's conservative does."""

import math

from hypothesis import given
from hypothesis import strategies as st

from burst.core.forecast.conservative import End, Profile, simulate_conservative
from burst.core.forecast.queue_order import BACKFILL_DEPTH, Scheduling, simulate_queue
from burst.core.plan.fit import NodePool
from burst.model.jobid import JobId
from burst.model.scheduler import Order
from burst.model.shape import Shape
from tests.builders import whole
from tests.core.forecast.rooms import NOW, Jobs, one_node, running_on, waits


def starts(
    free: int,
    running: Jobs,
    *queue: tuple[int, float],
    order: Order = Order.CONSERVATIVE,
) -> list[float]:
    """Return in how many seconds each job starts."""
    room = one_node(free)
    ends = running_on(running)
    queued = [waits(*job) for job in queue]
    found = simulate_queue(NOW, room, ends, queued, Scheduling(order))
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


def test_what_never_ends_never_starts_and_blocks_nobody() -> None:
    found = starts(2, [(4, math.inf), (4, 10)], (7, 1), (6, 1), (6, math.inf))
    assert found == [math.inf, 10, 11]
    assert starts(4, [], (4, math.inf), (1, 1)) == [0, math.inf]


def test_it_is_told_by_whose_end_a_job_starts() -> None:
    ends = [*running_on([(2, -5)], 7), *running_on([(8, 50)], 8)]
    scheduling = Scheduling(Order.CONSERVATIVE)
    queue = [waits(2, 10), waits(10, 10), waits(1, 1), waits(10, 1)]
    assert simulate_queue(NOW, one_node(0), ends, queue, scheduling) == [
        (NOW, JobId(7)),
        (NOW + 50, JobId(8)),
        (NOW + 10, JobId(7)),
        (NOW + 60, JobId(8)),
    ]


def test_what_leaves_the_queue_is_in_nobodys_way() -> None:
    leaves = Scheduling(Order.CONSERVATIVE, lambda place, _: place == 0)
    queue = [waits(10, 9), waits(10, 9)]
    found = simulate_queue(NOW, one_node(2), running_on([(8, 50)]), queue, leaves)
    assert [start - NOW for start, _ in found] == [50, 50]


def test_no_job_passes_more_than_so_many() -> None:
    profile = Profile(NOW, one_node(2), running_on([(8, 10)]))
    queue = [*[waits(10, 5)] * 3, waits(2, 1)]
    found = simulate_conservative(profile, queue, 2)
    # It fits now, and the first is as far before it as a job may pass.
    assert [start - NOW for start, _ in found] == [10, 15, 20, 10 + 15]


def test_a_job_has_the_same_nodes_for_as_long_as_it_runs() -> None:
    # One node is free now and the other later, and never one of them for so long.
    nodes = {0: Shape(4), 1: Shape(4)}
    room = NodePool({0: Shape(4), 1: Shape(0)}, nodes)
    ends = [End(NOW + 10, 1, JobId(1), {1: Shape(4)})]
    on_the_second = frozenset({1})
    queue = [
        waits(1, 0, whole(2))._replace(run_time=10.0),
        waits(1, 5, whole(1)),
        waits(1, 15, whole(1)),
        waits(1, 11, whole(1), on_the_second),
    ]
    scheduling = Scheduling(Order.CONSERVATIVE)
    found = simulate_queue(NOW, room, ends, queue, scheduling)
    assert [start - NOW for start, _ in found] == [10, 0, 20, 20]


@given(st.lists(st.tuples(st.integers(1, 10), st.integers(1, 50)), max_size=25))
def test_no_job_delays_one_before_it(queue: list[tuple[int, int]]) -> None:
    jobs = [(cores, float(run)) for cores, run in queue]
    assert len(jobs) < BACKFILL_DEPTH
    whole = starts(4, [(6, 30)], *jobs)
    for length in range(len(jobs)):
        assert starts(4, [(6, 30)], *jobs[:length]) == whole[:length]
