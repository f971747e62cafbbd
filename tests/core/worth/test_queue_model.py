# SPDX-License-Identifier: MIT
"""When pending jobs start, by a simulation of the queue."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.core.worth.estimate import StartEstimate
from burst.core.worth.history import RunTime
from burst.core.worth.queue_model import (
    BACKFILL_DEPTH,
    End,
    QueueJob,
    Scheduling,
    estimate_starts,
    simulate_queue,
)
from burst.model.jobid import JobId
from burst.model.scheduler import Order

NOW = 1000.0
BUSY = JobId(1)


def exactly(seconds: float) -> RunTime:
    """A run time that is known."""
    return RunTime(seconds, seconds, seconds)


def at(seconds: float, after: int | None = BUSY) -> StartEstimate:
    """A start that many seconds from now, after a job."""
    when = NOW + seconds
    return StartEstimate(
        expected=when,
        latest=when,
        earliest=when,
        after=None if after is None else JobId(after),
    )


def starts(
    order: Order, running: Sequence[tuple[int, float]], *waiting: tuple[int, float]
) -> list[StartEstimate]:
    """Estimates on ten cores; jobs as (cores, seconds), ids from 1."""
    jobs = [
        QueueJob(JobId(number), cores, exactly(seconds))
        for number, (cores, seconds) in enumerate([*running, *waiting], 1)
    ]
    free = 10 - sum(cores for cores, _ in running)
    busy, queue = jobs[: len(running)], jobs[len(running) :]
    found = estimate_starts(NOW, free, busy, queue, Scheduling(order))
    assert list(found) == [job.job for job in queue]
    return list(found.values())


def test_what_fits_starts_now() -> None:
    assert starts(Order.FIFO, [(4, 50)], (6, 10), (4, 10)) == [
        at(0, None),
        at(10, None),
    ]


def test_first_come_first_served() -> None:
    # The last two would fit at once.
    found = starts(Order.FIFO, [(6, 50), (2, 80)], (8, 10), (1, 10), (2, 10))
    assert found == [at(50), at(60, 1), at(60, 1)]


def test_backfill_before_the_first_and_beside_it() -> None:
    found = starts(
        Order.EASY,
        [(6, 50), (2, 80)],
        (7, 10),
        (2, 51),  # too long, and too many to run beside the first
        (1, 999),  # beside the first
        (1, 50),  # ends before it
        (1, 20),  # none is free before the first one ends
    )
    assert found == [at(50), at(60), at(0, None), at(0, None), at(60)]


def test_what_is_freed_before_the_first_can_start_is_backfilled() -> None:
    found = starts(Order.EASY, [(1, 10), (9, 50)], (10, 5), (1, 30), (1, 41))
    assert found == [at(50, 2), at(10, 1), at(55, 2)]


def test_a_chain_names_the_running_job_that_it_waits_for() -> None:
    found = starts(Order.FIFO, [(10, 50)], (10, 10), (10, 10))
    assert found == [at(50), at(60)]


def test_a_job_larger_than_the_instance_never_starts_and_blocks_nobody() -> None:
    found = starts(Order.FIFO, [(10, 50)], (11, 10), (10, 10))
    assert found == [at(math.inf, None), at(50)]


@pytest.mark.parametrize("order", Order)
def test_behind_a_job_without_end_none_starts(order: Order) -> None:
    found = starts(order, [(10, math.inf)], (10, 10), (1, 10))
    assert [estimate.expected for estimate in found] == [math.inf, math.inf]


def test_a_job_past_its_limit_may_end_at_any_moment() -> None:
    found = simulate_queue(
        NOW, 0, [(NOW - 9, 10, BUSY)], [(10, 1.0)], Scheduling(Order.FIFO)
    )
    assert found == [(NOW, BUSY)]


def test_the_interval_is_from_the_shortest_to_the_longest() -> None:
    busy = QueueJob(BUSY, 10, RunTime(5.0, 20.0, 90.0))
    waits = QueueJob(JobId(2), 10, exactly(1.0))
    found = estimate_starts(NOW, 0, [busy], [waits], Scheduling(Order.EASY))
    assert found[JobId(2)] == StartEstimate(
        earliest=NOW + 5, expected=NOW + 20, latest=NOW + 90, after=BUSY
    )


def test_so_many_are_tried_for_backfill() -> None:
    long = [(5, 500.0)] * BACKFILL_DEPTH
    found = simulate_queue(
        NOW,
        2,
        [(NOW + 9, 8, BUSY)],
        [(9, 5.0), *long[1:], (1, 1.0)],
        Scheduling(Order.EASY),
    )
    assert found[-1] == (NOW, 0)
    found = simulate_queue(
        NOW,
        2,
        [(NOW + 9, 8, BUSY)],
        [(9, 5.0), *long, (1, 1.0)],
        Scheduling(Order.EASY),
    )
    assert found[-1] != (NOW, 0)


JOBS = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 50)), max_size=25)


@given(JOBS, JOBS, st.sampled_from(Order))
def test_no_more_cores_are_used_than_there_are(
    busy: list[tuple[int, int]], queue: list[tuple[int, int]], order: Order
) -> None:
    ends = sorted((NOW + run, cores, JobId(n)) for n, (cores, run) in enumerate(busy))
    total = 4 + sum(cores for cores, _ in busy)
    found = simulate_queue(
        NOW, 4, ends, [(cores, float(run)) for cores, run in queue], Scheduling(order)
    )
    changes = [(end, -cores) for end, cores, _ in ends]
    for (cores, run), (start, _) in zip(queue, found, strict=True):
        assert (start == math.inf) is (cores > total)
        if start < math.inf:
            assert start >= NOW
            changes += [(start, cores), (start + run, -cores)]
    used = total - 4
    for _, change in sorted(changes):  # of one time, what ends first
        used += change
        assert 0 <= used <= total


@given(JOBS, JOBS)
def test_the_first_starts_as_early_with_backfill_and_all_in_turn_without(
    busy: list[tuple[int, int]], queue: list[tuple[int, int]]
) -> None:
    ends: list[End] = sorted(
        (NOW + run, cores, JobId(n)) for n, (cores, run) in enumerate(busy)
    )
    total = sum(cores for cores, _ in busy)
    able = [(cores, float(run)) for cores, run in queue if cores <= total]
    fifo = simulate_queue(NOW, 0, ends, able, Scheduling(Order.FIFO))
    easy = simulate_queue(NOW, 0, ends, able, Scheduling(Order.EASY))
    # Not after whom: what is backfilled may end at the same time as what it waits for.
    assert [start for start, _ in fifo[:1]] == [start for start, _ in easy[:1]]
    assert fifo == sorted(fifo, key=lambda start: start[0])


# Jobs that leave the line for a burst.


def left_out(
    order: Order,
    free: int,
    running: Sequence[tuple[int, float]],
    queue: Sequence[tuple[int, float]],
    most: float,
) -> tuple[list[int], list[float]]:
    """Have jobs leave that wait longer than `most`; return which, and all waits."""
    ends = sorted((NOW + s, c, JobId(n)) for n, (c, s) in enumerate(running, 1))
    asked: list[int] = []
    gone: list[int] = []

    def leaves(place: int, at: float, after: JobId) -> bool:
        asked.append(place)
        assert after == 0 or NOW < at < math.inf
        if at - NOW > most:
            gone.append(place)
        return at - NOW > most

    found = simulate_queue(NOW, free, ends, queue, Scheduling(order, leaves))
    able = free + sum(cores for cores, _ in running)
    assert sorted(asked) == [n for n, (cores, _) in enumerate(queue) if cores <= able]
    return sorted(gone), [at - NOW for at, _ in found]


def test_those_behind_a_job_that_leaves_start_without_it() -> None:
    queue = [(4, 50), (10, 100), (6, 50), (4, 10)]
    # Alone, each of the last two would wait for all before it.
    gone, waits = left_out(Order.FIFO, 4, [(6, 60)], queue, 55)
    assert (gone, waits) == ([1, 2], [0, 60, 60, 50])
    gone, waits = left_out(Order.FIFO, 4, [(6, 60)], queue, 65)
    assert (gone, waits) == ([2, 3], [0, 60, 160, 160])


def test_a_backfilled_job_may_leave_as_well() -> None:
    # The second runs beside the first once the one of 20 s has ended.
    running = [(7, 60), (3, 20)]
    gone, waits = left_out(Order.EASY, 0, running, [(8, 10), (2, 900), (2, 900)], 10)
    assert (gone, waits) == ([0, 1, 2], [60, 20, 20])
    gone, waits = left_out(Order.EASY, 0, running, [(8, 10), (2, 900), (2, 900)], 70)
    assert (gone, waits) == ([], [60, 20, 70])
    gone, waits = left_out(Order.EASY, 0, running, [(8, 10), (2, 900), (2, 900)], 65)
    assert gone == [2]


def test_those_that_leave_take_no_cores_from_others() -> None:
    def gone(*places: int) -> Scheduling:
        return Scheduling(Order.EASY, lambda place, _, __: place in places)

    def waits(scheduling: Scheduling, *queue: tuple[int, float]) -> list[float]:
        ends = [(NOW + 20, 3, JobId(2)), (NOW + 60, 7, JobId(1))]
        found = simulate_queue(NOW, 0, ends, queue, scheduling)
        return [at - NOW for at, _ in found]

    # Two of four cores are left beside the first, for one of the next two.
    queue = [(8, 10.0), (2, 900.0), (2, 900.0)]
    assert waits(gone(), *queue) == [60, 20, 70]
    assert waits(gone(1), *queue) == [60, 20, 20]
    # Two start at once when one ends; the second leaves, and a third has its cores.
    queue = [(1, 900.0), (2, 900.0), (2, 900.0)]
    assert waits(gone(), *queue) == [20, 20, 60]
    assert waits(gone(1), *queue) == [20, 20, 20]


def test_where_nothing_is_known_to_end_each_job_is_asked() -> None:
    endless = [(8, math.inf)]
    queue = [(9, 10), (2, 10), (9, 5), (11, 1)]
    assert left_out(Order.FIFO, 2, endless, queue, math.inf) == (
        [],
        [math.inf, math.inf, math.inf, math.inf],
    )
    assert left_out(Order.EASY, 2, endless, queue, math.inf)[1][1] == 0
    assert left_out(Order.FIFO, 2, endless, queue, 1e9) == (
        [0, 2],
        [math.inf, 0, math.inf, math.inf],
    )


SIZES = st.tuples(st.integers(1, 12), st.sampled_from([1.0, 10.0, 35.0, 100.0]))


@given(
    st.lists(SIZES, max_size=4),
    st.integers(0, 8),
    st.lists(SIZES, max_size=12),
    st.sampled_from([0.0, 5.0, 40.0, 120.0]),
)
def test_first_come_first_served_they_leave_as_if_judged_one_by_one(
    running: list[tuple[int, float]],
    free: int,
    queue: list[tuple[int, float]],
    most: float,
) -> None:
    """The first that waits too long leaves; then the queue is simulated anew."""
    ends = sorted((NOW + s, c, JobId(n)) for n, (c, s) in enumerate(running, 1))
    able = free + sum(cores for cores, _ in running)
    left = [n for n, (cores, _) in enumerate(queue) if cores <= able]
    gone: list[int] = []
    while True:
        kept = [queue[n] for n in left]
        found = simulate_queue(NOW, free, ends, kept, Scheduling(Order.FIFO))
        late = [n for n, (at, _) in zip(left, found, strict=True) if at - NOW > most]
        if not late:
            break
        gone.append(late[0])
        left.remove(late[0])
    assert left_out(Order.FIFO, free, running, queue, most)[0] == sorted(gone)


def test_estimates_of_those_behind_a_job_that_leaves() -> None:
    def job(number: int, *seconds: float) -> QueueJob:
        return QueueJob(JobId(number), 10, RunTime(*seconds))

    jobs = [job(1, 10, 20, 40), job(2, 1, 2, 4), job(3, 1, 2, 4)]
    found = estimate_starts(
        NOW,
        0,
        jobs[:1],
        jobs[1:],
        Scheduling(Order.FIFO, lambda place, _, __: place == 0),
    )
    first, second = found.values()
    assert (first.expected, first.earliest, first.latest) == (
        NOW + 20,
        NOW + 10,
        NOW + 40,
    )
    assert second == first
