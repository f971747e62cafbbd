# SPDX-License-Identifier: MIT
"""Ensembles as people and programs are shown them: JSON, in the words of the Ensemble
Operator's sidecar.

`nodes`, `queue`, `waiting` and `nextJobs` have the sidecar's keys; `member` and `jobs`
are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from burst.core.tagged_nodes import TaggedBurst, TaggedNodes
from burst.model.decision import moment
from burst.model.ranks import format_hostlist
from burst_ensemble.algorithm import MemberView
from burst_ensemble.core.agent_member import AgentMember
from burst_ensemble.core.agent_report import TakenReport
from burst_ensemble.core.job_rows import MemberState
from burst_ensemble.core.read_members import is_over, jobs_by_tag, read_member
from burst_ensemble.core.record import Ensemble, EnsembleRecord, MemberRecord, Seen
from burst_ensemble.core.views import make_views, take_in


def member_state(view: MemberView, record: MemberRecord) -> dict[str, Any]:
    """Return the state of a member that has not ended.

    `waiting` has the number of waiting jobs by their nodes, as text, as JSON has no
    other keys.
    """
    return {
        "nodes": {
            "node_cores_free": view.cores_free,
            "node_cores_up": view.cores_up,
            "node_up_count": view.nodes_up,
            "node_free_count": view.nodes_free,
        },
        "queue": msgspec.to_builtins(view.queue),
        "waiting": {str(size): view.waiting[size] for size in sorted(view.waiting)},
        "nextJobs": list(view.next_jobs),
        "member": member_facts(view.name, record)
        | {
            "nodes_paid": view.nodes_paid,
            "min": view.least,
            "max": view.most,
            "spent": view.spent,
            "price": view.price,
        },
        "jobs": {group.name: msgspec.to_builtins(group) for group in view.jobs},
    }


def member_facts(name: str, record: MemberRecord) -> dict[str, Any]:
    """Return what is known of a member from its record alone, also after its end."""
    return {
        "name": name,
        "nodes": record.nodes if record.ended is None else 0,
        "started": record.started,
        "grown": record.grown,
        "shrunk": record.shrunk,
        "ended": record.ended,
        "why": record.why,
        "trouble": record.trouble.what if record.trouble else "",
        "unconfirmed": len(record.unconfirmed),
        "spent": record.spent,
    }


def ensemble_state(
    record: EnsembleRecord, views: Mapping[str, MemberView]
) -> dict[str, Any]:
    """Return the state of an ensemble. Members that ended or could not be read have
    only `member`, and of each of `jobs` its `tally`: what is on record.
    """
    members = {
        name: member_state(views[name], member)
        if name in views
        else {"member": member_facts(name, member), "jobs": _jobs(member)}
        for name, member in record.members.items()
    }
    return {
        "name": record.name,
        "started": record.started,
        "ended": record.ended,
        "why": record.why,
        "spent": round(record.spent, 2),
        "members": members,
    }


def _jobs(record: MemberRecord) -> dict[str, Any]:
    return {
        group: {"name": group, "tally": msgspec.to_builtins(found.tally())}
        for group, found in record.statistics.items()
        if group
    }


def ensemble_row(
    seen: Seen, name: str, told: Mapping[str, TakenReport]
) -> dict[str, Any]:
    """Return the state of an ensemble, `ensemble_state` with what is ours beside it.

    Of the ensemble `state`: running, ending, or ended; of each member `provider`,
    `mode`, `slot`, `bursts` with their notes, and under `waits_for` why it is not as
    large as it is to be, or has not all its jobs. Without a lead that can be read,
    members have only what is on record. `told` is what agents have reported last, by
    ENSEMBLE/MEMBER.
    """
    one = seen.ensembles[name]
    start, spec = one.start, one.start.spec
    read = _read_members(seen, one, told)
    readings = {member: state.reading for member, state in read.items()}
    record = take_in(one.record, read)
    row = ensemble_state(record, make_views(spec, record, readings))
    row["state"] = _state(one, seen.nodes)
    for member in spec.members:
        shown = row["members"][member.name]
        hosts = start.slots.get(member.name, ())
        bursts = seen.nodes.bursts_of(start.membership(member.name))
        its = record.members[member.name]
        why = "" if its.ended is not None else its.refused or its.limited
        shown["member"] |= {
            "provider": member.provider,
            "mode": member.mode,
            "slot": format_hostlist(hosts) if hosts else "",
            "bursts": [_burst(burst) for burst in bursts],
            "waits_for": why or _awaited_nodes(bursts),
        }
        if member.has_agent:
            taken = told.get(f"{name}/{member.name}")
            shown["member"] |= _told_by_agent(its, taken, seen.now)
    return row


def _read_members(
    seen: Seen, one: Ensemble, told: Mapping[str, TakenReport]
) -> dict[str, MemberState]:
    """Return what is read of each member, by its bursts or by its agent's report."""
    nodes, jobs = seen.nodes, jobs_by_tag(seen.nodes)
    found: dict[str, MemberState] = {}
    for spec in one.start.spec.members:
        agent, whose = AgentMember(one, spec.name), one.start.membership(spec.name)
        taken = told.get(agent.key)
        if taken is not None and seen.now <= taken.until:
            found[spec.name] = agent.read(taken.report, seen.now)
        elif not spec.has_agent and nodes.is_read:
            its = jobs.get(whose, ())
            found[spec.name] = read_member(whose, agent.record, nodes, its, {})
    return found


def _told_by_agent(
    member: MemberRecord, taken: TakenReport | None, now: float
) -> dict[str, Any]:
    """Return what is shown of a member that has an agent: `agent`, when it reported
    last, and whether it is `silent`, in which case nothing is decided for the member.
    """
    shown: dict[str, Any] = {
        "instance": member.instance,
        "agent": taken.at if taken else None,
        "silent": taken is None or now > taken.until,
    }
    if taken is None:
        shown["waits_for"] = "its agent has not reported since the daemon's start"
    elif now > taken.until:
        shown["waits_for"] = f"its agent is silent since {moment(taken.at)}"
    else:
        shown["nodes"] = shown["min"] = shown["max"] = taken.report.nodes.up
    return shown


def _burst(burst: TaggedBurst) -> dict[str, Any]:
    return {key: getattr(burst, key) for key in ("id", "state", "nodes", "note")}


def _awaited_nodes(bursts: Iterable[TaggedBurst]) -> str:
    """Return what nodes that are to come wait for, in the words of the provider.

    Such as of a pod that finds no node, and what the cluster's autoscaler does for it.
    """
    states = ("provision", "join", "online", "quarantined")
    notes = (burst.note for burst in bursts if burst.state in states)
    return next(filter(None, notes), "")


def _state(one: Ensemble, nodes: TaggedNodes) -> str:
    if one.record.ended is None:
        return "running"
    return "ended" if is_over(one, nodes, nodes.tags_waiting()) else "ending"
