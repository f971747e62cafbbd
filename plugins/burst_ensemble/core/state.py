# SPDX-License-Identifier: MIT
"""The state of a member as JSON, in the words of the Ensemble Operator's sidecar.

`nodes`, `queue`, `waiting`, `nextJobs`, `counts` and `metrics` have the sidecar's keys;
`member` and `jobs` are ours. Numbers that the sidecar counted by its calls are counted
by checks of `checkSeconds` here, from the times that the algorithms remember.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import msgspec

from burst_ensemble.algorithm import MemberView
from burst_ensemble.core.record import EnsembleRecord, MemberRecord


def member_state(view: MemberView, record: MemberRecord, now: float) -> dict[str, Any]:
    """Return the state of a member that has not ended.

    `waiting` has the number of waiting jobs by their nodes, as text, as JSON has no
    other keys. `counts`: `status` is how many checks there were, `inactive` since the
    queue is empty, `waiting_periods` since jobs wait, `free_nodes` since nodes are
    free; `waiting` is how many jobs have not started. `metrics` has texts, of which
    `elapsed` is in seconds.
    """

    def checks(key: str) -> int:
        times = [each[key] for each in record.memory.values() if key in each]
        return int((now - min(times)) / view.check) + 1 if times else 0

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
        "counts": {
            "status": int((now - view.started) / view.check) + 1,
            "inactive": checks("idle_since"),
            "waiting_periods": checks("waiting_since"),
            "waiting": view.queue.pending,
            "free_nodes": checks("free_since"),
        },
        "metrics": {
            "start_time": _text(view.started),
            "last_updated": _text(now),
            "elapsed": str(int(now - view.started)),
        },
        "member": member_facts(record)
        | {
            "name": view.name,
            "nodes_paid": view.nodes_paid,
            "min": view.least,
            "max": view.most,
            "spent": view.spent,
            "price": view.price,
        },
        "jobs": {group.name: msgspec.to_builtins(group) for group in view.jobs},
    }


def member_facts(record: MemberRecord) -> dict[str, Any]:
    """Return what is known of a member from its record alone, also after its end."""
    return {
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
    record: EnsembleRecord, views: Mapping[str, MemberView], now: float
) -> dict[str, Any]:
    """Return the state of an ensemble. Members that ended or could not be read have
    only `member`, and of each of `jobs` its `tally`: what is on record.
    """
    members = {
        name: member_state(views[name], member, now)
        if name in views
        else {"member": {"name": name, **member_facts(member)}, "jobs": _jobs(member)}
        for name, member in record.members.items()
    }
    return {
        "name": record.name,
        "started": record.started,
        "ended": record.ended,
        "why": record.why,
        "spent": round(sum(one.spent for one in record.members.values()), 2),
        "members": members,
    }


def _jobs(record: MemberRecord) -> dict[str, Any]:
    return {
        group: {"name": group, "tally": msgspec.to_builtins(found.tally())}
        for group, found in record.statistics.items()
        if group
    }


def _text(seconds: float) -> str:
    return str(datetime.datetime.fromtimestamp(seconds, datetime.UTC))
