# SPDX-License-Identifier: MIT
"""The result of each policy: the figures of the table and of `--json`."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from burst.core.money.money import to_units
from burst_replay.simulator import ReplayOutcome
from burst_replay.trace import Machine, Trace, TraceJob


class PolicyResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one policy on a trace, as `--json` prints it."""

    mean_wait_s: float
    """The mean wait of the jobs that ran, in seconds."""
    p95_wait_s: float
    """The 95th percentile of the waits of the jobs that ran, in seconds."""
    own_node_hours: float
    """Work on own nodes."""
    bought_node_hours: float
    """All bought node-hours: work, idle, boot and tear-down."""
    bought_share: float
    """Bought node-hours divided by the node-hours of work of all jobs; 0.01 is one
    percent."""
    money: float
    bursts: int
    refused: int
    """Jobs that never ran: own nodes are too few, and none were bought."""
    work: float
    """The part of `money` that was for work; the next three are for other uses."""
    idle: float
    boot: float
    teardown: float


def policy_result(
    jobs: Sequence[TraceJob], machine: Machine, outcome: ReplayOutcome
) -> PolicyResult:
    """Return the figures for the outcome of a replay."""
    waits = [wait for wait in outcome.waits if wait < math.inf]
    mean_wait, p95_wait = mean_and_p95(waits)
    all_work = sum(job.run_time * job.cores for job in jobs) / machine.cores / 3600.0
    spent, costs = outcome.spent, outcome.costs
    bought = (spent.work + spent.idle + spent.boot + spent.teardown) / 3600.0
    return PolicyResult(
        mean_wait_s=mean_wait,
        p95_wait_s=p95_wait,
        own_node_hours=outcome.own_work,
        bought_node_hours=bought,
        bought_share=bought / all_work if all_work else 0.0,
        money=to_units(costs.total),
        bursts=outcome.bursts,
        refused=len(jobs) - len(waits),
        work=to_units(costs.work),
        idle=to_units(costs.idle),
        boot=to_units(costs.boot),
        teardown=to_units(costs.teardown),
    )


def mean_and_p95(waits: Collection[float]) -> tuple[float, float]:
    """Return the mean and the 95th percentile; 0 for both if there are no waits."""
    if not waits:
        return 0.0, 0.0
    place = math.ceil(0.95 * len(waits)) - 1
    return math.fsum(waits) / len(waits), sorted(waits)[place]


def json_report(trace: Trace, found: dict[str, PolicyResult]) -> dict[str, Any]:
    """Return the object that `--json` prints."""
    return {
        "trace": trace.name,
        "jobs": len(trace.jobs),
        "left_out": trace.left_out,
        "notes": trace.notes,
        "policies": {name: msgspec.structs.asdict(row) for name, row in found.items()},
    }
