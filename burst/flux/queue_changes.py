# SPDX-License-Identifier: MIT
"""Jobs that were there before the queues that setup makes, or would be after them.

`burst setup --mode queue` gives an instance without named queues one for its ordinary
jobs. Those that wait for nodes meanwhile are in no queue, and Flux never starts them.
Nor does it start those whose queue is gone, so they have to leave it before that.
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
    """Put jobs without a queue into the default queue, if setup has made that.

    A default queue of a site is left to the site. Raises LeadError.
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
