# SPDX-License-Identifier: MIT
"""Submits jobs, finds jobs by their names, and reads jobs that have ended."""

from __future__ import annotations

import errno
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from burst.errors import BurstError, LeadError, LeadGone, Unreadable
from burst.flux.connection import Connection
from burst.flux.rpc import ANSWER_DEADLINE_S, RequestFailed, RpcClient, decode_response
from burst.lead import NewJob
from burst.model.active_job import JobOutcome
from burst.model.jobid import JobId

# As RFC 43 and libjob/job.h number them.
_INACTIVE = 64
_RESULTS = {1: "completed", 2: "failed", 4: "canceled", 8: "timeout"}
# How many jobs are sent before the first answer is awaited.
_IN_FLIGHT = 256


def submit_jobs(handle: Connection, jobs: Sequence[NewJob]) -> list[JobId | BurstError]:
    """See `burst.lead.JobSubmitter`. Nothing else may use the handle meanwhile."""
    found: list[JobId | BurstError] = []
    for begin in range(0, len(jobs), _IN_FLIGHT):
        sent = [_send(handle, job) for job in jobs[begin : begin + _IN_FLIGHT]]
        found += [_answer(handle, future) for future in sent]
    return found


def find_jobs(client: RpcClient, names: Collection[str]) -> dict[str, JobId]:
    """See `burst.lead.JobSubmitter`. By job-list.list (RFC 43).

    Each name is asked for by itself: a request may make only so many comparisons of a
    name with a job (`[job-list] max_comparisons`, a million by default).
    """
    answers = client.ask_each(
        (
            "job-list.list",
            {
                "max_entries": 0,
                "attrs": ["name"],
                "constraint": {"name": [name]},
                "since": 0.0,
            },
        )
        for name in sorted(names)
    )
    found = {}
    for name, answer in zip(sorted(names), answers, strict=True):
        if answer["jobs"]:
            found[name] = JobId(max(job["id"] for job in answer["jobs"]))
    return found


def job_outcomes(client: RpcClient, jobs: Collection[JobId]) -> dict[JobId, JobOutcome]:
    """See `burst.lead.JobSubmitter`. By job-list.list-id (RFC 43)."""
    attributes = ["state", "result", "t_run", "t_cleanup", "t_inactive"]
    order = sorted(jobs)
    answers = client.ask_all(
        ("job-list.list-id", {"id": job, "attrs": attributes}) for job in order
    )
    found = {}
    for job, answer in zip(order, answers, strict=True):
        if isinstance(answer, RequestFailed) and answer.errnum == errno.ENOENT:
            continue
        if isinstance(answer, BurstError):
            raise answer
        told = answer["job"]
        if told["state"] == _INACTIVE:
            ended = told.get("t_cleanup") or told.get("t_inactive", 0.0)
            result = _RESULTS.get(told.get("result", 0), "failed")
            found[job] = JobOutcome(result, told.get("t_run", 0.0), ended)
    return found


def _send(handle: Connection, job: NewJob) -> Any:
    try:
        return handle.submit_job(msgspec.json.encode(job.jobspec), job.urgency)
    except LeadGone:
        raise
    except LeadError as error:
        return error


def _answer(handle: Connection, future: Any) -> JobId | BurstError:
    if isinstance(future, BurstError):
        return future
    try:
        return JobId(handle.submitted_job(future, ANSWER_DEADLINE_S))
    except (LeadGone, Unreadable):
        raise
    except LeadError as error:
        return error


_ABSENT = (errno.EINVAL, errno.ENOENT)
"""What is answered for a job that the job manager does not have, and for an attribute
that the job lacks."""


def read_ended(client: RpcClient, jobs: Collection[JobId]) -> dict[JobId, bytes]:
    """Return `eventlog`, `jobspec` and `R` of each job, in a JSON object.

    It is for jobs that ended before the journal was opened, which sends active jobs
    only. The job manager keeps a job that has ended until it is purged, also over a
    restart of the instance (Flux's getattr.c and restart.c). The KVS, where job-info
    finds jobs, gets the last events of a job only a moment after its end.
    Jobs that Flux has purged are left out. Raises LeadGone, Unreadable, LeadError.
    """
    found = _read(client, jobs, "eventlog", "jobspec")
    # Read separately, as a job that never ran has no R.
    for job, allocated in _read(client, found, "R").items():
        found[job] = b"%b,%b" % (found[job][:-1], allocated[1:])
    return found


def _read(
    client: RpcClient, jobs: Collection[JobId], *attributes: str
) -> dict[JobId, bytes]:
    asked = (("job-manager.getattr", {"id": job, "attrs": attributes}) for job in jobs)
    found: dict[JobId, bytes] = {}
    for job, (topic, response) in zip(jobs, client.exchange(asked), strict=True):
        if response.errnum == 0:
            # Not decoded here: what its user wrote may nest too deeply.
            found[job] = response.payload
        elif response.errnum not in _ABSENT:
            error = decode_response(topic, response)
            assert isinstance(error, BurstError)
            raise error
    return found
