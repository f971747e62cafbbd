# SPDX-License-Identifier: MIT
"""Queues and scheduler of Flux, for the intake modes `queue` and `scheduler`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burst.config import IntakeSettings
from burst.errors import ConfigError, LeadError, Unreadable
from burst.flux.rpc import RpcClient, ServiceMissing
from burst.model.jobid import JobId, format_f58
from burst.model.lead import LeasedRanks
from burst.model.ranks import format_idset

SCHEDULER = "sched-burst"
"""Name of our scheduler module, and of its service."""
QUEUE = "attributes.system.queue"
# Of Flux, and of flux-sched, whose queues have the policy EASY or another like it.
_BACKFILLING = ("sched-backfill", "sched-fluxion-qmanager")
_HOLD = 'or set [intake] mode = "hold", which needs nothing'


def prepare_queues(client: RpcClient, intake: IntakeSettings) -> None:
    """Stop the queue in which jobs wait, start the other. Raises ConfigError."""
    tables = client.ask("config.get").get("queues", {})
    for name in (intake.queue, intake.ready):
        _check_queue(tables, name)
    _set_started(client, intake.queue, False)
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
            f"flux module load {SCHEDULER}, {_HOLD}",
        ) from None


def send_starts(client: RpcClient, starts: Mapping[JobId, float]) -> None:
    """Tell sched-burst when pending jobs are expected to start. Raises LeadError."""
    told = {str(int(job)): at for job, at in starts.items()}
    client.ask(f"{SCHEDULER}.starts", {"starts": told})


def read_scheduler(client: RpcClient) -> str:
    """Return the name of the module that schedules, empty if there is none."""
    modules: list[Mapping[str, Any]] = client.ask("module.list")["mods"]
    serving = (mod["name"] for mod in modules if "sched" in mod["services"])
    return str(next(serving, ""))


def backfills(client: RpcClient) -> bool:
    """Tell whether the scheduler starts jobs ahead of the first that waits.

    Not known of one that is not Flux's or ours; then it is taken not to.
    """
    name = read_scheduler(client)
    if name == SCHEDULER:
        stats: Mapping[str, Any] = client.ask(f"{SCHEDULER}.stats-get")
        return bool(stats.get("policy") == "backfill")
    return name in _BACKFILLING


def check_scheduler(client: RpcClient) -> None:
    """Raise ConfigError if another scheduler than sched-burst is loaded.

    Raises Unreadable while there is none: the lead's rc1 loads it after the broker
    answers, and `flux module reload` removes it for a moment.
    """
    name = read_scheduler(client)
    if not name:
        raise Unreadable(
            "[intake] mode is scheduler, and no scheduler is loaded yet",
            f"if the lead has started, flux module load {SCHEDULER}",
        )
    if name != SCHEDULER:
        raise ConfigError(
            f"[intake] mode is scheduler, but the loaded scheduler is"
            f" {name}: jobs that wait for absent nodes would block its queue",
            f"burst setup installs {SCHEDULER}; then flux module remove {name}"
            f" and flux module load {SCHEDULER}, {_HOLD}",
        )


def _check_queue(tables: Mapping[str, Any], name: str) -> None:
    advice = f"burst setup writes [queues.{name}] for the lead's configuration"
    if name not in tables:
        raise ConfigError(
            f"[intake] mode is queue, but the instance has no queue {name}",
            f"{advice}, {_HOLD}",
        )
    if not tables[name].get("requires"):
        raise ConfigError(
            f"queue {name} is there already and requires nothing, so it may be for"
            " other jobs than burst jobs",
            f'give it requires = ["burst"], or name another by [intake]; {advice}',
        )


def _set_started(client: RpcClient, name: str, start: bool) -> None:
    """Start or stop a queue of ours; named queues come up stopped, the first time."""
    status = client.ask("job-manager.queue-status", {"name": name})
    if status["start"] == start:
        return
    client.ask(
        "job-manager.queue-start",
        {
            "name": name,
            "start": start,
            "all": False,
            **({} if start else {"reason": "burst jobs wait here for their nodes"}),
        },
    )
