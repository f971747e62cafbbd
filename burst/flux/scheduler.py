# SPDX-License-Identifier: MIT
"""Reads which scheduler and policy the lead has; checks that bursts work with it.

Also tells sched-burst which ranks are leased, and when jobs are expected to start.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from burst import log
from burst.config import IntakeSettings
from burst.errors import ConfigError, LeadError, Unreadable
from burst.flux.node_set import parse_nodes
from burst.flux.rpc import RpcClient, ServiceMissing
from burst.model.confinement import LENT
from burst.model.finding import Finding, wrong
from burst.model.jobid import JobId, format_f58
from burst.model.lead import LeasedRanks
from burst.model.ranks import format_idset, parse_idset
from burst.model.resource_set import resource_set
from burst.model.scheduler import FLUXION, MATCHER, Order, Scheduler, order_of

SCHEDULER = "sched-burst"
"""Name of our scheduler module, and of its service."""
OR_HOLD = 'or set [intake] mode = "hold", which needs no setup'
GRAPH_ADVICE = (
    "remove the key `scheduling` from R, and [resource] scheduling from the lead's"
    " configuration, so that Fluxion makes its graph from all of R; then restart the"
    " lead"
)
POLICY_ADVICE = (
    'set queue-policy = "easy", "conservative" or "hybrid" under'
    " [sched-fluxion-qmanager] of the lead's configuration, and load Fluxion again"
)
READ_EVERY_S = 60.0
"""How old the picture of a scheduler may be; it changes when an administrator loads
another, or the same with other options."""
_NODE_EXCLUSIVE = ("lonodex", "hinodex", "firstnodex")
_BACKFILLING = "sched-backfill"


def _serving(client: RpcClient) -> Mapping[str, Any]:
    """Return the module that schedules, as Flux lists it; empty if there is none."""
    modules: list[Mapping[str, Any]] = client.ask("module.list")["mods"]
    return next((mod for mod in modules if "sched" in mod["services"]), {})


def read_scheduler(client: RpcClient) -> Scheduler:
    """Return what is known of the scheduler.

    A scheduler that is neither Flux's, Fluxion nor ours is taken to start jobs in
    order.
    """
    module = _serving(client)
    name = str(module.get("name", ""))
    if name == FLUXION:
        return _read_fluxion(client)
    order = Order.EASY if name == _BACKFILLING else Order.FIFO
    if name != SCHEDULER:
        return Scheduler(name=name, order=order)
    policy = client.ask(f"{SCHEDULER}.stats-get")["policy"]
    return Scheduler(
        name=name,
        loaded_as=f"{shlex.quote(module['path'])} policy={policy}",
        order=Order.EASY if policy == "backfill" else Order.FIFO,
    )


def _read_fluxion(client: RpcClient) -> Scheduler:
    """Ask Fluxion's modules, as module options change what the configuration says.

    `stats-get` has each queue with the policy that it got; `params` has what
    sched-fluxion-resource runs with (qmanager_callbacks.cpp and resource.cpp of
    flux-sched).
    """
    queues = client.ask(f"{FLUXION}.stats-get").get("queues", {})
    policies = {
        str(name): str(queue.get("policy", "")) for name, queue in queues.items()
    }
    options = client.ask(f"{MATCHER}.params").get("params", {})
    return Scheduler(
        name=FLUXION,
        order=order_of(policies),
        policies=policies,
        whole_nodes=gives_whole_nodes(str(options.get("policy") or "")),
        stale_s=int(options.get("update-interval") or 0),
    )


def gives_whole_nodes(policy: str) -> bool:
    """Tell whether a match policy is node-exclusive.

    It is a name or a list of `key=value`, flux-config-sched-fluxion-resource(5).
    """
    return policy in _NODE_EXCLUSIVE or "node_exclusive=true" in policy.split()


class SchedulerReader:
    """Reads which scheduler is loaded, again after READ_EVERY_S, as it may change."""

    def __init__(
        self, client: RpcClient, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client, self._clock = client, clock
        self._read_at: float | None = None
        self.last = Scheduler()
        """The scheduler as it was read last. Another thread may look at it."""

    def read(self) -> Scheduler:
        """Return the scheduler, read at most READ_EVERY_S ago. Raises LeadError."""
        now = self._clock()
        if self._read_at is None or now - self._read_at > READ_EVERY_S:
            found = read_scheduler(self._client)
            if self._read_at is not None and found != self.last:
                log.say("the lead has another scheduler now: %s", found.title)
            self.last, self._read_at = found, now
        return self.last


def find_obstacles(
    scheduler: Scheduler, intake: IntakeSettings, config: Mapping[str, Any]
) -> list[Finding]:
    """Return what keeps bursts from working with the scheduler, or harms other jobs.

    `config` is that of the lead.
    """
    if not scheduler.is_fluxion:
        return []
    found = []
    if scheduler.stale_s:
        found.append(
            wrong(
                f"Fluxion reports allocations that are up to {scheduler.stale_s} s old"
                " (update-interval): a node could be deleted under a job",
                f"remove update-interval of {MATCHER}, and load Fluxion again",
            )
        )
    if intake.mode == "queue":
        ours = {intake.queue, intake.ready}
        found += find_denied(scheduler, ours.intersection(config.get("queues", {})))
    if scheduler.fcfs_queues and intake.mode == "hold":
        queues = ", ".join(scheduler.fcfs_queues)
        found.append(
            wrong(
                "[intake] mode is hold, and Fluxion schedules by fcfs (queues:"
                f" {queues}): it denies burst jobs that need more than the nodes that"
                " are up, and every job with a constraint while the nodes that match it"
                " are busy, so that nothing can keep other jobs off lent nodes",
                f'{POLICY_ADVICE}; or choose mode "queue"',
            )
        )
    elif scheduler.fcfs_queues and intake.mode == "queue" and not intake.any_job:
        found += _open_queues(scheduler, intake, config)
    return found


def find_denied(scheduler: Scheduler, queues: Collection[str]) -> list[Finding]:
    """Find which of these named queues came after Fluxion was loaded."""
    unknown = scheduler.unknown_queues(queues)
    if not unknown:
        return []
    return [
        wrong(
            f"Fluxion was loaded before queue {', '.join(unknown)} existed, and denies"
            " each job there, also once nodes were made for it",
            f"restart the lead, or load it again: {scheduler.reload}",
        )
    ]


def _open_queues(
    scheduler: Scheduler, intake: IntakeSettings, config: Mapping[str, Any]
) -> list[Finding]:
    """Find queues with fcfs whose jobs only our own constraint keeps off lent nodes.

    `^burst` is such a constraint, too: `burst setup` has its queue of ordinary jobs
    require it.
    """
    queues: Mapping[str, Any] = config.get("queues", {})
    kept = {
        name
        for name, table in queues.items()
        if set(table.get("requires", ())) - {f"^{LENT}"}
    }
    ours = {intake.queue, intake.ready}
    some = sorted(set(scheduler.fcfs_queues) - kept - ours)
    if queues:
        some = [name for name in some if name in queues]
    if not some:
        return []
    which = ", ".join(some)
    return [
        wrong(
            f"Fluxion schedules by fcfs, and queue {which} requires no property that"
            " own nodes have: burst keeps its jobs off lent nodes by a constraint, for"
            " which fcfs would deny them while the own nodes are busy",
            f"{POLICY_ADVICE}; or have that queue require a property that own nodes"
            f" have and lent nodes, those with the property {LENT}, do not",
        )
    ]


def check_scheduler(client: RpcClient, intake: IntakeSettings) -> None:
    """Raise ConfigError if bursts cannot work with the scheduler that is loaded.

    In mode `scheduler` it must be sched-burst. Raises Unreadable while there is none:
    the lead's rc1 loads it after the broker answers, and `flux module reload` removes
    it for a moment.
    """
    scheduler = read_scheduler(client)
    if not scheduler.name:
        raise Unreadable(
            "no scheduler is loaded yet",
            "if the lead has started, run flux modprobe load "
            + (SCHEDULER if intake.mode == "scheduler" else "SCHEDULER"),
        )
    if intake.mode == "scheduler" and scheduler.name != SCHEDULER:
        raise ConfigError(
            f"[intake] mode is scheduler, but the loaded scheduler is"
            f" {scheduler.name}: jobs that wait for absent nodes would block its queue",
            f"burst setup installs {SCHEDULER}; then run flux module remove"
            f" {scheduler.name} and flux modprobe load {SCHEDULER}, {OR_HOLD}",
        )
    for finding in find_obstacles(scheduler, intake, client.ask("config.get")):
        raise ConfigError(finding.what, finding.advice)
    if scheduler.is_fluxion:
        _check_graph(client)


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
            f"run flux modprobe load {SCHEDULER}, {OR_HOLD}",
        ) from None


def send_starts(client: RpcClient, starts: Mapping[JobId, float]) -> None:
    """Tell sched-burst when pending jobs are expected to start. Raises LeadError."""
    told = {str(int(job)): at for job, at in starts.items()}
    client.ask(f"{SCHEDULER}.starts", {"starts": told})


def _check_graph(client: RpcClient) -> None:
    """Raise ConfigError if Fluxion knows none of the ranks that are to be lent.

    If R has a graph (JGF, the key `scheduling`), Fluxion takes its nodes from that, and
    ranks that were added to R are not in the graph.
    """
    status, known = client.ask("resource.status"), client.ask("sched.resource-status")
    lent = resource_set(status["R"]).properties.get(LENT, frozenset())
    lent -= parse_idset(status["exclude"])
    if lent and lent.isdisjoint(parse_nodes(known["all"]).ranks):
        raise ConfigError(
            f"Fluxion does not know the ranks to be lent, {format_idset(lent)}: R has a"
            " graph (JGF) without them, so that no job would start there",
            GRAPH_ADVICE,
        )
