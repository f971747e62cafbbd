# SPDX-License-Identifier: MIT
from __future__ import annotations

import sys
import tracemalloc
from typing import Any

import msgspec
import pytest

from burst.flux.job_state import JournalEvent
from burst.flux.queue_table import QueueTable
from burst.model.active_job import ActiveJob, picture_of
from burst.model.lead import JobState
from burst.model.resource_set import EMPTY, ResourceSet, group_of
from burst.model.shape import Shape
from tests.flux.told_of_queue import Told

SYSTEM = {"duration": 60, "job": {"name": "app"}}
JOBSPEC: dict[str, Any] = {
    "resources": [{"type": "slot", "count": 4, "with": [{"type": "core", "count": 2}]}],
    "attributes": {"system": SYSTEM},
}
R = EMPTY.with_ranks([group_of([0, 2], Shape(4))], ["a", "b"])


def event(name: str, timestamp: float = 1.0, /, **context: Any) -> JournalEvent:
    return JournalEvent(timestamp, name, context)


def waiting(priority: int = 16) -> list[JournalEvent]:
    return [
        event("submit", userid=7),
        event("validate"),
        event("depend"),
        event("priority", priority=priority),
    ]


class Following:
    """A table and what it told."""

    def __init__(self) -> None:
        self.told = Told()
        self.table = QueueTable(self.told)

    def take(
        self,
        number: int,
        *events: JournalEvent,
        jobspec: Any = None,
        allocation: ResourceSet | None = None,
    ) -> None:
        raw = msgspec.Raw(msgspec.json.encode(jobspec) if jobspec else b"")
        self.table.take(number, events, raw, allocation)

    def job(self) -> ActiveJob:
        (job,) = self.table.jobs()
        return job


def pending(**system: Any) -> Following:
    following = Following()
    jobspec = {**JOBSPEC, "attributes": {"system": {**SYSTEM, **system}}}
    following.take(1, *waiting(), jobspec=jobspec)
    return following


def test_equal_requests_are_one_object() -> None:
    assert pending().job().request is pending().job().request


def test_what_cannot_be_read_is_a_job_without_request() -> None:
    following = Following()
    following.take(1, *waiting(), jobspec={"resources": 5})
    following.take(2, *waiting(), jobspec=["odd"])
    following.take(
        3, *waiting(), jobspec={"resources": [{"type": "slot", "count": "x" * 3000}]}
    )
    assert [job.request for job in following.table.jobs()] == [None] * 3


def test_a_job_without_name_or_limit() -> None:
    following = Following()
    following.take(1, *waiting(), jobspec={"resources": JOBSPEC["resources"]})
    job = following.job()
    assert (job.name, job.duration, job.queue) == ("", 0.0, "")


def test_urgency_takes_it_out_of_the_line_until_its_priority_is_known() -> None:
    following = pending()
    following.take(1, event("urgency", urgency=0))
    assert following.job().state is JobState.PRIORITY
    following.take(1, event("priority", priority=0))
    assert (following.job().state, following.job().priority) == (JobState.SCHED, 0)


def test_a_priority_that_cannot_be_read_holds_it() -> None:
    following = pending()
    following.take(1, event("priority", priority="odd"))
    assert following.job().priority == 0


def test_updates_of_the_jobspec() -> None:
    following = pending()
    changes = {
        "attributes.system.duration": 5.0,
        "attributes.system.queue": "debug",
        "attributes.system.constraints": {"ranks": "1"},
        "attributes.system.job.name": "other",
    }
    following.take(1, event("jobspec-update", **changes))
    job = following.job()
    assert (job.duration, job.queue, job.state) == (5.0, "debug", JobState.PRIORITY)
    assert job.request is not None
    assert job.request.constraint == '{"ranks":"1"}'


def test_a_run_from_its_allocation_to_its_end() -> None:
    following = pending()
    following.take(1, event("alloc", 5.0), allocation=R)
    assert following.job().taken == {0: Shape(4), 2: Shape(4)}
    assert following.job().t_start == 5.0
    following.take(1, event("start", 6.0))
    assert following.job().t_start == 6.0
    following.take(1, event("finish", 9.0, status=0))
    assert following.job().taken
    assert not following.told.over
    following.take(1, event("free", 10.0))
    assert not following.table.jobs()
    assert following.told.over[0].t_finish == 9.0
    following.take(1, event("clean", 11.0))
    assert len(following.told.over) == 1


def test_a_job_with_a_fatal_exception_waits_no_more() -> None:
    following = pending()
    following.take(1, event("exception", type="note", severity=1))
    assert picture_of(following.table.jobs()).pending
    following.take(1, event("exception", type="cancel", severity=0))
    assert not picture_of(following.table.jobs()).pending


def test_a_job_whose_tasks_never_began() -> None:
    following = pending()
    following.take(1, event("alloc", 5.0), allocation=R)
    following.take(1, event("exception", 6.0, severity=0, type="cancel"))
    following.take(1, event("free", 7.0))
    assert following.told.over[0].t_finish == 7.0


def test_events_that_change_nothing_are_not_told() -> None:
    following = pending()
    before = following.told.changes
    following.take(1, event("annotations", annotations={"sched": {}}))
    following.take(2, event("start"))
    assert following.told.changes == before


def test_a_malformed_allocation_has_no_cores() -> None:
    odd = ResourceSet(execution=msgspec.structs.replace(R.execution, R_lite=()))
    following = pending()
    following.take(1, event("alloc"), allocation=odd)
    assert following.job().taken == {}
    group = msgspec.structs.replace(R.groups[0], rank="x")
    execution = msgspec.structs.replace(R.execution, R_lite=(group,))
    following = pending()
    following.take(1, event("alloc"), allocation=ResourceSet(execution=execution))
    assert following.job().taken == {}


@pytest.mark.no_cover
def test_twenty_thousand_pending_jobs_take_less_than_8_mb() -> None:
    following = Following()
    first = 2**60  # ids of Flux are as large
    tracemalloc.start()
    try:
        for number in range(20_000):
            name = {"name": f"member-{number}"}
            system = {"job": name, "duration": number + 0.5}
            jobspec = {**JOBSPEC, "attributes": {"system": system}}
            following.take(first + number, *waiting(), jobspec=jobspec)
        picture = picture_of(following.table.jobs())
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(picture.pending) == 20_000
    assert used < 8e6, sys.getsizeof(picture.pending)
