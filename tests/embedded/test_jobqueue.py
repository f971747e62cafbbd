# SPDX-License-Identifier: MIT
"""The queue: states and events of jobs, and their order."""

from __future__ import annotations

from typing import Any

import pytest
from burst_embedded.job import Job
from burst_embedded.jobqueue import JobQueue
from burst_embedded.pool import ResourcePool
from burst_embedded.wire import Ended, Output, RunTasks

from burst.errors import JobspecError, LeadError
from burst.model.lead import JobState
from burst.model.shape import Shape
from tests.embedded.jobspecs import Wanted, build_jobspec
from tests.embedded.nodes import resources

NOW = 1_800_000_000.0


@pytest.fixture
def queue() -> JobQueue:
    """Rank 0 with 2 cores is up; ranks 1 and 2 with 4 cores are not."""
    small, large = (Shape(2), ["local"]), (Shape(4), ["burst"])
    queue = JobQueue(ResourcePool(resources(small, large, large)))
    queue.rank_online(0)
    return queue


def submit(
    queue: JobQueue,
    urgency: int = 16,
    system: dict[str, Any] | None = None,
    **wanted: int,
) -> Job:
    jobspec = build_jobspec(["true"], Wanted(**wanted), system or {})
    return queue.submit(jobspec, urgency)


def test_each_rank_is_ordered_to_run_its_own_tasks(queue: JobQueue) -> None:
    for rank in (1, 2):
        queue.rank_online(rank)
    job = submit(queue, nodes=2, slots=4, cores=2)
    queue.schedule()
    orders = {
        rank: order for rank, order in queue.orders if isinstance(order, RunTasks)
    }
    assert {rank: order.tasks for rank, order in orders.items()} == {
        1: (0, 1),
        2: (2, 3),
    }
    assert orders[1].environment["FLUX_JOB_NNODES"] == "2"
    assert orders[1].environment["FLUX_JOB_SIZE"] == "4"
    assert job.R
    assert (sorted(job.R.ranks), job.R.hosts) == ([1, 2], ("n1", "n2"))


def test_what_never_fits_fails_with_an_exception(queue: JobQueue) -> None:
    job = submit(queue, nodes=4)
    behind = submit(queue, slots=1)
    queue.schedule()
    assert [event.name for event in job.events[-2:]] == ["exception", "clean"]
    assert job.events[-2].context == {
        "type": "alloc",
        "severity": 0,
        "note": "unsatisfiable request: no ranks could ever hold it",
    }
    assert (job.result, job.time_of("start")) == ("failed", 0)
    assert behind.state is JobState.RUN


def test_the_first_exception_decides_the_result(queue: JobQueue) -> None:
    job = submit(queue, slots=1)
    queue.schedule()
    queue.raise_exception(job.id, "timeout", "")
    queue.raise_exception(job.id, "cancel", "")
    queue.take(Ended(job.id, 0, 15))
    assert job.result == "timeout"


@pytest.mark.parametrize(("status", "result"), [(3 << 8, "failed"), (0, "completed")])
def test_the_highest_status_is_the_jobs(
    queue: JobQueue, status: int, result: str
) -> None:
    job = submit(queue, slots=2)
    queue.schedule()
    queue.take(Ended(job.id, 1, status))
    assert job.state is JobState.RUN
    queue.take(Ended(job.id, 0, 0))
    assert (job.status, job.result) == (status, result)


def test_the_end_of_what_is_not_running_is_passed_over(queue: JobQueue) -> None:
    job = submit(queue, slots=1)
    queue.take(Ended(job.id, 0, 0))
    queue.take(Ended(4711, 0, 0))
    assert job.state is JobState.SCHED


@pytest.mark.parametrize("urgency", [-1, 32])
def test_an_urgency_out_of_range_is_refused(queue: JobQueue, urgency: int) -> None:
    with pytest.raises(LeadError, match="out of range"):
        submit(queue, urgency)
    job = submit(queue)
    with pytest.raises(LeadError, match="out of range"):
        queue.set_urgency(job.id, urgency)
    assert job.urgency == 16


def test_a_memo_may_have_any_key(queue: JobQueue) -> None:
    memo = {"name": 1, "now": 2, "job": 3, "self": 4}
    job = submit(queue)
    queue.post_memo(job.id, memo)
    assert (job.events[-1].name, job.events[-1].context) == ("memo", memo)


def test_a_jobspec_that_cannot_be_read_is_no_job(queue: JobQueue) -> None:
    bad = build_jobspec(["true"], Wanted(), {"constraints": {"nonsense": []}})
    for jobspec in (bad, {}, {**bad, "resources": []}, {**bad, "tasks": []}):
        with pytest.raises(JobspecError):
            queue.submit(jobspec, 16)
    assert not queue.jobs


def test_output_is_that_of_jobs_that_run(queue: JobQueue) -> None:
    job = submit(queue, slots=1)
    piece = Output(job.id, 0, 1, b"x")
    queue.take(piece)
    queue.schedule()
    for _ in range(2):
        queue.take(piece)
    queue.take(Output(4711, 0, 1, b"x"))
    assert job.output == [piece] * 2


def test_ids_grow_also_when_the_clock_goes_back() -> None:
    now, ids = NOW, []
    queue = JobQueue(ResourcePool(resources((Shape(2), []))), lambda: now)
    for now in (NOW, NOW, NOW - 3600, NOW + 1):  # noqa: B007
        ids.append(submit(queue).id)
    assert ids == sorted(set(ids))
    assert all(0 < job_id < 2**63 for job_id in ids)
