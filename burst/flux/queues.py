# SPDX-License-Identifier: MIT
"""Queues: their state, what intake mode `queue` needs of them, and who waits in them.

The state is from the job manager (its queue.c; `flux queue status`).

`burst setup --mode queue` gives an instance without named queues one for its ordinary
jobs. Jobs that were submitted before are in no queue, and Flux never starts them. Flux
does not start jobs whose queue is gone either, so they have to leave a queue before it
is removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from burst import log
from burst.config import IntakeSettings
from burst.errors import BurstError, ConfigError, LeadGone, Unreadable
from burst.flux.confine import enter_queue
from burst.flux.identity import default_queue
from burst.flux.rpc import RpcClient
from burst.flux.scheduler import OR_HOLD
from burst.model.confinement import LENT
from burst.model.jobid import JobId, format_f58
from burst.model.lead import QueueView

_LIST = "job-manager.queue-list"
_STATUS = "job-manager.queue-status"
_NAMED = 3


def read_queues(client: RpcClient) -> Mapping[str, QueueView]:
    """Return the state of all queues, or of the anonymous one if none has a name.

    Queues come and go by `flux config reload`, so they are asked for each time. A queue
    that goes between the two requests is left out. Raises Unreadable, LeadGone.
    """
    asked = client.ask(_LIST)["queues"] or [""]
    answers = client.ask_all((_STATUS, {"name": n} if n else {}) for n in asked)
    found = {}
    for name, answer in zip(asked, answers, strict=True):
        if isinstance(answer, LeadGone | Unreadable):
            raise answer
        if not isinstance(answer, BurstError):
            found[name] = _queue(answer)
    return found


def prepare_queues(client: RpcClient, intake: IntakeSettings) -> None:
    """Stop the queue in which jobs wait, start the other. Raises ConfigError.

    The other stays stopped while all queues of the site are, as `flux queue stop --all`
    leaves them for a maintenance, over restarts too: no nodes are rented then.
    """
    tables = client.ask("config.get").get("queues", {})
    ours = (intake.queue, intake.ready)
    for name in ours:
        _check_queue(tables, name)
    found = read_queues(client)
    others = [queue for name, queue in found.items() if name not in ours]
    is_paused = bool(others) and not any(queue.started for queue in others)
    waiting, ready = (found.get(name) for name in ours)
    if waiting is not None and waiting.started:
        _set_started(client, intake.queue, False)
    if ready is not None and not ready.started and not is_paused:
        _set_started(client, intake.ready, True)


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
        log.warn(
            "%s is in no queue and never starts: %s; cancel it, and have its user"
            " submit it again",
            format_f58(job),
            why,
        )


def jobs_in_queues(client: RpcClient, queues: Collection[str]) -> list[JobId]:
    """Return the jobs of all users that wait in these queues. Raises LeadError."""
    return [job for job, queue in _waiting(client) if queue in queues]


def _queue(status: Mapping[str, Any]) -> QueueView:
    why = status.get("stop_reason") or status.get("disable_reason") or ""
    return QueueView(
        started=bool(status["start"]), enabled=bool(status["enable"]), reason=str(why)
    )


def _check_queue(tables: Mapping[str, Any], name: str) -> None:
    advice = f"burst setup writes [queues.{name}] for the lead's configuration"
    if name not in tables:
        raise ConfigError(
            f"[intake] mode is queue, but the instance has no queue {name}",
            f"{advice}, {OR_HOLD}",
        )
    if not tables[name].get("requires"):
        raise ConfigError(
            f"queue {name} already exists and requires no property, so it may be for"
            " jobs other than burst jobs",
            'give it requires = ["burst"], or name another queue under [intake];'
            f" {advice}",
        )


def _set_started(client: RpcClient, name: str, start: bool) -> None:
    """Start or stop a queue of ours; named queues come up stopped, the first time."""
    client.ask(
        "job-manager.queue-start",
        {
            "name": name,
            "start": start,
            "all": False,
            **({} if start else {"reason": "burst jobs wait here for their nodes"}),
        },
    )


def _waiting(client: RpcClient) -> Iterator[tuple[JobId, str]]:
    """Yield each job that waits, and its queue, empty for none. By job-list.list."""
    asked = {
        "max_entries": 0,
        "attrs": ["queue"],
        "constraint": {"states": ["pending"]},
    }
    for job in client.ask("job-list.list", asked)["jobs"]:
        yield JobId(job["id"]), str(job.get("queue") or "")
