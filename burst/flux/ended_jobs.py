# SPDX-License-Identifier: MIT
"""Reads jobs that ended before the journal was opened, which sends active jobs only."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from burst.errors import BurstError
from burst.flux.rpc import RpcClient
from burst.model.jobid import JobId


def read_ended(client: RpcClient, jobs: Collection[JobId]) -> dict[JobId, bytes]:
    """Return each job with all its events, as the journal sends an active one.

    They are read by job-info.lookup, whose values are text. Jobs that Flux has purged
    are left out. Raises LeadGone, Unreadable.
    """
    found = _look_up(client, jobs, "eventlog", "jobspec")
    # Looked up separately, as a job that never ran has no R.
    allocated = _look_up(client, found, "R")
    return {job: _entry(job, found[job], allocated.get(job)) for job in found}


def _look_up(
    client: RpcClient, jobs: Collection[JobId], *keys: str
) -> dict[JobId, Mapping[str, str]]:
    request = {"keys": keys, "flags": 0}
    queries = [("job-info.lookup", {"id": job, **request}) for job in jobs]
    found = zip(jobs, client.ask_all(queries), strict=True)
    return {job: answer for job, answer in found if not isinstance(answer, BurstError)}


def _entry(
    job: JobId, found: Mapping[str, str], allocated: Mapping[str, str] | None
) -> bytes:
    events = ",".join(found["eventlog"].splitlines())
    parts = [f'"id":{job}', f'"events":[{events}]', f'"jobspec":{found["jobspec"]}']
    if allocated:
        parts.append(f'"R":{allocated["R"]}')
    return f"{{{','.join(parts)}}}".encode()
