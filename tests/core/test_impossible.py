# SPDX-License-Identifier: MIT
"""Which jobs nothing could ever serve, where live bursts have what is not sold now."""

import math
from typing import Any

import pytest

from burst.core.plan.fit import NodePool
from burst.core.plan.limits import FurtherUse
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.reason import Reason
from tests.builders import (
    NODE,
    but,
    identity,
    offer,
    whole,
)
from tests.core.plans import demand, live_burst, plan

LEAD = identity("lead-0,burst-0-[0-3],burst-1-[0-3]")


def busy(name: str, first: int, nodes: int = 4, **source: Any) -> Any:
    """A burst of which another job has all nodes."""
    ranks = dict.fromkeys(range(first, first + nodes), NODE)
    source = {"userids": frozenset({100}), "nodes": nodes, **source}
    jobs = frozenset({JobId(9)})
    pool = NodePool({}, ranks)
    return live_burst(name, pool, idle=False, jobs=jobs, **source)


def decided(*live: Any, need: int = 4, total: int = 0, **changes: Any) -> Reason:
    """Decide on a job of user 100, whose burst of four nodes is no longer sold so."""
    request = whole(need, **changes.pop("request", {}))
    coming = [(NODE, changes.pop("coming", 0))]
    asked = but(
        demand(changes.pop("job", 1), request, coming=coming),
        duration=changes.pop("duration", 60.0),
    )
    offers = {"local": [offer(total=total, **changes.pop("offer", {}))]}
    in_use = {
        each.burst: FurtherUse.new("local/small", (each.source.nodes,), 100, math.inf)
        for each in live
    }
    changes = {"offers": offers, "lead": LEAD, "in_use": in_use, **changes}
    made = plan(asked, live=live, **changes)
    decision: Decision = made.decisions[asked.job]
    return decision.reason


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize(
    "changes",
    [
        {"total": 3},
        {"offer": {"max_nodes": 3}, "spread": False},
        {"offer": {"lifetime": 30.0}},
        {"limits": {"max_nodes": 3}},
        {"limits": {"max_nodes_per_user": 3}},
    ],
    ids=["in all", "one burst", "lifetime", "limit", "limit for a user"],
)
def test_what_a_live_burst_has_is_not_impossible(changes, share):
    """The job waits for the burst's other job, whatever is sold or allowed by now."""
    changes = {"share": share, **changes}
    live = busy("burst-0-aaaaaa", 1)
    assert decided(live, **changes) in (Reason.TURNED_DOWN, Reason.RESERVED)
    without = decided(**changes)
    assert without in (Reason.TOO_LARGE, Reason.TOO_LONG, Reason.OVER_LIMIT)


@pytest.mark.parametrize(
    "changes",
    [
        {"live": {"userids": frozenset({200})}},
        {"request": {"constraint": '{"hostlist":["burst-0-[0-2]"]}'}},
        {"request": {"cores_per_slot": NODE.cores + 1}},
        {"job": None},
        {"need": 5},
    ],
    ids=["of others", "excluded", "too small", "request ahead of jobs", "too few"],
)
def test_a_live_burst_that_the_job_cannot_have_does_not_count(changes):
    live = busy("burst-0-aaaaaa", 1, **changes.pop("live", {}))
    assert decided(live, total=3, **changes) in (Reason.TOO_LARGE, Reason.NEVER_FITS)


@pytest.mark.parametrize(
    ("need", "coming", "expected"),
    [(8, 0, Reason.TURNED_DOWN), (9, 0, Reason.TOO_LARGE), (9, 4, Reason.TURNED_DOWN)],
)
def test_nodes_of_several_live_bursts_count_together(need, coming, expected):
    lead = identity("lead-0,burst-0-[0-3],burst-1-[0-3],burst-2-[0-3]")
    live = busy("burst-0-aaaaaa", 1), busy("burst-1-aaaaaa", 5)
    made = {"need": need, "coming": coming, "total": 3, "lead": lead}
    assert decided(*live, **made) is expected


@pytest.mark.parametrize(
    ("need", "expected"), [(6, Reason.TURNED_DOWN), (7, Reason.TOO_LARGE)]
)
def test_what_is_live_and_what_is_sold_count_together(need, expected):
    """Four nodes live of an offer that is gone, and two are sold, one in each burst."""
    live = busy("burst-0-aaaaaa", 1)
    offers = {"gke": [offer(total=2, max_nodes=1)]}
    assert decided(live, need=need, offers=offers) is expected


def test_idle_nodes_that_would_be_combined_with_new_ones_count_once() -> None:
    ranks = dict.fromkeys(range(1, 5), NODE)
    idle = live_burst("burst-0-aaaaaa", NodePool(ranks, ranks), nodes=4)
    limits = {"max_nodes": 5}
    assert decided(idle, need=8, limits=limits) is Reason.OVER_LIMIT
    assert decided(idle, need=5, limits=limits) is not Reason.OVER_LIMIT


@pytest.mark.parametrize(
    ("coming", "expected"), [(0, Reason.TOO_LARGE), (2, Reason.TURNED_DOWN)]
)
def test_one_burst_has_to_hold_only_what_the_job_lacks(coming, expected):
    """It needs six nodes and may not be spread; each slot has four, busy now."""
    asked = {"need": 6, "coming": coming, "spread": False, "offer": {"max_nodes": 4}}
    assert decided(**asked, taken=("burst-0", "burst-1")) is expected
