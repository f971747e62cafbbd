# SPDX-License-Identifier: MIT
"""Answers of a daemon to `status`, as `burst watch` draws them."""

from typing import Any

NOW = 1_700_000_000.0


def burst_row(name="burst-0-aaaaaa", state="online", age=72.0, **changes) -> Any:
    """A burst that was provisioned for 0.9 s and took 12 s to join."""
    entered = {"new": 85.0, "provision": 84.9, "join": 84.0}
    reached = list(entered)
    if state in entered:
        reached = reached[: reached.index(state) + 1]
    states = [{"state": each, "at": NOW - entered[each]} for each in reached]
    if state not in entered:
        states.append({"state": state, "at": NOW - age})
    return {
        "id": name,
        "provider": "gke",
        "offer": "n2",
        "state": state,
        "age": age,
        "nodes": 4,
        "online": 4 if state == "online" else None,
        "jobs": ["ƒ2aJemcj", "ƒ2aJemck"],
        "result": None,
        "idle": None,
        "down_in": None,
        "note": "",
        "isolated": None,
        "standing": "",
        "states": states,
        **changes,
    }


def job_row(number: int, **changes) -> Any:
    """A job that waits as its rank slot is too small."""
    why = "the largest free rank slot for it has 4 nodes; 6 needed"
    return {
        "id": f"ƒjob{number}",
        "userid": 1000,
        "user": "alice",
        "name": "lammps",
        "submitted": NOW - 60 * number,
        "needs": "6 whole nodes",
        "verdict": "turned-down",
        "why": "every offer was turned down",
        "refusals": [{"offer": "gke/n2", "why": why}],
        "held": "held",
        "bursts": [],
        "expected": None,
        "by": "",
        **changes,
    }


def offer_row(**changes) -> Any:
    """An offer whose bursts take a minute and a half."""
    times = {"p50": 90.0, "p90": 120.0, "bursts": 9}
    return {
        "name": "n2",
        "shape": "4 cores",
        "spot": False,
        "max_nodes": 8,
        "price": 2.5,
        "fee": 0.0,
        "priced_by": "site",
        "online": times,
        "set_aside_until": None,
        "set_aside_why": "",
        "refused": [],
        **changes,
    }


def provider_row(name="gke", **changes) -> Any:
    """A provider in good health."""
    healthy = {"trouble": "", "disabled": "", "breaker_until": None}
    return {"name": name, "offers": [offer_row()], **healthy, **changes}


def slot_row(name="burst-0", state="leased", **changes) -> Any:
    """A rank slot."""
    found = {"name": name, "ranks": "2-5", "hosts": f"{name}-[0-3]", "shape": "4 cores"}
    burst = "burst-0-aaaaaa" if state == "leased" else ""
    return {**found, "state": state, "burst": burst, "drained": {}, **changes}


def budget_row(**changes) -> Any:
    """A budget of which little is left."""
    return {
        "budget": "everything, per week",
        "limit": 300.0,
        "settled": 200.0,
        "reserved": 87.5,
        "left": 12.5,
        "warns": True,
        "anew": NOW + 86400,
        **changes,
    }


def answer(**changes) -> Any:
    """All of it."""
    jobs = [
        job_row(1, expected=NOW + 41, by="burst", refusals=[], why="burst-0-aaaaaa"),
        job_row(2, expected=NOW + 4000, by="here"),
        job_row(3),
    ]
    return {
        "now": NOW,
        "lead": {"uri": "local:///run/flux/local", "trouble": "", "halt": ""},
        "daemon": {"pid": 1},
        "bursts": [
            burst_row(),
            burst_row("burst-1-bbbbbb", "join", 4.0, online=1, note="2 pods pend"),
            burst_row(
                "burst-2-cccccc", "inactive", 30.0, result="failed", note="quota"
            ),
            burst_row("burst-3-dddddd", "inactive", 999.0, result="completed"),
        ],
        "jobs": jobs,
        "pending": 3,
        "slots": [slot_row(), slot_row("burst-1", "free")],
        "providers": [provider_row()],
        "budgets": [budget_row()],
        "held": ["ƒjob1"],
        "standing": {},
        "untold": {},
        "totals": {"nodes": 8, "of": 16, "per_hour": 20.0, "cost": 1.25},
        **changes,
    }
