# SPDX-License-Identifier: MIT
"""What a job of the other instance means for its burst: the table, and the status."""

from __future__ import annotations

from typing import Any

import pytest
from burst_flux.jobs import FluxJob, JobException
from burst_flux.states import SETTLES_S, describe, is_stuck

from burst.provider import Failure, Phase


def job(state: str, **fields: Any) -> FluxJob:
    return FluxJob(jobid="f1", name="burst.o.p.b", state=state, t_submit=0.0, **fields)


def ended(state: str, kind: str, note: str = "", severity: int = 0) -> FluxJob:
    return job(state, exception=JobException(kind, severity, note))


SINGLETON = "waits until an earlier job of this burst has ended"
LIMIT = "waits, as a limit of its user or bank is used up (max-run-jobs-queue)"
STOPPED = "waits in a queue that is stopped"


@pytest.mark.parametrize(
    ("given", "phase", "what"),
    [
        (job("DEPEND", dependencies=("singleton",)), Phase.PENDING, SINGLETON),
        (job("DEPEND", dependencies=("begin-time=9",)), Phase.PENDING, "begin-time=9"),
        (job("DEPEND", dependencies=("max-run-jobs-queue",)), Phase.PENDING, LIMIT),
        (job("PRIORITY"), Phase.PENDING, "waits for its priority"),
        (job("SCHED"), Phase.PENDING, "waits for nodes"),
        (job("SCHED", urgency=0), Phase.PENDING, "`flux job urgency f1 default`"),
        (job("RUN"), Phase.RUNNING, ""),
        (ended("RUN", "warning", "a note", 1), Phase.RUNNING, ""),
        (job("CLEANUP"), Phase.PENDING, "is ending"),
        (job("INACTIVE"), Phase.FAILED, "has ended, as all its followers have"),
        (ended("INACTIVE", "cancel", "by ann"), Phase.FAILED, "was canceled: by ann"),
        (ended("INACTIVE", "exec", "no shell"), Phase.FAILED, "exec: no shell"),
        (ended("INACTIVE", "timeout"), Phase.FAILED, "has reached its time limit"),
        (ended("INACTIVE", "warning", "x", 1), Phase.FAILED, "has ended, as all"),
    ],
)
def test_each_state_is_told_in_words(given: FluxJob, phase: Phase, what: str) -> None:
    assert is_stuck(given, "") is (what is LIMIT)
    seen = describe(given, 1.0)
    assert seen.phase is phase
    assert seen.failure is Failure.OTHER
    assert what in seen.why
    assert seen.why.startswith("Flux job f1 ") or not what


def test_what_the_scheduler_refuses_is_refused() -> None:
    seen = describe(ended("INACTIVE", "alloc", "unsatisfiable request"), 1.0)
    assert (seen.phase, seen.failure) == (Phase.FAILED, Failure.REFUSED)
    assert seen.why == "Flux job f1 can never run there: unsatisfiable request"


@pytest.mark.parametrize(
    ("given", "closed", "what"),
    [
        (job("SCHED"), "stopped", STOPPED),
        (job("DEPEND", dependencies=("max-run-jobs-queue",)), "", LIMIT),
    ],
)
def test_want_of_capacity_is_told_once_it_has_lasted(
    given: FluxJob, closed: str, what: str
) -> None:
    assert is_stuck(given, closed)
    early = describe(given, 3600.0, closed, SETTLES_S - 1)
    assert early.phase is Phase.PENDING
    seen = describe(given, 3600.0, closed, SETTLES_S)
    assert (seen.phase, seen.failure) == (Phase.FAILED, Failure.CAPACITY)
    assert seen.why == f"Flux job f1 {what}"


@pytest.mark.parametrize(
    ("state", "expiration", "is_leaving"),
    [
        ("RUN", 0.0, False),
        ("RUN", 1036.0, False),
        ("RUN", 1034.0, True),
        ("CLEANUP", 0.0, True),
    ],
)
def test_a_job_that_flux_ends_by_itself_is_leaving(
    state: str, expiration: float, is_leaving: bool
) -> None:
    found = job(state, expiration=expiration)
    assert found.is_leaving(1000.0) is is_leaving
