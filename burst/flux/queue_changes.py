# SPDX-License-Identifier: MIT
"""Finds and moves jobs that wait while `burst setup` adds or removes named queues.

`burst setup --mode queue` gives an instance without named queues one for its ordinary
jobs. Jobs that were submitted before are in no queue, and Flux never starts them. Flux
does not start jobs whose queue is gone either, so they have to leave a queue before it
is removed.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator

from burst import log
from burst.flux.confine import enter_queue
from burst.flux.identity import default_queue
from burst.flux.rpc import RpcClient
from burst.model.confinement import LENT
from burst.model.jobid import JobId, format_f58

_NAMED = 3


def enqueue_jobs(client: RpcClient) -> None:
    """Put jobs without a queue into the default queue, if `burst setup` made that.

    A default queue that the site made is left to the site. Raises LeadError.
    """
    config = client.ask("config.get")
    queue = default_queue(config)
    if config.get("queues", {}).get(queue, {}).get("requires") != [f"^{LENT}"]:
        return
    jobs = [job for job, name in _waiting(client) if not name]
    failures = enter_queue(client, jobs, queue)
    moved = len(jobs) - len(failures)
    if moved:
        log.say(
            "%d jobs from before the instance had queues are in queue %s now",
            moved,
            queue,
        )
    for job, why in list(failures.items())[:_NAMED]:
        log.say(
            "%s is in no queue and never starts: %s; cancel it, and have its user"
            " submit it again",
            format_f58(job),
            why,
            level=logging.WARNING,
        )


def jobs_in_queues(client: RpcClient, queues: Collection[str]) -> list[JobId]:
    """Return the jobs of all users that wait in these queues. Raises LeadError."""
    return [job for job, queue in _waiting(client) if queue in queues]


def _waiting(client: RpcClient) -> Iterator[tuple[JobId, str]]:
    """Yield each job that waits, and its queue, empty for none. By job-list.list."""
    asked = {
        "max_entries": 0,
        "attrs": ["queue"],
        "constraint": {"states": ["pending"]},
    }
    for job in client.ask("job-list.list", asked)["jobs"]:
        yield JobId(job["id"]), str(job.get("queue") or "")
