# SPDX-License-Identifier: MIT
"""The agent of a member, with a fake instance and a fake daemon."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
import pytest
from burst_ensemble.core.job_rows import GROUP
from burst_ensemble_agent.agent import AgentSite, EnsembleAgent
from burst_ensemble_agent.report import (
    JOBS_MOST,
    REPORT_VERSION,
    AgentAnswer,
    AgentReport,
    make_report,
)

from burst.errors import BurstError, ConfigError, JobRefused, LeadError, Unreadable
from burst.lead import Lead, NewJob
from burst.model.active_job import ActiveJob, JobOutcome, QueuePicture
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.request import BurstPreferences
from tests.builders import job, whole
from tests.fakes import FakeLead

SITE = AgentSite(about="e/m", environment={"HOME": "/h"}, directory="/here", start=0.0)
MEMBER = BurstPreferences(tag="e/m", urgency=0)


class Instance(FakeLead):
    """A fake instance that takes jobs."""

    refuses = ""
    never_takes = False
    names: dict[str, JobId]
    outcome: Mapping[JobId, JobOutcome] = {}
    canceled: tuple[JobId, ...] = ()
    lost = False
    submitted: tuple[NewJob, ...] = ()

    def follow_queue(self, *_: Any) -> None:
        """All jobs are shown anyhow."""

    def queue_picture(self) -> QueuePicture:
        return QueuePicture()

    def active_job(self, _number: JobId) -> ActiveJob | None:
        return None

    def submit_jobs(self, jobs: Sequence[NewJob]) -> Sequence[JobId | BurstError]:
        self.submitted += tuple(jobs)
        if self.refuses:
            kind = JobRefused if self.never_takes else BurstError
            return [kind(self.refuses)] * len(jobs)
        made = [self._take(new) for new in jobs]
        if self.lost:
            self.lost = False
            raise Unreadable("the answer was lost")
        return made

    def _take(self, new: NewJob) -> JobId:
        name = new.jobspec["attributes"]["system"]["job"]["name"]
        assert name not in self.names, "submitted twice"
        number = JobId(len(self.names) + 1)
        self.names[name] = number
        self.jobs[number] = job(number, whole(1), preferences=MEMBER, name=name)
        return number

    def find_jobs(self, names: Collection[str]) -> Mapping[str, JobId]:
        return {name: self.names[name] for name in names if name in self.names}

    def outcomes(self, jobs: Collection[JobId]) -> Mapping[JobId, JobOutcome]:
        return {each: self.outcome[each] for each in jobs if each in self.outcome}

    def cancel_job(self, job: JobId, reason: str) -> None:
        self.canceled += (job,)
        del self.jobs[job]
        if len(self.canceled) == 2:
            raise LeadError("the job is gone")


class Daemon:
    """Answers what the test says; ends the agent after the last."""

    def __init__(self, *answers: AgentAnswer | BurstError) -> None:
        self.answers = list(answers)
        self.reports: list[AgentReport] = []

    def post(self, report: AgentReport) -> AgentAnswer:
        self.reports.append(report)
        answer = self.answers.pop(0) if self.answers else said(end="done")
        if isinstance(answer, BurstError):
            raise answer
        return answer


def said(**changes: Any) -> AgentAnswer:
    return AgentAnswer(**{"version": REPORT_VERSION, "check": 0.0, **changes})


def asked(name: str, **system: Any) -> dict[str, Any]:
    return {name: {"attributes": {"system": {"job": {"name": name}, **system}}}}


@pytest.fixture
def instance() -> Instance:
    made = Instance()
    made.names = {}
    return made


def run(instance: Lead, daemon: Daemon, site: AgentSite = SITE) -> EnsembleAgent:
    agent = EnsembleAgent(site, lambda: instance, daemon.post)
    agent.run()
    return agent


def test_jobs_are_submitted_once_with_environment_and_directory(
    instance: Instance,
) -> None:
    both = {**asked("a"), **asked("b", cwd="/data")}
    daemon = Daemon(said(submit=both), said(submit=both), said())
    run(instance, daemon)
    systems = [each.jobspec["attributes"]["system"] for each in instance.submitted]
    assert [each["cwd"] for each in systems] == ["/here", "/data"]
    assert systems[0]["environment"] == {"HOME": "/h"}
    # What is confirmed is reported no more.
    there = {"a": 1, "b": 2}
    told = [dict(each.submitted) for each in daemon.reports[:4]]
    assert told == [{}, there, there, {}]
    assert [each.number for each in daemon.reports] == list(
        range(1, len(daemon.reports) + 1)
    )
    assert daemon.reports[1].jobs[0].id == 1, "the next report has them"


def test_a_lost_answer_submits_nothing_twice(instance: Instance) -> None:
    instance.lost = True
    one = said(submit=asked("a"))
    daemon = Daemon(one, one)
    run(instance, daemon)
    assert len(instance.submitted) == 1
    assert daemon.reports[2].submitted == {"a": 1}


def test_what_the_instance_refuses_is_told(instance: Instance) -> None:
    instance.refuses = "the queue is disabled"
    daemon = Daemon(said(submit=asked("a")))
    run(instance, daemon)
    assert daemon.reports[1].refused == {"a": "the queue is disabled"}


def test_what_the_instance_never_takes_is_told_until_the_daemon_knows(
    instance: Instance,
) -> None:
    instance.refuses, instance.never_takes = "it is too large", True
    one = said(submit=asked("a"))
    daemon = Daemon(one, one, said())
    run(instance, daemon)
    assert len(instance.submitted) == 1
    told = [(dict(each.refused), dict(each.never_taken)) for each in daemon.reports[:4]]
    why = {"a": "it is too large"}
    assert told == [({}, {}), ({}, why), ({}, why), ({}, {})]


def test_how_lost_jobs_ended_is_told_when_asked(instance: Instance) -> None:
    outcome = JobOutcome("completed", 1.0, 2.0)
    instance.outcome = {JobId(7): outcome}
    daemon = Daemon(said(ask=(JobId(7), JobId(8))))
    run(instance, daemon)
    assert daemon.reports[1].outcomes == {7: outcome}


def test_at_the_end_its_jobs_that_wait_are_canceled(instance: Instance) -> None:
    for number, mine in ((1, True), (2, True), (3, False)):
        preferences = MEMBER if mine else BurstPreferences()
        instance.jobs[JobId(number)] = job(number, whole(1), preferences=preferences)
    running = job(4, whole(1), preferences=MEMBER)
    instance.jobs[JobId(4)] = msgspec.structs.replace(running, state=JobState.RUN)
    daemon = Daemon(said(end="enough"))
    run(instance, daemon)
    assert instance.canceled == (1, 2)
    assert set(instance.jobs) == {3, 4}
    assert len(daemon.reports) == 2, "once more, to see that none is left"


def test_its_jobs_of_an_earlier_run_that_wait_are_canceled(instance: Instance) -> None:
    """The ensemble was ended and started again meanwhile. Others are not its jobs."""
    names = {1: "e/m/step/0-a1", 2: "e/m/step/0-b2", 3: "by-hand"}
    for number, name in names.items():
        its = {} if name == "by-hand" else {GROUP: f"step{name[-3:]}"}
        made = job(number, whole(1), preferences=MEMBER, name=name, attributes=its)
        instance.jobs[JobId(number)] = made
    left: list[set[JobId]] = []

    class Watching(Daemon):
        def post(self, report: AgentReport) -> AgentAnswer:
            left.append(set(instance.jobs))
            return super().post(report)

    run(instance, Watching(said(run="-b2")))
    assert left[:2] == [{1, 2, 3}, {2, 3}]


def test_a_daemon_that_cannot_be_reached_is_tried_again(
    instance: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "burst")
    run(instance, Daemon(BurstError("cannot be reached"), said()))
    assert caplog.text.count("cannot be reached; the agent tries again") == 1
    assert "reports again" in caplog.text


def test_an_instance_that_cannot_be_used_is_an_error(instance: Instance) -> None:
    with pytest.raises(ConfigError, match="does not take jobs"):
        run(FakeLead(), Daemon())

    def refuse() -> Lead:
        raise LeadError("this is rank 3 of the instance")

    with pytest.raises(LeadError, match="rank 3"):
        EnsembleAgent(SITE, refuse, Daemon().post).run()
    instance.gone = True
    with pytest.raises(LeadError, match="no instance answered within 0s"):
        run(instance, Daemon())


def test_a_report_has_what_usable_nodes_have_and_a_bounded_number_of_jobs() -> None:
    lead = FakeLead()
    lead.drained = {1: "broken"}
    for number in range(1, JOBS_MOST + 3):
        lead.jobs[JobId(number)] = job(number, whole(1))
    own = job(9999, whole(1), preferences=MEMBER, attributes={GROUP: "step-b2"})
    lead.jobs[own.id] = own
    over = job(0, whole(1))
    lead.jobs[JobId(0)] = msgspec.structs.replace(over, state=JobState.INACTIVE)
    made = make_report("e/m", lead.identity(), lead.observe(), began=1.0, number=1)
    cores = lead.known.shapes[0].cores
    assert (made.nodes.up, made.nodes.cores_up) == (1, cores)
    assert (made.nodes.free, made.nodes.cores_free) == (1, cores)
    assert len(made.jobs) == JOBS_MOST
    assert [(row.id, row.group) for row in made.jobs[:2]] == [
        (9999, "step-b2"),
        (1, ""),
    ], "active jobs are first, its own before others, then by their ids"
    assert made.more == {JobState.SCHED: 3}
