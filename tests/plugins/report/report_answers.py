# SPDX-License-Identifier: MIT
"""Answers of a daemon to the method `report`."""

from typing import Any

NOW = 1_700_000_000.0
MADE = NOW - 7200.0


def report_burst(
    name="burst-0-aaaaaa", made=MADE, result="completed", **changes
) -> Any:
    """A burst that was online for an hour, or is if it has no result."""
    entered = {"new": 0, "provision": 1, "join": 40, "online": 100}
    entered |= {"drain": 3700, "reap": 3710, "inactive": 3760} if result else {}
    return {
        "id": name,
        "provider": "gke",
        "offer": "n2",
        "nodes": 4,
        "state": "inactive" if result else "online",
        "result": result,
        "note": "idle for 5m" if result == "completed" else "",
        "states": [{"state": s, "at": made + at} for s, at in entered.items()],
        "made": made,
        "ended": made + 3760 if result else None,
        "ended_jobs": {"completed": 1} if result else {},
        "cost": 12.5,
        "wasted": 1.25 if result else None,
        **changes,
    }


def report_job(name="ƒ2aJemcj", submitted=MADE - 10, **changes) -> Any:
    """A job that waited for 120 s and would have waited for an hour."""
    return {
        "id": name,
        "userid": 1000,
        "bursts": ["burst-0-aaaaaa"],
        "submitted": submitted,
        "here": submitted + 3600,
        "started": submitted + 120,
        "finished": submitted + 1120,
        "left": None,
        "result": "completed",
        **changes,
    }


def waiting_job(**changes) -> Any:
    """A job that waits."""
    return {
        "id": "ƒ2aJemck",
        "name": "lammps",
        "submitted": NOW - 600,
        "expected": NOW + 60,
        "refusals": [],
        "why": "burst-1-bbbbbb is coming",
        **changes,
    }


def provider(**changes) -> Any:
    """A provider whose bursts take a minute and a half."""
    times = {"p50": 92.0, "p90": 141.0, "bursts": 28}
    offers = [{"name": "n2", "online": times}, {"name": "c3", "online": None}]
    return {"name": "gke", "disabled": "", "trouble": "", "offers": offers, **changes}


def amounts(reserved=0.0, **changes) -> Any:
    """What a month came to."""
    kinds = {"work": 30.0, "idle": 3.5, "boot": 2.25, "teardown": 0.5}
    kinds |= {"never_joined": 0.0, **changes}
    settled = sum(kinds.values())
    wasted = settled - kinds["work"]
    return {**kinds, "settled": settled, "wasted": wasted, "reserved": reserved}


def budget(**changes) -> Any:
    """A budget of which little is left."""
    sums = {"limit": 300.0, "settled": 250.0, "reserved": 40.0, "left": 10.0}
    return {"budget": "user u1", "warns": True, "anew": NOW + 9999.0, **sums, **changes}


def costs(**changes) -> Any:
    """Two months of one provider."""
    return {
        "by": "provider",
        "settled_since": "2023-11-08",
        "months": [
            {"month": "2023-10", **amounts(work=3.0)},
            {"month": "2023-11", **amounts(reserved=42.5)},
        ],
        "rows": [{"name": "gke", **amounts(reserved=42.5)}],
        "budgets": [budget(), budget(warns=False)],
        "left_out": 0,
        **changes,
    }


def report_answer(**changes) -> Any:
    """What happened in two hours."""
    failed = {"result": "failed", "note": 'quota "C4" < 24 & full'}
    older = {"states": [], "result": "reclaimed", "note": "", "wasted": 1.0}
    return {
        "now": NOW,
        "since": "2023-11-08",
        "lead": "local:///run/flux/local",
        "bursts": [
            report_burst("burst-1-older0", MADE - 9000, **older),
            report_burst(),
            report_burst("burst-1-failed", MADE + 60, **failed),
            report_burst("burst-1-livin0", NOW - 900, None),
        ],
        "jobs": [
            report_job(),
            report_job("ƒslower", here=MADE),
            report_job("ƒunknown", here=None, result="failed"),
            report_job("ƒruns", finished=None, result=""),
            report_job("ƒwaits", started=None, finished=None, result=""),
        ],
        "waiting": [
            waiting_job(),
            waiting_job(
                id="ƒ2aJemcm",
                expected=None,
                refusals=[{"offer": "gke/n2", "why": "no rank slot has 9 nodes"}],
            ),
        ],
        "providers": [provider(), provider(name="kube", disabled="no quota")],
        "forecasts": [
            {"group": "all", "forecasts": 812, "near": 0.71, "inside": 0.93},
            {"group": "size/3", "forecasts": 55, "near": 0.8, "inside": 0.95},
        ],
        "cost": costs(),
        "left_out": 3,
        **changes,
    }


def nothing_yet() -> Any:
    """The report of a daemon that has just been started for the first time."""
    lists = ("bursts", "jobs", "waiting", "providers", "forecasts")
    empty: dict[str, Any] = {name: [] for name in lists}
    no_costs = costs(settled_since="", months=[], rows=[], budgets=[])
    return report_answer(since="", cost=no_costs, left_out=0, **empty)
