# SPDX-License-Identifier: MIT
"""The queue: states and events of jobs, and their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from burst_embedded.job import Job
from burst_embedded.jobqueue import HISTORY, JobQueue
from burst_embedded.jobspec import Wanted, build_jobspec
from burst_embedded.pool import NodeResources, ResourcePool
from burst_embedded.wire import OUTPUT_LIMIT, Ended, Output, RunTasks

from burst.errors import JobspecError, LeadError
from burst.model.jobid import JobId
from burst.model.lead import JobState

NOW = 1_800_000_000.0
USER = 1000


@pytest.fixture
def queue() -> JobQueue:
    """Rank 0 with 2 cores is up; ranks 1 and 2 with 4 cores are not."""
    queue = JobQueue(
        ResourcePool(
            NodeResources(
                rank=rank,
                host=f"n{rank}",
                cores=frozenset(range(4 if rank else 2)),
                properties=frozenset({"burst"} if rank else {"local"}),
            )
            for rank in range(3)
        )
    )
    queue.rank_online(0)
    return queue


def submit(
    queue: JobQueue,
    urgency: int = 16,
    system: dict[str, Any] | None = None,
    **wanted: int,
) -> Job:
    jobspec = build_jobspec(["true"], Wanted(**wanted), system or {})
    return queue.submit(jobspec, urgency, USER, NOW)


def state(job: Job) -> JobState:
    return job.state


def names(job: Job) -> list[str]:
    return [event.name for event in job.events]


def end(queue: JobQueue, job: Job, status: int = 0) -> None:
    for task in list(job.running):
        queue.task_ended(Ended(job.id, task, status), NOW + 9)


def test_the_events_of_a_job_that_runs_are_those_of_flux(queue: JobQueue) -> None:
    job = submit(queue, slots=2)
    assert state(job) is JobState.SCHED
    queue.schedule(NOW + 1)
    assert state(job) is JobState.RUN
    assert job.running == {0: 0, 1: 0}
    end(queue, job)
    assert state(job) is JobState.INACTIVE
    assert names(job) == [
        *("submit", "validate", "depend", "priority"),
        *("alloc", "start", "finish", "release", "free", "clean"),
    ]
    assert job.events[0].context["urgency"] == 16
    resources = job.events[4].context["annotations"]["sched"]["resource_summary"]
    assert resources == "rank0/core[0-1]"
    assert (job.t_start, job.t_finish, job.result) == (NOW + 1, NOW + 9, "completed")
    assert queue.pool.allocated() == set()


def test_each_rank_is_ordered_to_run_its_own_tasks(queue: JobQueue) -> None:
    for rank in (1, 2):
        queue.rank_online(rank)
    job = submit(queue, nodes=2, slots=4, cores=2)
    queue.schedule(NOW)
    orders = {
        rank: order for rank, order in queue.orders if isinstance(order, RunTasks)
    }
    assert {rank: order.tasks for rank, order in orders.items()} == {
        1: (0, 1),
        2: (2, 3),
    }
    assert orders[1].environment["FLUX_JOB_NNODES"] == "2"
    assert orders[1].environment["FLUX_JOB_SIZE"] == "4"
    assert job.ran_on == {1, 2}


def test_what_never_fits_fails_with_an_exception(queue: JobQueue) -> None:
    job = submit(queue, nodes=4)
    behind = submit(queue, slots=1)
    queue.schedule(NOW)
    assert names(job)[-2:] == ["exception", "clean"]
    assert job.events[-2].context == {
        "type": "alloc",
        "severity": 0,
        "note": "unsatisfiable request: need 4 exclusive node(s), only 3 eligible",
    }
    assert (job.result, job.t_start) == ("failed", 0)
    assert state(behind) is JobState.RUN


def test_the_first_exception_decides_the_result(queue: JobQueue) -> None:
    job = submit(queue, slots=1)
    queue.schedule(NOW)
    queue.raise_exception(job.id, "timeout", "", NOW)
    queue.raise_exception(job.id, "cancel", "", NOW)
    end(queue, job, 15)
    assert job.result == "timeout"


def test_the_highest_status_is_the_jobs(queue: JobQueue) -> None:
    job = submit(queue, slots=2)
    queue.schedule(NOW)
    queue.task_ended(Ended(job.id, 1, 3 << 8), NOW)
    assert state(job) is JobState.RUN
    queue.task_ended(Ended(job.id, 0, 0), NOW)
    assert (job.status, job.result) == (3 << 8, "failed")


def test_the_end_of_what_is_not_running_is_passed_over(queue: JobQueue) -> None:
    job = submit(queue, slots=1)
    queue.task_ended(Ended(job.id, 0, 0), NOW)
    queue.task_ended(Ended(4711, 0, 0), NOW)
    assert state(job) is JobState.SCHED


@pytest.mark.parametrize("urgency", [-1, 32])
def test_an_urgency_out_of_range_is_refused(queue: JobQueue, urgency: int) -> None:
    with pytest.raises(LeadError, match="out of range"):
        submit(queue, urgency)
    job = submit(queue)
    with pytest.raises(LeadError, match="out of range"):
        queue.set_urgency(job.id, urgency, NOW)
    assert job.urgency == 16


def test_orders_to_what_is_not_there_say_why(queue: JobQueue) -> None:
    job = submit(queue, slots=1)
    queue.schedule(NOW)
    with pytest.raises(LeadError, match="once resources are allocated"):
        queue.set_urgency(job.id, 0, NOW)
    end(queue, job)
    orders: list[Callable[[JobId], None]] = [
        lambda job_id: queue.set_urgency(job_id, 0, NOW),
        lambda job_id: queue.merge_memo(job_id, {}, NOW),
        lambda job_id: queue.raise_exception(job_id, "cancel", "", NOW),
    ]
    for order in orders:
        with pytest.raises(LeadError, match="job is inactive"):
            order(job.id)
        with pytest.raises(LeadError, match="unknown job"):
            order(JobId(1))
    with pytest.raises(LeadError, match="no such rank: 7-8"):
        queue.drain({0, 7, 8}, "")
    with pytest.raises(LeadError, match="no such rank: 7"):
        queue.undrain({7})
    assert not queue.pool.drained


def test_a_memo_may_have_any_key(queue: JobQueue) -> None:
    job = submit(queue)
    queue.merge_memo(job.id, {"name": 1, "now": 2, "job": 3, "self": 4}, NOW)
    assert job.memo == {"name": 1, "now": 2, "job": 3, "self": 4}


def test_ids_grow_also_when_the_clock_goes_back(queue: JobQueue) -> None:
    jobspec = build_jobspec(["true"], Wanted(), {})
    times = [NOW, NOW, NOW - 3600, NOW + 1]
    ids = [queue.submit(jobspec, 16, USER, now).id for now in times]
    assert ids == sorted(set(ids))
    assert all(0 < job_id < 2**63 for job_id in ids)


def test_a_jobspec_that_cannot_be_read_is_no_job(queue: JobQueue) -> None:
    bad = build_jobspec(["true"], Wanted(), {"constraints": {"nonsense": []}})
    for jobspec in (bad, {}, {**bad, "resources": []}, {**bad, "tasks": []}):
        with pytest.raises(JobspecError):
            queue.submit(jobspec, 16, USER, NOW)
    assert not queue.jobs


def test_output_is_bounded(queue: JobQueue) -> None:
    job = submit(queue)
    half = b"x" * (OUTPUT_LIMIT // 2)
    pieces = [Output(job.id, 0, 1, half) for _ in range(3)]
    assert [queue.take_output(piece) for piece in pieces] == [True, True, False]
    assert sum(len(piece.data) for piece in queue.output[job.id]) == OUTPUT_LIMIT
    assert job.output_cut
    assert not queue.take_output(Output(4711, 0, 1, b"x"))


def test_old_jobs_are_forgotten(queue: JobQueue) -> None:
    for _ in range(HISTORY + 2):
        queue.raise_exception(submit(queue).id, "cancel", "", NOW)
    assert len(queue.jobs) == HISTORY


def test_changes_are_noted_for_who_tells_of_them(queue: JobQueue) -> None:
    queue.unsettled = queue.untold = False
    job = submit(queue)
    assert (queue.unsettled, queue.untold, queue.changed) == (True, True, {job.id})
    changes: list[Callable[[], None]] = [
        lambda: queue.drain({1}, ""),
        lambda: queue.undrain({1}),
        lambda: queue.rank_online(1),
        lambda: queue.rank_lost(1, NOW),
    ]
    for change in changes:
        queue.unsettled = queue.untold = False
        change()
        assert queue.unsettled
        assert queue.untold
