# SPDX-License-Identifier: MIT
"""Changes the constraint of pending jobs, so that each has its own lent nodes only.

`flux update` changes no constraint, and moves no job that has one of its own (the job
manager's update.c and queue.c). But the instance owner may post the event itself, by
`job-manager.post-event.post` (flux-core 0.61 or later): `jobspec-update` (RFC 21). The
job manager then has the job wait for a priority again, takes back its request to the
scheduler, and sends another with the new jobspec (event.c). The event is in the job's
eventlog, from which the job manager makes the jobspec again after a restart.

The same event gives a queue to a job that was submitted while the instance had no named
queues. Once it has named queues, Flux does not start a job without one, and `flux
update` cannot give it one ("a named queue is required").
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from burst.errors import MALFORMED, BurstError
from burst.flux.finish_job import POST
from burst.flux.rpc import Query, RpcClient
from burst.lead import JobFailures
from burst.model.confinement import confine, confine_waiting
from burst.model.jobid import JobId

QUEUE = "attributes.system.queue"
_CONSTRAINTS = "attributes.system.constraints"
_GETATTR = "job-manager.getattr"


def confine_jobs(
    client: RpcClient,
    lent: Mapping[JobId, frozenset[int]],
    queues: Mapping[JobId, str] = {},
) -> JobFailures:
    """Confine each job to its lent ranks; in the same event, move those in `queues`.

    A job that is moved without any rank waits in a queue that starts no job.
    """
    return _change(
        client,
        lent,
        lambda job, constraint: _update(constraint, lent[job], queues.get(job, "")),
    )


def enter_queue(client: RpcClient, jobs: Collection[JobId], queue: str) -> JobFailures:
    """Put jobs without a queue into this one, and keep them off all lent ranks."""
    none: frozenset[int] = frozenset()
    return _change(
        client,
        jobs,
        lambda _, own: {QUEUE: queue, _CONSTRAINTS: confine(own, none)},
    )


def _change(
    client: RpcClient,
    jobs: Collection[JobId],
    update: Callable[[JobId, Any], dict[str, Any]],
) -> JobFailures:
    """Change jobspecs; `update` makes the change from a job and its constraint."""
    failures: dict[JobId, str] = {}
    queries: dict[JobId, Query] = {}
    asked = ((_GETATTR, {"id": job, "attrs": ["jobspec"]}) for job in jobs)
    for job, answer in zip(jobs, client.ask_all(asked), strict=True):
        if isinstance(answer, BurstError):
            failures[job] = str(answer)
            continue
        try:
            system = answer["jobspec"]["attributes"]["system"]
            context = update(job, system.get("constraints"))
        except MALFORMED as error:
            failures[job] = f"its jobspec cannot be read: {error!r}"
            continue
        event = {"id": job, "name": "jobspec-update", "context": context}
        queries[job] = (POST, event)
    answers = client.ask_all(queries.values())
    for job, answer in zip(queries, answers, strict=True):
        if isinstance(answer, BurstError):
            failures[job] = str(answer)
    return failures


def _update(constraint: Any, ranks: frozenset[int], queue: str) -> dict[str, Any]:
    if not queue:
        return {_CONSTRAINTS: confine(constraint, ranks)}
    changed = confine(constraint, ranks) if ranks else confine_waiting(constraint)
    return {QUEUE: queue, _CONSTRAINTS: changed}
