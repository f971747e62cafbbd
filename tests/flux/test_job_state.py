# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

import msgspec
import pytest

from burst.flux.job_state import JournalEvent, JournalJob, job_from_jobspec
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.resource_set import resource_set

JOB = JobId(7)
SLOT = {"type": "slot", "count": 2, "with": [{"type": "core", "count": 1}]}


def spec(**system: Any) -> bytes:
    system = {"burstable": True, "duration": 60.0, **system}
    jobspec = {"resources": [SLOT], "attributes": {"system": system}}
    return msgspec.json.encode(jobspec)


def job_after(*events: tuple[str, dict[str, Any]], jobspec: bytes = b"") -> JournalJob:
    """Return a job with these events, one second apart, the first at 1.0."""
    job = job_from_jobspec(JOB, jobspec or spec())
    assert job is not None
    for second, (name, context) in enumerate(events, 1):
        job.apply(JournalEvent(float(second), name, context), ALLOCATION)
    return job


ALLOCATION = resource_set({"execution": {"R_lite": [{"rank": "2-3"}, {"rank": "7"}]}})
SUBMIT = ("submit", {"userid": 1000, "urgency": 16, "flags": 0})
VALIDATE: tuple[str, dict[str, Any]] = ("validate", {})
DEPEND: tuple[str, dict[str, Any]] = ("depend", {})
PRIORITY = ("priority", {"priority": 16})
ALLOC: tuple[str, dict[str, Any]] = ("alloc", {})
START: tuple[str, dict[str, Any]] = ("start", {})
FINISH = ("finish", {"status": 0})
RELEASE = ("release", {"ranks": "all", "final": True})
FREE: tuple[str, dict[str, Any]] = ("free", {})
CLEAN: tuple[str, dict[str, Any]] = ("clean", {})
PENDING = (SUBMIT, VALIDATE, DEPEND, PRIORITY)
RUNNING = (*PENDING, ALLOC, START)
ENDED = (FREE, CLEAN)


def exception(kind: str, severity: int = 0) -> tuple[str, dict[str, Any]]:
    return "exception", {"type": kind, "severity": severity, "note": ""}


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ((SUBMIT,), JobState.DEPEND),
        ((SUBMIT, VALIDATE), JobState.DEPEND),
        ((SUBMIT, VALIDATE, DEPEND), JobState.PRIORITY),
        (PENDING, JobState.SCHED),
        ((*PENDING, ("urgency", {"urgency": 0})), JobState.PRIORITY),
        ((*PENDING, ("urgency", {"urgency": 0}), PRIORITY), JobState.SCHED),
        ((*PENDING, ("flux-restart", {})), JobState.PRIORITY),
        ((*PENDING, ("jobspec-update", {})), JobState.PRIORITY),
        ((*PENDING, ALLOC), JobState.RUN),
        (RUNNING, JobState.RUN),
        ((*RUNNING, ("flux-restart", {})), JobState.RUN),
        ((*RUNNING, DEPEND), JobState.RUN),
        ((*RUNNING, PRIORITY), JobState.RUN),
        ((*RUNNING, exception("oom", 1)), JobState.RUN),
        ((*RUNNING, exception("exec")), JobState.CLEANUP),
        ((*RUNNING, exception("exec"), ALLOC), JobState.CLEANUP),
        ((*RUNNING, FINISH), JobState.CLEANUP),
        ((*RUNNING, FINISH, RELEASE), JobState.CLEANUP),
        ((*RUNNING, FINISH, *ENDED), JobState.INACTIVE),
        ((*RUNNING, FINISH, *ENDED, exception("late")), JobState.INACTIVE),
        ((*PENDING, exception("cancel"), FINISH), JobState.CLEANUP),
        ((SUBMIT, ("invalidate", {})), JobState.INACTIVE),
        ((*PENDING, ("memo", {"burst": 1})), JobState.SCHED),
    ],
)
def test_state_after_events(events, state):
    assert job_after(*events).view().state is state


@pytest.mark.parametrize(
    ("events", "result"),
    [
        (RUNNING, ""),
        ((*RUNNING, FINISH, *ENDED), "completed"),
        ((*RUNNING, ("finish", {"status": 256}), *ENDED), "failed"),
        ((*RUNNING, exception("exec"), *ENDED), "failed"),
        ((*PENDING, exception("cancel"), CLEAN), "canceled"),
        (
            (*RUNNING, exception("timeout"), ("finish", {"status": 9}), *ENDED),
            "timeout",
        ),
        ((*RUNNING, exception("cancel"), exception("exec"), *ENDED), "canceled"),
        ((*RUNNING, exception("cancel"), FINISH, *ENDED), "canceled"),
        ((*RUNNING, exception("note", 1), FINISH, *ENDED), "completed"),
        ((*RUNNING, FINISH, exception("epilog"), *ENDED), "completed"),
    ],
)
def test_result_as_flux_jobs_shows_it(events, result):
    assert job_after(*events).view().result == result


def test_an_update_of_the_jobspec_is_told():
    update = {
        "attributes.system.duration": 90.0,
        "attributes.system.queue": "big",
        "attributes.new.key": 1,
    }
    view = job_after(*PENDING, ("jobspec-update", update), PRIORITY).view()
    assert view.duration == 90.0
    assert view.queue == "big"
    assert view.state is JobState.SCHED


