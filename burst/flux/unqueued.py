# SPDX-License-Identifier: MIT
"""Jobs that were there before the instance had named queues.

`burst setup --mode queue` gives an instance without named queues one for its ordinary
jobs. Those that wait for nodes meanwhile are in no queue, and Flux never starts them.
"""

from __future__ import annotations

import logging

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
    jobs = _without_queue(client)
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


def _without_queue(client: RpcClient) -> list[JobId]:
    asked = {
        "max_entries": 0,
        "attrs": ["queue"],
        "constraint": {"states": ["pending"]},
    }
    listed = client.ask("job-list.list", asked)["jobs"]
    return [JobId(job["id"]) for job in listed if not job.get("queue")]
