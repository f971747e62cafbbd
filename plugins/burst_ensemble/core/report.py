# SPDX-License-Identifier: MIT
"""The state of ensembles for people and programs, as JSON with the keys of the Ensemble
Operator's sidecar.

`nodes`, `queue`, `waiting` and `nextJobs` have the sidecar's keys; `member` and `jobs`
are our own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from burst.core.tagged_nodes import TaggedBurst, TaggedNodes
from burst.model.ranks import format_hostlist
from burst_ensemble.algorithm import MemberView
from burst_ensemble.core.job_rows import MemberState
from burst_ensemble.core.read_members import is_over, read_members
from burst_ensemble.core.record import Ensemble, Member
from burst_ensemble.core.views import make_views, take_in


class ShownMember(msgspec.Struct, frozen=True):
    """The state of an external member for `burst ensemble status`."""

    state: MemberState | None
    """None if its present state is not known."""
    facts: Mapping[str, Any]
    """Keys of `member` that it adds to or replaces in those of other members."""


def ensemble_row(
    one: Ensemble, nodes: TaggedNodes, external: Mapping[str, ShownMember]
) -> dict[str, Any]:
    """Return the state of an ensemble; `state` is running, ending, or ended.

    If the lead cannot be read, members have only what is on record. `external` has the
    external members, by name.
    """
    read = read_members(one, nodes, lambda *_: {}) if nodes.is_read else {}
    for member, told in external.items():
        if told.state is not None:
            read[member] = told.state
    readings = {member: state.reading for member, state in read.items()}
    record = take_in(one.record, read)
    views = make_views(one.start.spec, record, readings)
    members = {}
    for each in Ensemble(one.start, record).members:
        row = member_row(each, views.get(each.name), nodes.bursts_of(each.tag))
        reading = readings.get(each.name)
        if reading is not None and reading.queue.active:
            row["queue"] = msgspec.to_builtins(reading.queue)
        if each.name in external:
            row["member"] |= external[each.name].facts
        members[each.name] = row
    return {
        "name": record.name,
        "started": record.started,
        "ended": record.ended,
        "why": record.why,
        "spent": round(record.spent, 2),
        "state": _state(one, nodes),
        "members": members,
    }


def member_row(
    member: Member, view: MemberView | None, bursts: Sequence[TaggedBurst]
) -> dict[str, Any]:
    """Return the state of a member with these bursts.

    A member without a view has ended or could not be read: it has only what is on
    record, which is `member` and the `tally` of each of `jobs`; `ensemble_row` adds the
    `queue` while jobs of it are left. `waits_for` says why it has not reached its size,
    or does not have all its jobs; `never_taken` says why the lead will never accept a
    job.
    """
    record, hosts = member.record, member.ensemble.start.slots.get(member.name, ())
    awaited = _awaited_nodes(bursts)
    if record.ended is None:
        awaited = record.refused or record.limited or awaited or record.has_most_jobs
    facts = {
        "name": member.name,
        "nodes": record.nodes if record.ended is None else 0,
        "started": record.started,
        "grown": record.grown,
        "shrunk": record.shrunk,
        "ended": record.ended,
        "why": record.why,
        "trouble": record.fault,
        "never_taken": record.never_taken,
        "unconfirmed": len(record.unconfirmed),
        "spent": record.spent,
        "provider": member.spec.provider,
        "mode": member.spec.mode,
        "slot": format_hostlist(hosts) if hosts else "",
        "bursts": [_burst(burst) for burst in bursts],
        "waits_for": awaited,
    }
    if view is None:
        jobs = {
            group: {"name": group, "tally": msgspec.to_builtins(found)}
            for group, found in record.statistics.items()
            if group
        }
        return {"member": facts, "jobs": jobs}
    facts |= {
        "nodes_paid": view.nodes_paid,
        "min": view.least,
        "max": view.most,
        "spent": view.spent,
        "price": view.price,
    }
    return {
        "nodes": {
            "node_cores_free": view.cores_free,
            "node_cores_up": view.cores_up,
            "node_up_count": view.nodes_up,
            "node_free_count": view.nodes_free,
        },
        "queue": msgspec.to_builtins(view.queue),
        # The sizes as text: keys in JSON are always text.
        "waiting": {str(size): view.waiting[size] for size in sorted(view.waiting)},
        "nextJobs": list(view.next_jobs),
        "member": facts,
        "jobs": {group.name: msgspec.to_builtins(group) for group in view.jobs},
    }


def _burst(burst: TaggedBurst) -> dict[str, Any]:
    return {key: getattr(burst, key) for key in ("id", "state", "nodes", "note")}


def _awaited_nodes(bursts: Iterable[TaggedBurst]) -> str:
    """Return what nodes that are still to come wait for, in the words of the provider.

    It says, for instance, that a pod finds no node, and what the cluster's autoscaler
    does about it.
    """
    states = ("provision", "join", "online", "quarantined")
    notes = (burst.note for burst in bursts if burst.state in states)
    return next(filter(None, notes), "")


def _state(one: Ensemble, nodes: TaggedNodes) -> str:
    if one.record.ended is None:
        return "running"
    return "ended" if is_over(one, nodes, nodes.tags_waiting()) else "ending"
