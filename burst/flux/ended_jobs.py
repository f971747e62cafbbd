# SPDX-License-Identifier: MIT
"""Reads jobs that had ended when the journal was opened, which sends active ones."""

from __future__ import annotations

from collections.abc import Collection

from burst.errors import BurstError
from burst.flux.rpc import RpcClient
from burst.model.jobid import JobId


def read_ended(client: RpcClient, jobs: Collection[JobId]) -> dict[JobId, bytes]:
    """Return each job with all its events, as the journal sends an active one.

    By job-info.lookup, whose values are text. Jobs that Flux has purged are left out.
    Raises LeadGone, Unreadable.
    """
    request = {"keys": ["eventlog", "jobspec"], "flags": 0}
    queries = [("job-info.lookup", {"id": job, **request}) for job in jobs]
    found = zip(jobs, client.ask_all(queries), strict=True)
    return {
        job: _entry(job, answer["eventlog"], answer["jobspec"])
        for job, answer in found
        if not isinstance(answer, BurstError)
    }


def _entry(job: JobId, eventlog: str, jobspec: str) -> bytes:
    events = ",".join(eventlog.splitlines())
    return f'{{"id":{job},"events":[{events}],"jobspec":{jobspec}}}'.encode()
