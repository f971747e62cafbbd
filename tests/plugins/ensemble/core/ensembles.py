# SPDX-License-Identifier: MIT
"""Makes members, ensembles and views for the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from burst_ensemble.algorithm import (
    JobGroup,
    MemberDecision,
    MemberView,
    QueueCounts,
)
from burst_ensemble.config.spec import (
    AlgorithmSpec,
    EnsembleLimits,
    EnsembleSpec,
    JobSpec,
    MemberSpec,
)
from burst_ensemble.core.algorithms import BUILT_IN
from burst_ensemble.core.controller import EnsembleStep, take_step
from burst_ensemble.core.job_rows import JobRow, MemberState, SizedReading
from burst_ensemble.core.record import EnsembleRecord
from burst_ensemble.core.views import take_in
from burst_ensemble.core.wishes import Answer

from burst.config import Seconds, convert
from burst.model.jobid import JobId
from burst.model.lead import JobState

NOW = 1_000_000.0


def member(name: str = "m", **changes: Any) -> MemberSpec:
    """A member of 1 to 8 nodes."""
    usual: dict[str, Any] = {
        "provider": "local",
        "max": 8,
        "algorithms": (AlgorithmSpec(name="workload-demand"),),
    }
    return MemberSpec(name=name, **{**usual, **changes})


def ensemble(*members: MemberSpec, **changes: Any) -> EnsembleSpec:
    """An ensemble of these, or of one member, without windows."""
    windows = {"grow_window": Seconds(0), "shrink_window": Seconds(0)}
    return EnsembleSpec(
        name="e", members=members or (member(),), **{**windows, **changes}
    )


def limited(
    *members: MemberSpec, nodes: int = 0, money: float = 0.0, time: float | None = None
) -> EnsembleSpec:
    """An ensemble with limits."""
    known = EnsembleLimits(nodes=nodes, money=money)
    if time is not None:
        known = msgspec.structs.replace(known, time=Seconds(time))
    return ensemble(*members, limits=known)


def jobs(name: str = "job", **changes: Any) -> JobSpec:
    """Jobs of the file."""
    return JobSpec(name=name, command="true", **changes)


def reading(nodes: int = 0, free: int | None = None, **changes: Any) -> SizedReading:
    """A member of which all nodes are up."""
    usual: dict[str, Any] = {
        "nodes_paid": nodes,
        "size": nodes,
        "nodes_up": nodes,
        "nodes_free": nodes if free is None else free,
        "cores_up": nodes * 4,
        "cores_free": (nodes if free is None else free) * 4,
    }
    return SizedReading(**{**usual, **changes})


def view(nodes: int = 4, free: int = 0, **changes: Any) -> MemberView:
    """A view of a member of 1 to 8 nodes."""
    usual: dict[str, Any] = {
        "name": "m",
        "nodes": nodes,
        "nodes_paid": nodes,
        "nodes_up": nodes,
        "nodes_free": free,
        "least": 1,
        "most": 8,
        "started": NOW - 1000,
    }
    return MemberView(**{**usual, **changes})


def queued(*sizes: int, run: int = 0) -> dict[str, Any]:
    """The fields of a view in which jobs of these sizes wait, and others run."""
    return {
        "queue": QueueCounts(sched=len(sizes), run=run),
        "waiting": {size: sizes.count(size) for size in sizes},
        "next_jobs": sizes[:11],
    }


def group(
    name: str = "x", nodes: int = 1, left: int | None = 3, **more: Any
) -> JobGroup:
    """A kind of job of which some are left to submit."""
    return JobGroup(name=name, nodes=nodes, left=left, count=left or 0, **more)


def row(number: int, state: JobState = JobState.RUN, **changes: Any) -> JobRow:
    """A job as it was read."""
    usual: dict[str, Any] = {"group": "step", "nodes": 1, "urgency": 16}
    usual |= {"t_submit": NOW + 5.0}
    return JobRow(**{"id": JobId(number), "state": state, **usual, **changes})


def stepped(
    spec: EnsembleSpec,
    record: EnsembleRecord,
    readings: Mapping[str, SizedReading],
    decisions: Mapping[str, Answer | Sequence[Answer]],
    now: float = NOW,
) -> EnsembleStep:
    """A step in which these were answered, by the algorithms a0, a1..."""
    answers = {}
    for name, given in decisions.items():
        each = given if isinstance(given, (list, tuple)) else [given]
        answers[name] = {f"a{n}": one for n, one in enumerate(each)}
    # The jobs of members are known already.
    read = {
        name: MemberState(readings[name], record.members[name]) for name in readings
    }
    return take_step(spec, take_in(record, read), readings, answers, now)


def rewritten(record: EnsembleRecord) -> EnsembleRecord:
    """The record after it was written to the store and read again."""
    return msgspec.json.decode(msgspec.json.encode(record), type=EnsembleRecord)


def make(name: str, **options: Any) -> Any:
    """A built-in algorithm with these options."""
    kind = BUILT_IN[name]
    return kind(convert(kind.Options, options, "test"))


def decided(
    name: str, seen: MemberView, memory: Any = None, **options: Any
) -> MemberDecision:
    """What a built-in algorithm says to a view."""
    found: MemberDecision = make(name, **options).decide(seen, memory or {}, NOW)
    return found


def looked_at(algorithm: Any, views: Sequence[MemberView]) -> list[MemberDecision]:
    """What an algorithm says to these views, ten seconds apart."""
    memory: Any = {}
    found = []
    for number, each in enumerate(views):
        decision = algorithm.decide(each, memory, NOW + 10 * number)
        memory = decision.memory
        found.append(decision)
    return found


def wants(nodes: int | None = None, **changes: Any) -> MemberDecision:
    """A decision."""
    return MemberDecision(nodes=nodes, why="it wants so", **changes)
