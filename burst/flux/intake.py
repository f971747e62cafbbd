# SPDX-License-Identifier: MIT
"""Prepares Flux's queues for intake mode `queue`, and tells sched-burst of leases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burst.config import IntakeSettings
from burst.errors import ConfigError, LeadError
from burst.flux.queues import read_queues
from burst.flux.rpc import RpcClient, ServiceMissing
from burst.flux.scheduler import SCHEDULER
from burst.model.jobid import JobId, format_f58
from burst.model.lead import LeasedRanks
from burst.model.ranks import format_idset

QUEUE = "attributes.system.queue"
_HOLD = 'or set [intake] mode = "hold", which needs no setup'


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


def send_leases(client: RpcClient, leases: LeasedRanks) -> None:
    """Tell sched-burst which ranks are leased for which jobs. Raises LeadError."""
    jobs = {str(int(job)): format_idset(ranks) for job, ranks in leases.jobs.items()}
    try:
        client.ask(
            f"{SCHEDULER}.lend", {"jobs": jobs, "ranks": format_idset(leases.ranks)}
        )
    except ServiceMissing:
        first = ", ".join(format_f58(job) for job in list(leases.jobs)[:3])
        waiting = f"; {first} and others wait" if first else ""
        raise LeadError(
            f"{SCHEDULER} is not loaded any more{waiting}",
            f"run flux modprobe load {SCHEDULER}, {_HOLD}",
        ) from None


def send_starts(client: RpcClient, starts: Mapping[JobId, float]) -> None:
    """Tell sched-burst when pending jobs are expected to start. Raises LeadError."""
    told = {str(int(job)): at for job, at in starts.items()}
    client.ask(f"{SCHEDULER}.starts", {"starts": told})


def _check_queue(tables: Mapping[str, Any], name: str) -> None:
    advice = f"burst setup writes [queues.{name}] for the lead's configuration"
    if name not in tables:
        raise ConfigError(
            f"[intake] mode is queue, but the instance has no queue {name}",
            f"{advice}, {_HOLD}",
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
