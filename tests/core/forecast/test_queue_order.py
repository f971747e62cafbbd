# SPDX-License-Identifier: MIT
"""When pending jobs start, by a simulation of the queue."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.core.forecast.conservative import End, Start
from burst.core.forecast.history import RunTime
from burst.core.forecast.queue_order import (
    BACKFILL_DEPTH,
    PendingJob,
    RunningJob,
    Scheduling,
    estimate_starts,
    simulate_queue,
    starts_now,
)
from burst.core.plan.estimate import StartEstimate
from burst.core.plan.fit import NodePool
from burst.model.jobid import JobId
from burst.model.scheduler import Order
from burst.model.shape import Shape
from tests.builders import slots, whole
from tests.core.forecast.rooms import (
    NOW,
    Jobs,
    need,
    one_node,
    running_on,
    share,
    waits,
)

BUSY = JobId(1)


def exactly(seconds: float) -> RunTime:
    """A run time that is known."""
    return RunTime(seconds, seconds, seconds)


def at(seconds: float, after: int | None = BUSY) -> StartEstimate:
    """A start that many seconds from now, after a job."""
    when = NOW + seconds
    job = None if after is None else JobId(after)
    return StartEstimate(expected=when, latest=when, earliest=when, after=job)


def starts(order: Order, running: Jobs, *waiting: tuple[int, float]):
    """Estimates on ten cores, for jobs with ids from 1."""
    busy = [
        RunningJob(JobId(number), share(cores), exactly(seconds))
        for number, (cores, seconds) in enumerate(running, 1)
    ]
    queue = [
        PendingJob(JobId(number), need(cores), cores, exactly(seconds))
        for number, (cores, seconds) in enumerate(waiting, 1 + len(busy))
    ]
    free = 10 - sum(cores for cores, _ in running)
    found = estimate_starts(NOW, one_node(free), busy, queue, Scheduling(order))
    assert list(found) == [job.job for job in queue]
    return list(found.values())


def simulated(order: Order, free: int, running: Jobs, queue: Jobs) -> list[Start]:
    """Starts where so many cores are free."""
    queued = [waits(*job) for job in queue]
    room, ends = one_node(free), running_on(running)
    return simulate_queue(NOW, room, ends, queued, Scheduling(order))


def test_what_fits_starts_now() -> None:
    found = starts(Order.FIFO, [(4, 50)], (6, 10), (4, 10))
    assert found == [at(0, None), at(10, None)]


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


@pytest.mark.parametrize("order", Order)
def test_behind_a_job_without_end_none_starts(order: Order) -> None:
    found = starts(order, [(10, math.inf)], (10, 10), (1, 10))
    assert [estimate.expected for estimate in found] == [math.inf, math.inf]


def test_a_job_past_its_limit_may_end_at_any_moment() -> None:
    assert simulated(Order.FIFO, 0, [(10, -9)], [(10, 1)]) == [(NOW, BUSY)]


def test_the_interval_is_from_the_shortest_to_the_longest() -> None:
    busy = RunningJob(BUSY, share(10), RunTime(5.0, 20.0, 90.0))
    queued = PendingJob(JobId(2), need(10), 10, exactly(1.0))
    scheduling = Scheduling(Order.EASY)
    found = estimate_starts(NOW, one_node(0), [busy], [queued], scheduling)
    assert found[JobId(2)] == StartEstimate(
        earliest=NOW + 5, expected=NOW + 20, latest=NOW + 90, after=BUSY
    )


def test_so_many_are_tried_for_backfill() -> None:
    long = [(5, 500.0)] * BACKFILL_DEPTH
    short = (1, 1.0)
    found = simulated(Order.EASY, 2, [(8, 9)], [(9, 5.0), *long[1:], short])
    assert found[-1] == (NOW, 0)
    found = simulated(Order.EASY, 2, [(8, 9)], [(9, 5.0), *long, short])
    assert found[-1] != (NOW, 0)


JOBS = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 50)), max_size=25)


@given(JOBS, JOBS, st.sampled_from(Order))
def test_no_more_cores_are_used_than_there_are(busy, queue, order):
    total = 4 + sum(cores for cores, _ in busy)
    able = [(cores, run) for cores, run in queue if cores <= total]
    found = simulated(order, 4, busy, able)
    changes = [(NOW + run, -cores) for cores, run in busy]
    for (cores, run), (start, _) in zip(able, found, strict=True):
        assert NOW <= start < math.inf
        changes += [(start, cores), (start + run, -cores)]
    used = total - 4
    for _, change in sorted(changes):  # of one time, what ends first
        used += change
        assert 0 <= used <= total


@given(JOBS, JOBS, st.sampled_from(Order))
def test_what_starts_now_is_the_first_step(running, queue, order):
    free = 10 - sum(cores for cores, _ in running)
    room, ends = one_node(max(0, free)), running_on(running)
    queued, scheduling = [waits(*job) for job in queue], Scheduling(order)
    found = starts_now(NOW, room, ends, queued, scheduling)
    expected = simulated(order, max(0, free), running, queue)
    assert found == [place for place, (at, _) in enumerate(expected) if at == NOW]


@given(JOBS, JOBS)
def test_the_first_starts_as_early_with_backfill_and_all_in_turn_without(busy, queue):
    total = sum(cores for cores, _ in busy)
    able = [(cores, float(run)) for cores, run in queue if cores <= total]
    fifo = simulated(Order.FIFO, 0, busy, able)
    easy = simulated(Order.EASY, 0, busy, able)
    # Not after whom: what is backfilled may end at the same time as what it waits for.
    assert [start for start, _ in fifo[:1]] == [start for start, _ in easy[:1]]
    assert fifo == sorted(fifo, key=lambda start: start[0])


# Jobs that leave the line for a burst.


def left_out(order: Order, free: int, running: Jobs, queue: Jobs, most: float):
    """Have jobs leave that wait longer than `most`; return which, and all waits."""
    asked: list[int] = []
    gone: list[int] = []

    def leaves(place: int, at: float) -> bool:
        asked.append(place)
        if at - NOW > most:
            gone.append(place)
        return at - NOW > most

    room, ends = one_node(free), running_on(running)
    queued = [waits(*job) for job in queue]
    found = simulate_queue(NOW, room, ends, queued, Scheduling(order, leaves))
    assert sorted(asked) == list(range(len(queue)))
    return sorted(gone), [at - NOW for at, _ in found]


def test_those_behind_a_job_that_leaves_start_without_it() -> None:
    queue = [(4, 50), (10, 100), (6, 50), (4, 10)]
    # Alone, each of the last two would wait for all before it.
    found = left_out(Order.FIFO, 4, [(6, 60)], queue, 55)
    assert found == ([1, 2], [0, 60, 60, 50])
    found = left_out(Order.FIFO, 4, [(6, 60)], queue, 65)
    assert found == ([2, 3], [0, 60, 160, 160])


def test_a_backfilled_job_may_leave_as_well() -> None:
    # The second runs beside the first once the one of 20 s has ended.
    running = [(7, 60), (3, 20)]
    queue = [(8, 10), (2, 900), (2, 900)]
    found = left_out(Order.EASY, 0, running, queue, 10)
    assert found == ([0, 1, 2], [60, 20, 20])
    assert left_out(Order.EASY, 0, running, queue, 70) == ([], [60, 20, 70])
    assert left_out(Order.EASY, 0, running, queue, 65)[0] == [2]


def test_those_that_leave_take_no_cores_from_others() -> None:
    def gone(*places: int) -> Scheduling:
        return Scheduling(Order.EASY, lambda place, _: place in places)

    def found(scheduling: Scheduling, *queue: tuple[int, float]) -> list[float]:
        room, ends = one_node(0), running_on([(7, 60), (3, 20)])
        queued = [waits(*job) for job in queue]
        starts = simulate_queue(NOW, room, ends, queued, scheduling)
        return [at - NOW for at, _ in starts]

    # Two of four cores are left beside the first, for one of the next two.
    queue = [(8, 10.0), (2, 900.0), (2, 900.0)]
    assert found(gone(), *queue) == [60, 20, 70]
    assert found(gone(1), *queue) == [60, 20, 20]
    # Two start at once when one ends; the second leaves, and a third has its cores.
    queue = [(1, 900.0), (2, 900.0), (2, 900.0)]
    assert found(gone(), *queue) == [20, 20, 60]
    assert found(gone(1), *queue) == [20, 20, 20]


def test_where_nothing_is_known_to_end_each_job_is_asked() -> None:
    endless = [(8, math.inf)]
    queue = [(9, 10), (2, 10), (9, 5)]
    assert left_out(Order.FIFO, 2, endless, queue, math.inf) == ([], [math.inf] * 3)
    assert left_out(Order.EASY, 2, endless, queue, math.inf)[1][1] == 0
    found = left_out(Order.FIFO, 2, endless, queue, 1e9)
    assert found == ([0, 2], [math.inf, 0, math.inf])


SIZES = st.tuples(st.integers(1, 12), st.sampled_from([1.0, 10.0, 35.0, 100.0]))


@given(
    st.lists(SIZES, max_size=4),
    st.integers(0, 8),
    st.lists(SIZES, max_size=12),
    st.sampled_from([0.0, 5.0, 40.0, 120.0]),
)
def test_first_come_first_served_they_leave_as_if_judged_one_by_one(
    running, free, queue, most
):
    """The first that waits too long leaves; then the queue is simulated anew."""
    able = free + sum(cores for cores, _ in running)
    queue = [job for job in queue if job[0] <= able]
    left = list(range(len(queue)))
    gone: list[int] = []
    while True:
        found = simulated(Order.FIFO, free, running, [queue[n] for n in left])
        late = [n for n, (at, _) in zip(left, found, strict=True) if at - NOW > most]
        if not late:
            break
        gone.append(late[0])
        left.remove(late[0])
    assert left_out(Order.FIFO, free, running, queue, most)[0] == sorted(gone)


def test_estimates_of_those_behind_a_job_that_leaves() -> None:
    busy = RunningJob(BUSY, share(10), RunTime(10, 20, 40))
    queue = [PendingJob(JobId(n), need(10), 10, RunTime(1, 2, 4)) for n in (2, 3)]
    scheduling = Scheduling(Order.FIFO, lambda place, _: place == 0)
    found = estimate_starts(NOW, one_node(0), [busy], queue, scheduling)
    first, second = found.values()
    times = first.earliest, first.expected, first.latest
    assert times == (NOW + 10, NOW + 20, NOW + 40)
    assert second == first


# Node by node.


def on_nodes(
    order: Order, *queue: Any, ends: Sequence[tuple[float, dict[int, Shape]]]
) -> list[float]:
    """Seconds to each start on three nodes of 4 cores, the last with 2 GPUs."""
    nodes = {0: Shape(4), 1: Shape(4), 2: Shape(4, 2)}
    room = NodePool(nodes, nodes)
    for _, taken in ends:
        room.take_shares(taken)
    found = [End(NOW + at, n, JobId(n), taken) for n, (at, taken) in enumerate(ends, 1)]
    starts = simulate_queue(NOW, room, sorted(found), queue, Scheduling(order))
    return [at - NOW for at, _ in starts]


SPREAD = [(20.0, {0: Shape(1)}), (30.0, {1: Shape(1)}), (40.0, {2: Shape(1)})]


@pytest.mark.parametrize("order", Order)
def test_cores_of_several_nodes_are_no_whole_node(order: Order) -> None:
    jobs = [waits(1, 10, whole(2)), waits(4, 10)]
    assert on_nodes(order, jobs[0], ends=SPREAD) == [30]
    # The second job has what is left on the nodes; it would delay the first one.
    assert on_nodes(order, *jobs, ends=SPREAD)[0] == 30


@pytest.mark.parametrize("order", Order)
def test_a_gpu_is_waited_for_while_cores_are_free(order: Order) -> None:
    busy = [(50.0, {2: Shape(1, 2)})]
    gpus = waits(1, 10, slots(1, gpus=1))
    assert on_nodes(order, gpus, gpus, ends=busy) == [50, 50]


def test_only_ranks_that_a_constraint_admits_count() -> None:
    busy = [(50.0, {1: Shape(4)})]
    there = waits(1, 10, slots(1), frozenset({1}))
    anywhere = waits(4, 60, slots(4))
    assert on_nodes(Order.FIFO, there, anywhere, ends=busy) == [50, 50]
    assert on_nodes(Order.EASY, there, anywhere, ends=busy) == [50, 0]


def test_backfill_leaves_the_nodes_that_the_first_job_waits_for() -> None:
    busy = [(50.0, {0: Shape(4)}), (90.0, {2: Shape(4, 2)})]
    first = waits(1, 10, whole(2))
    # Two cores on node 1 for 49 seconds, and not for 51; nor on nodes that are busy.
    assert on_nodes(Order.EASY, first, waits(2, 49), ends=busy) == [50, 0]
    assert on_nodes(Order.EASY, first, waits(2, 51), ends=busy) == [50, 60]
    beside = waits(2, 51), waits(2, 51), waits(2, 9)
    assert on_nodes(Order.EASY, first, *beside, ends=busy) == [50, 60, 60, 0]


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 50)), max_size=6),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 50)), max_size=20),
    st.sampled_from(Order),
)
def test_nodes_are_had_one_after_the_other_as_cores_are(busy, queue, order):
    """First come first served, jobs of whole nodes start as on so many cores."""
    nodes = dict.fromkeys(range(9), Shape(4, 2))
    room = NodePool(nodes, nodes)
    ends: list[End] = []
    running: list[tuple[int, float]] = []
    for number, (count, seconds) in enumerate(busy, 1):
        taken = room.fit(whole(count))
        if taken:
            room.take_shares(taken)
            ends.append(End(NOW + seconds, number, JobId(number), taken))
            running.append((count, seconds))
    asks = [waits(1, run, whole(count)) for count, run in queue]
    found = simulate_queue(NOW, room, sorted(ends), asks, Scheduling(order))
    if order is Order.FIFO:
        free = 9 - sum(count for count, _ in running)
        expected = simulated(order, free, running, queue)
        assert [at for at, _ in found] == [at for at, _ in expected]
    changes = [(NOW + seconds, -count) for count, seconds in running]
    for (count, run), (start, _) in zip(queue, found, strict=True):
        changes += [(start, count), (start + run, -count)]
    used = sum(count for count, _ in running)
    for _, change in sorted(changes):
        used += change
        assert 0 <= used <= 9


@pytest.mark.parametrize("order", [Order.FIFO, Order.EASY])
def test_a_job_that_never_fits_has_those_behind_it_wait(order: Order) -> None:
    found = simulated(order, 4, [(6, 10)], [(11, 1), (12, 1), (9, 1)])
    last = NOW + 10 if order is Order.EASY else math.inf
    assert [at for at, _ in found] == [math.inf, math.inf, last]
