# SPDX-License-Identifier: MIT
"""Contract of `WholeQueue`: all active jobs, burstable or not."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from burst.errors import Unreadable
from burst.lead import Lead, WholeQueue
from burst.model.active_job import ActiveJob, QueuePicture
from burst.model.job_record import RecordedEvent
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.request import ResourceRequest
from burst.model.shape import Shape
from tests.contract.base import WithInstance
from tests.contract.instance import SLEEP, Instance
from tests.contract.watching import Watch
from tests.support.waiting import HANG_S, wait_until


class QueueReader:
    """Follows the queue of a lead, and waits for what it shows."""

    def __init__(self, lead: Lead) -> None:
        assert isinstance(lead, WholeQueue)
        self.lead = lead
        self.over: dict[JobId, ActiveJob] = {}
        self.losses = 0
        self._news = threading.Event()

    def changed(self) -> None:
        self._news.set()

    def ended(self, job: ActiveJob) -> None:
        self.over[job.id] = job
        self._news.set()

    def lost(self) -> None:
        self.losses += 1
        self._news.set()

    def until(self, holds: Callable[[QueuePicture], bool], what: str) -> QueuePicture:
        """Return the first picture for which it holds; fail at the deadline."""
        ends = time.monotonic() + HANG_S
        while True:
            self._news.clear()
            picture = self.lead.queue_picture()
            if holds(picture):
                return picture
            assert self._news.wait(ends - time.monotonic()), f"not seen: {what}"


def ids(jobs: tuple[ActiveJob, ...]) -> list[JobId]:
    return [job.id for job in jobs]


def may_be_large(_userid: int, jobspec: Mapping[str, Any]) -> bool:
    """Let jobs named `large` burst."""
    return bool(jobspec["attributes"]["system"]["job"]["name"] == "large")


class WholeQueueContract(WithInstance):
    @pytest.fixture
    def reader(self, lead: Lead) -> QueueReader:
        reader = QueueReader(lead)
        reader.lead.follow_queue(reader)
        lead.listen(lambda: None)
        return reader

    def test_who_follows_nothing_has_no_picture(self, lead: Lead) -> None:
        assert isinstance(lead, WholeQueue)
        with pytest.raises(Unreadable, match="not read yet"):
            lead.queue_picture()
        with pytest.raises(Unreadable, match="not read yet"):
            lead.active_job(JobId(1))
        lead.listen(lambda: None)
        with pytest.raises(Unreadable, match="follow_queue"):
            lead.queue_picture()
        with pytest.raises(Unreadable, match="follow_queue"):
            lead.active_job(JobId(1))

    def test_a_pending_job_is_told_though_it_is_not_burstable(
        self, instance: Instance, reader: QueueReader
    ) -> None:
        system = {"duration": 90.0, "job": {"name": "a" * 100}}
        job = instance.submit(
            nodes=2, slots=2, cores=2, burstable=False, attributes=system
        )
        (found,) = reader.until(lambda p: len(p.pending) == 1, "the job").pending
        assert found.id == job
        assert found.userid == os.getuid()
        assert found.name == "a" * 64
        assert (found.duration, found.priority) == (90.0, 16)
        assert found.request == ResourceRequest(nodes=2, slots=2, cores_per_slot=2)
        assert (found.t_start, found.t_finish, found.taken) == (0.0, 0.0, {})

    def test_the_scheduler_order_is_by_priority_then_id_and_held_last(
        self, instance: Instance, reader: QueueReader
    ) -> None:
        held = instance.submit(nodes=4, urgency=0, burstable=False)
        first = instance.submit(nodes=4, burstable=False)
        second = instance.submit(nodes=4)
        urgent = instance.submit(nodes=4, urgency=20, burstable=False)
        picture = reader.until(lambda p: len(p.pending) == 4, "four jobs")
        assert ids(picture.pending) == [urgent, first, second, held]
        instance.set_urgency(first, 7)
        moved = [urgent, second, first, held]
        reader.until(lambda p: ids(p.pending) == moved, "another order")

    def test_jobs_are_told_from_when_they_were_submitted_to_their_end(
        self, instance: Instance, reader: QueueReader
    ) -> None:
        before = time.time()
        runs = instance.submit(slots=2, command=SLEEP, burstable=False)
        (found,) = reader.until(lambda p: ids(p.running) == [runs], "it runs").running
        assert found.taken == {0: Shape(2)}
        assert before - 1 <= found.t_start <= time.time() + 1
        waits = instance.submit(nodes=4, burstable=False)
        one = reader.lead.active_job(waits)
        assert one is not None
        assert (one.id, one.userid, one.taken) == (waits, os.getuid(), {})
        one = reader.lead.active_job(runs)
        assert one is not None
        assert (one.state, one.taken) == (JobState.RUN, {0: Shape(2)})
        for job in (waits, runs):
            instance.cancel(job)
        # It may end between the picture and what is told of ends: look again then.
        empty = QueuePicture()
        both = {runs, waits}
        reader.until(lambda p: both <= reader.over.keys() and p == empty, "their end")
        over = reader.over[runs]
        assert over.t_start <= over.t_finish <= time.time() + 1
        assert reader.over[waits].t_start == 0.0
        assert reader.lead.active_job(waits) is None

    def test_jobs_from_before_are_known(self, instance: Instance, lead: Lead) -> None:
        job = instance.submit(nodes=4, burstable=False)
        assert isinstance(lead, WholeQueue)
        lead.listen(lambda: None)
        reader = QueueReader(lead)
        lead.follow_queue(reader)
        reader.until(lambda p: ids(p.pending) == [job], "the job")
        assert not lead.observe().jobs
        lead.follow_queue(None)
        with pytest.raises(Unreadable):
            lead.queue_picture()

    def test_jobs_that_may_burst_without_the_attribute_are_shown_if_that_is_asked_for(
        self, instance: Instance, lead: Lead
    ) -> None:
        assert isinstance(lead, WholeQueue)
        lead.follow_queue(QueueReader(lead), may_be_large)
        watch = Watch(lead)
        large, small = (
            instance.submit(
                nodes=4, burstable=False, attributes={"job": {"name": name}}
            )
            for name in ("large", "small")
        )
        marked = instance.submit(nodes=4)
        watch.state(marked, JobState.SCHED)
        assert watch.state(large, JobState.SCHED).burstable is False
        view = lead.observe()
        assert view.jobs[marked].burstable
        assert small not in view.jobs
        lead.follow_queue(None)
        assert large not in lead.observe().jobs
        lead.follow_queue(QueueReader(lead), may_be_large)
        watch.state(large, JobState.SCHED)
        instance.cancel(large)
        watch.state(large, JobState.INACTIVE)

    def test_a_job_on_record_is_shown_after_its_rule_is_gone(
        self, instance: Instance, lead: Lead
    ) -> None:
        assert isinstance(lead, WholeQueue)
        lead.follow_queue(QueueReader(lead), may_be_large)
        on_record: list[JobId] = []
        lead.listen(lambda: None, lambda: on_record)
        jobs = [
            instance.submit(
                nodes=4, burstable=False, attributes={"job": {"name": "large"}}
            )
            for _ in range(2)
        ]
        wait_until(lambda: lead.observe().jobs.keys() == set(jobs), "both jobs")
        on_record.append(jobs[0])
        lead.follow_queue(None)
        assert lead.observe().jobs.keys() == {jobs[0]}

    def test_a_job_on_record_that_has_ended_is_shown_once_jobs_are_read_again(
        self, instance: Instance, lead: Lead
    ) -> None:
        assert isinstance(lead, WholeQueue)
        on_record: list[JobId] = []
        lead.listen(lambda: None, lambda: on_record)
        job = instance.submit(burstable=False)
        instance.output(job)
        assert not lead.observe().jobs
        on_record.append(job)
        lead.follow_queue(None)
        assert lead.observe().jobs[job].result == "completed"

    def test_what_happens_to_jobs_is_recorded(
        self, instance: Instance, lead: Lead
    ) -> None:
        before = instance.submit(nodes=4, urgency=0, burstable=False)
        assert isinstance(lead, WholeQueue)
        events: list[RecordedEvent] = []
        reader = QueueReader(lead)
        reader.lead.follow_queue(reader, None, events.append)
        lead.listen(lambda: None)
        job = instance.submit(slots=1, command=("true",))
        reader.until(lambda _: job in reader.over, "its end")
        # Of what is recorded after the end of a job, no news wakes the reader.
        wait_until(
            lambda: any(e.name == "clean" and e.id == job for e in events),
            lambda: [(e.id, e.name) for e in events],
        )
        assert next(each.name for each in events if each.id == before) == "submit"
        mine = {event.name: event for event in events if event.id == job}
        assert {"submit", "priority", "alloc", "start", "finish", "clean"} <= set(mine)
        assert mine["finish"].context["status"] == 0
        submitted = mine["submit"].jobspec
        assert isinstance(submitted, msgspec.Raw)
        jobspec = msgspec.to_builtins(msgspec.json.decode(submitted))
        assert jobspec["attributes"]["system"]["burstable"] is True
        assert "environment" not in jobspec["attributes"]["system"]
        assert mine["start"].jobspec is msgspec.UNSET
