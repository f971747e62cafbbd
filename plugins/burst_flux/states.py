# SPDX-License-Identifier: MIT
"""What the state of a burst's job in the other instance means, in words.

Sources: RFC 21 (states), flux-jobs(1), and flux-accounting's names of dependencies.
"""

from __future__ import annotations

from burst.kits.job_tasks import JobSeen
from burst.provider import Failure, Phase
from burst_flux.jobs import FluxJob

SETTLES_S = 60.0
"""Seconds for which a job must have waited for a stopped queue or a used-up limit until
that counts as want of capacity: a queue may be stopped for a moment, and jobs that end
free limits. A job counts as forgotten only after it was missing for so long: the module
job-list learns of jobs some time after their submission."""
_PENDING = ("DEPEND", "PRIORITY", "SCHED")
_CANCELED, _REFUSED = "cancel", "alloc"
_ENDED = {
    _CANCELED: "was canceled",
    _REFUSED: "can never run there",
    "timeout": "has reached its time limit",
}

UNLISTED = JobSeen(
    Phase.PENDING, "its job is not listed there, and how it ended is not known"
)
FORGOTTEN = JobSeen(Phase.FAILED, "its job is not known there any more")


def may_start(job: FluxJob) -> bool:
    """Return whether the job waits for nothing but nodes and its queue."""
    return job.state == "SCHED" and job.urgency > 0


def is_stuck(job: FluxJob, closed: str) -> bool:
    """Return whether the job waits for what fails the burst once it has lasted."""
    return job.state in _PENDING and _pending(job, closed)[1]


def describe(job: FluxJob, now: float, closed: str = "", stuck: float = 0.0) -> JobSeen:
    """Return what a job's state means.

    `closed`: why no job starts in its queue. `stuck`: for how many seconds each look at
    the job has found that it `is_stuck`.
    """
    phase, what, failure = _classify(job, closed, stuck)
    why = f"Flux job {job.jobid} {what}" if what else ""
    return JobSeen(phase, why, failure, now - job.t_run)


def _classify(job: FluxJob, closed: str, stuck: float) -> tuple[Phase, str, Failure]:
    error = job.exception
    fatal = error.type if error.severity == 0 else ""
    if job.over:
        ended = "has ended, as all its followers have"
        what = _ENDED.get(
            fatal, f"has failed with exception {fatal}" if fatal else ended
        )
        refused = fatal == _REFUSED
        return (
            Phase.FAILED,
            ": ".join(filter(None, (what, error.note if fatal else ""))),
            Failure.REFUSED if refused else Failure.OTHER,
        )
    if job.state == "CLEANUP":
        # Flux lists its exception only once it is over, which tells why it ends.
        return Phase.PENDING, "is ending", Failure.OTHER
    if job.state == "RUN":
        return Phase.RUNNING, "", Failure.OTHER
    what, scarce = _pending(job, closed)
    if scarce and stuck >= SETTLES_S:
        return Phase.FAILED, what, Failure.CAPACITY
    return Phase.PENDING, what, Failure.OTHER


def _pending(job: FluxJob, closed: str) -> tuple[str, bool]:
    """Return what a job waits for, and whether that is a want of capacity."""
    if "singleton" in job.dependencies:
        return "waits until an earlier job of this burst has ended", False
    if job.dependencies:
        text = ", ".join(job.dependencies)
        limit = any(each.startswith("max-") for each in job.dependencies)
        used = f"waits, as a limit of its user or bank is used up ({text})"
        return (used, True) if limit else (f"waits for {text}", False)
    if job.urgency == 0:
        return f"is held: `flux job urgency {job.jobid} default` releases it", False
    if job.state == "SCHED":
        stopped = f"waits in a queue that is {closed}"
        return (stopped, True) if closed else ("waits for nodes", False)
    return "waits for its priority", False
