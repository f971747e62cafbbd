# SPDX-License-Identifier: MIT
"""Decide the size of each member: what it wants, within bounds, limits and windows.

A size changes only if all of these allow it:

* `min` and `max` of the member.
* Its windows. It grows no sooner than `growWindow` after its last change, and shrinks
  no sooner than `shrinkWindow` after it. So in any time T its size changes at most
  1 + T / (the shorter window) times.
* `[limits] nodes`, which counts all nodes that are paid, including those that are being
  drained. If members want more, they share (`fair_share`): a member with more than its
  share shrinks, and others grow once those nodes are gone.
* `[limits] money`: nothing grows unless the money left pays ten minutes of all nodes.

The fair share is weighted max-min fairness by demand: no member gets more than it
wants, and what a member gets for each unit of weight is as large as it can be without
taking from a member that has less.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping

import msgspec

from burst.model.decision import count_nodes
from burst_ensemble.algorithm import MemberDecision
from burst_ensemble.config.spec import EnsembleSpec, MemberSpec
from burst_ensemble.core.job_rows import SizedReading
from burst_ensemble.core.record import EnsembleRecord, MemberRecord


class Want(msgspec.Struct, frozen=True):
    """How many nodes a member wants."""

    floor: int
    """The number of nodes that it keeps in any case."""
    demand: int
    """The number of nodes that it wants; not less than the floor."""
    weight: float = 1.0


def fair_share(capacity: int, wants: Mapping[str, Want]) -> dict[str, int]:
    """Return how many nodes each member gets. The sum is at most `capacity`, unless the
    floors are more. Among equal members the first in order gets the odd node.
    """
    if sum(want.demand for want in wants.values()) <= capacity:
        return {name: want.demand for name, want in wants.items()}
    given = {name: want.floor for name, want in wants.items()}
    left = capacity - sum(given.values())
    line = [
        ((want.floor + 1) / want.weight, place, name)
        for place, (name, want) in enumerate(wants.items())
        if want.floor < want.demand
    ]
    heapq.heapify(line)
    while left > 0 and line:
        _, place, name = heapq.heappop(line)
        given[name] += 1
        left -= 1
        want = wants[name]
        if given[name] < want.demand:
            heapq.heappush(line, ((given[name] + 1) / want.weight, place, name))
    return given


_WORTH_BOOTING = 600.0
"""Seconds. A node that is paid for a shorter time does little more than boot."""


def decide_sizes(
    spec: EnsembleSpec,
    record: EnsembleRecord,
    readings: Mapping[str, SizedReading],
    wishes: Mapping[str, MemberDecision],
    now: float,
) -> EnsembleRecord:
    """Return the record with the members' new sizes.

    A member without a reading or a wish keeps its size, which counts in the limits.
    External members have no size here: the ensemble does not pay for their nodes.
    """
    specs = {each.name: each for each in spec.members}
    live = {
        name: member
        for name, member in record.members.items()
        if member.ended is None
        and name in wishes
        and name in readings
        and not specs[name].is_external
    }
    wants = {
        name: _want(spec, specs[name], member, wishes[name].nodes, now)
        for name, member in live.items()
    }
    nodes = {name: want.demand for name, want in wants.items()}
    if spec.limits.nodes:
        most = spec.limits.nodes - _fixed(record, wants)
        nodes = _grow_into_room(live, fair_share(most, wants), most)
    limit = "[limits] nodes and its fair share leave"
    if not _can_pay(spec, record, readings, nodes):
        nodes = {name: min(size, live[name].nodes) for name, size in nodes.items()}
        limit = "what is left of [limits] money leaves"
    for name, size in nodes.items():
        wanted = wants[name].demand
        limited = f"it wants {count_nodes(wanted)}, but {limit} {size}"
        limited = limited if size < wanted else ""
        record = record.with_member(name, limited=limited)
        if size != live[name].nodes and size >= specs[name].min:
            why = wishes[name].why
            if wishes[name].nodes is None:
                why = f"it begins with {count_nodes(size)}"
            why = f"{why}; {limited}" if limited else why
            record = resized(record, name, size, why, now)
    return record


def _fixed(record: EnsembleRecord, wants: Collection[str]) -> int:
    """Return the nodes of members about which nothing is decided now."""
    return sum(
        _most_paid(member, member.nodes) if member.ended is None else member.paid
        for name, member in record.members.items()
        if name not in wants
    )


def _most_paid(member: MemberRecord, size: int) -> int:
    """Return the most nodes of a member that are paid until it has this size.

    Nodes that are being given back are still paid, and cannot be used again.
    """
    return max(member.paid, size + member.leaving)


def _want(
    ensemble: EnsembleSpec,
    spec: MemberSpec,
    member: MemberRecord,
    wished: int | None,
    now: float,
) -> Want:
    first = not member.nodes and member.grown is None
    if wished is None:
        wished = spec.size if first else member.nodes
    demand = max(spec.min, min(spec.max, wished))
    changed = max(member.grown or 0.0, member.shrunk or 0.0)
    if changed > now:
        changed = 0.0  # the clock was set back: the time of the change is not known
    may_grow = first or now >= changed + ensemble.grow_window
    may_shrink = now >= changed + ensemble.shrink_window
    if not may_grow:
        demand = min(demand, member.nodes)
    floor = min(spec.min, demand) if may_shrink else member.nodes
    return Want(floor, max(floor, demand), spec.share)


def _grow_into_room(
    live: Mapping[str, MemberRecord],
    fair: Mapping[str, int],
    most: int,
) -> dict[str, int]:
    """Return sizes with which at most `most` nodes are paid, even while others leave.

    A member that grows gets only nodes that no other member is still giving back.
    """
    held = {name: min(live[name].nodes, size) for name, size in fair.items()}
    paid = sum(_most_paid(live[name], size) for name, size in held.items())
    grown = {
        name: Want(0, size - held[name])
        for name, size in fair.items()
        if size > held[name]
    }
    given = fair_share(max(0, most - paid), grown)
    return {name: size + given.get(name, 0) for name, size in held.items()}


def _can_pay(
    spec: EnsembleSpec,
    record: EnsembleRecord,
    readings: Mapping[str, SizedReading],
    nodes: Mapping[str, int],
) -> bool:
    if not spec.limits.money:
        return True
    # A member without nodes may begin, whatever it costs: else none would ever end.
    per_hour = sum(
        max(reading.nodes_paid, nodes.get(name, 0)) * reading.price
        for name, reading in readings.items()
        if reading.nodes_paid
    )
    return record.spent + per_hour * _WORTH_BOOTING / 3600 <= spec.limits.money


def resized(
    record: EnsembleRecord, name: str, size: int, why: str, now: float
) -> EnsembleRecord:
    """Return the record with another size for a member."""
    changed = "grown" if size > record.members[name].nodes else "shrunk"
    return record.with_member(name, nodes=size, why=why, **{changed: now})