def dependency(what: str, name: str) -> tuple[str, dict[str, Any]]:
    return f"dependency-{what}", {"description": name}


def test_it_may_start_once_its_dependencies_and_begin_time_are_over():
    job = job_after(SUBMIT, dependency("add", "begin-time=9"))
    assert job.view().t_eligible == 0
    job.apply(JournalEvent(9.0, "depend", {}), None)
    assert job.view().t_eligible == 9.0


def test_the_limits_of_flux_accounting_that_hold_a_job_are_told():
    nodes, jobs = "max-resources-user-limit", "max-running-jobs-user-limit"
    held = (
        SUBMIT,
        dependency("add", "after-success=f6c4XXkB"),
        dependency("add", jobs),
        dependency("add", nodes),
        dependency("add", jobs),
    )
    assert job_after(*held).view().dependencies == (jobs, nodes)
    left = (*held, dependency("remove", jobs))
    assert job_after(*left).view().dependencies == (nodes,)
    none = (*left, dependency("remove", nodes), dependency("remove", "x"), DEPEND)
    assert job_after(*none).view().dependencies == ()


def test_an_urgency_is_told_before_its_priority():
    job = job_after(*PENDING)
    job.apply(JournalEvent(9.0, "urgency", {"urgency": 31, "userid": 0}), None)
    assert job.view().urgency == 31
    assert job.view().priority == 16


def test_the_view_is_the_same_value_until_something_changed():
    job = job_after(*PENDING)
    first = job.view()
    job.apply(JournalEvent(9.0, "memo", {"burst": {}}), None)
    assert job.view() is first
    job.apply(JournalEvent(9.0, "urgency", {"urgency": 0}), None)
    assert job.view() is not first


@pytest.mark.parametrize(
    ("jobspec", "why"),
    [
        (spec(burst="x"), "burst"),
        (spec(duration="x"), "duration"),
        (b'{"attributes":{"system":{"burstable":1}}}', "resources"),
        (b'{"attributes":{"system":{"burstable":1}', "jobspec"),
        (b"[" * 100_000, "jobspec"),
    ],
)
def test_a_jobspec_that_cannot_be_read_is_told(jobspec, why):
    view = job_after(*PENDING, jobspec=jobspec).view()
    assert view.request is None
    assert why in view.unreadable
    assert view.state is JobState.SCHED


@pytest.mark.parametrize(
    "event",
    [
        ("urgency", {"urgency": "x"}),
        ("dependency-add", {}),
        ("urgency", {}),
        ("finish", {}),
        ("jobspec-update", {"resources.0.count": 1}),
    ],
)
def test_an_event_that_cannot_be_read_is_told(event):
    view = job_after(*PENDING, event).view()
    assert view.request is None
    assert event[0] in view.unreadable


def test_the_first_event_that_cannot_be_read_is_the_one_told():
    view = job_after(*PENDING, ("urgency", {}), ("finish", {})).view()
    assert "urgency" in view.unreadable


@pytest.mark.parametrize("value", [False, None, 0, ""])
def test_only_a_true_attribute_counts(value):
    assert job_from_jobspec(JOB, spec(burstable=value)) is None


def test_only_annotations_that_drop_the_memos_are_kept() -> None:
    told = ("annotations", {"annotations": {"user": {"burst": {"state": "waiting"}}}})
    dropped = ("annotations", {"annotations": None})
    job = job_after(*PENDING, told)
    before = job.view()
    job.apply(JournalEvent(9.0, *told), None)
    assert job.view() is before
    assert before.memos_dropped == 0
    job.apply(JournalEvent(9.0, *dropped), None)
    assert job.view().memos_dropped == 1


def test_a_job_that_was_submitted_held_is_until_somebody_touches_that() -> None:
    held = ("submit", {"userid": 1000, "urgency": 0, "flags": 0})
    again = ("urgency", {"urgency": 0, "userid": 0})
    assert job_after(held, *PENDING[1:]).view().held_at_submit
    assert not job_after(held, *PENDING[1:], again).view().held_at_submit
    assert not job_after(*PENDING, again).view().held_at_submit


def test_what_runs_before_its_start() -> None:
    before = (SUBMIT, VALIDATE, DEPEND, PRIORITY, ALLOC)
    begun = ("prolog-start", {"description": "job-manager.prolog"})
    over = ("prolog-finish", {"description": "job-manager.prolog", "status": 0})
    assert job_after(*before, begun).view().prologs == {"job-manager.prolog": 6.0}
    assert job_after(*before, begun, over).view().prologs == {}
    unknown: tuple[str, dict[str, Any]] = ("prolog-start", {})
    assert job_after(*before, unknown).view().unreadable


def test_what_runs_after_its_end() -> None:
    begun = ("epilog-start", {"description": "job-manager.epilog"})
    over = ("epilog-finish", {"description": "job-manager.epilog", "status": 0})
    ended = (*RUNNING, FINISH)
    at = float(len(ended) + 1)
    assert job_after(*ended, begun).view().epilogs == {"job-manager.epilog": at}
    assert job_after(*ended, begun, over).view().epilogs == {}
