# SPDX-License-Identifier: MIT
"""The decision on a job that an isolated burst runs, and what the job's memo says.

The key of a job's record names the burst and the job. So a job is known to run there,
or to have run, even if the record of the burst itself cannot be read or is gone. Then
the job is run neither here nor in another burst.
"""

from __future__ import annotations

from collections.abc import Mapping

from burst.core.actions import EndJob
from burst.core.job_memo import memo
from burst.core.losses import cause_of_loss
from burst.core.provider_health import Outcome
from burst.core.records import RecordsView, Transaction
from burst.model.burst import ISOLATED_STEM, Burst, BurstId
from burst.model.decision import GUESTS_WORDS, Decision
from burst.model.jobid import JobId
from burst.model.reason import Reason

_OUTPUT_IN_MEMO = 1000
"""Characters of the end of the output that are in the job's memo."""
_JOB_PREFIX = f"job/{ISOLATED_STEM}-"


def jobs_elsewhere(records: RecordsView) -> dict[JobId, Decision]:
    """Return the decisions on jobs that run, or may have run, in isolated bursts."""
    why = "its record cannot be read"
    lost = {
        job: Decision(Reason.ISOLATED_QUARANTINED, {"burst": burst, "why": why})
        for job, burst in lost_isolated_jobs(records).items()
    }
    known = {
        job: decide(burst)
        for burst in records.bursts.values()
        if burst.may_have_run
        for job in burst.jobs
    }
    return lost | known


def lost_isolated_jobs(records: RecordsView) -> Mapping[JobId, BurstId]:
    """Return the isolated burst of each job that may run in an unknown burst."""
    found: dict[JobId, BurstId] = {}
    for key in records.unreadable:
        burst, _, job = key.removeprefix("job/").partition("/")
        if not key.startswith(_JOB_PREFIX) or not job.isdecimal():
            continue
        if burst not in records.bursts:
            found[JobId(int(job))] = BurstId(burst)
    return found


def decide(burst: Burst, message: str = "", reported: str = "") -> Decision:
    """Return the decision on a job that runs, or may have run, in an isolated burst.

    `message` is what its provider says of the burst, after a colon; guests read
    `reported` in its place.
    """
    if burst.quarantined:
        facts = {"burst": burst.id, "why": burst.quarantined}
        return Decision(Reason.ISOLATED_QUARANTINED, facts)
    if burst.may_have_run:
        word, how = _outcome(burst)
        return Decision(
            _reason_of_end(burst), {"burst": burst.id, "how": how, "word": word}
        )
    facts = {"burst": burst.id, "state": burst.state.value, "words": message}
    facts[GUESTS_WORDS] = reported
    return Decision(Reason.ISOLATED_ACTIVE, facts)


def end_job(tx: Transaction, burst: Burst, job: JobId) -> EndJob:
    """Return the action that ends a job whose isolated burst ran it, or may have."""
    decision = decide(burst)
    text = {**(memo(decision) or {}), "burst": str(burst.id)}
    output = tx.outputs.get(burst.id)
    if output is not None:
        text["output"] = output[-_OUTPUT_IN_MEMO:]
    return EndJob(job, text, decision.text(), burst.exit_status, output or "")


def finish_words(burst: Burst, status: int) -> str:
    """Return how the program of a burst ended, and what followers it had lost."""
    why = (cause_of_loss(burst) or burst.reclaimed) if status else ""
    return f"exit status {status}" + (f"; {why}" if why else "")


def _reason_of_end(burst: Burst) -> Reason:
    if burst.exception == Outcome.SPEC.value:
        return Reason.ISOLATED_REFUSED
    if burst.exit_status is None:
        return Reason.ISOLATED_LOST
    return Reason.ISOLATED_DONE


def _outcome(burst: Burst) -> tuple[str, str]:
    """Return how an isolated burst ended: for a column, and in words."""
    if burst.exit_status is not None:
        words = finish_words(burst, burst.exit_status)
        return f"exit {burst.exit_status}", words
    notes = [e.context["note"] for e in burst.events if e.name == "exception"]
    return burst.exception, f"{burst.exception}: {notes[-1]}"
