# SPDX-License-Identifier: MIT
"""Jobs that would pass a budget, where their rule fails such jobs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from burst.core.actions import FailJob
from burst.core.provider_health import Health
from burst.core.records import Records
from burst.core.tick import TickResult, run_tick
from burst.core.world import ProviderView, World
from burst.model.burst import State
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from burst.model.shape import Shape
from tests.builders import (
    T0,
    identity,
    job,
    offer,
    settings,
    slots,
    view,
    whole,
    world,
)
from tests.core.worth.money_sim import BOUND, LENT, sim, submit
from tests.sim import Sim

HOUR = 3600.0
ONE, TWO = JobId(1), JobId(2)
FAIL: dict[str, Any] = {"policy": [{"name": "gpu", "over_budget": "fail"}]}
POOR: dict[str, Any] = {**FAIL, "budget": [{"limit": 1}]}
DEAR = offer(price=2.0)


def lent(number: int = 1, nodes: int = 2, **fields: Any) -> JobView:
    """A job that only lent nodes could run."""
    request = whole(nodes, constraint=LENT)
    wanted = {"duration": HOUR, "burstable": True, **fields}
    found: JobView = job(number, request, **wanted)
    return found


def tick_once(seen: World, records: Records | None = None, **tables: Any) -> TickResult:
    return run_tick(records or Records(), seen, settings(**tables), T0 + 1000)


def failed(made: TickResult) -> dict[JobId, str]:
    return {
        action.job: action.reason
        for action in made.actions
        if isinstance(action, FailJob)
    }


def reasons(made: TickResult, number: JobId = ONE) -> list[Reason]:
    return [refusal.reason for refusal in made.decisions[number].refusals]


@pytest.mark.parametrize("mode", ["hold", "queue", "scheduler"])
def test_a_job_that_would_pass_a_budget_is_failed_as_its_rule_says(mode: str) -> None:
    queue = "burst" if mode == "queue" else ""
    seen = world(view(lent(queue=queue)), local=(DEAR,))
    if mode == "queue":
        queues = {"burst": ("burst",), "burst-ready": ("burst",)}
        seen = msgspec.structs.replace(seen, identity=identity(queues=queues))
    made = tick_once(seen, intake={"mode": mode}, **POOR)
    (text,) = failed(made).values()
    assert text.startswith(
        "rule gpu fails jobs that would pass a budget: local/small: budget everything,"
        " per month: 1.00 of 1.00 is left, and "
    )
    # What makes up the sum, so that one sees which part to shorten.
    assert " would be reserved; its limit is less than that, which is for " in text
    for part in ("provision and join ", "release 5m", "idle ", "reap "):
        assert part in text
    assert "; the longest of these is " in text
    assert made.decisions[ONE].memo_word() == "over-budget"
    assert made.records.bursts == {}


def test_it_is_told_until_when_the_budget_has_no_more() -> None:
    its = sim(2 * BOUND)
    its.tables["policy"] = FAIL["policy"]
    its.boot()
    running = submit(its)
    its.until(its.in_state(State.ONLINE))
    other = submit(its, userid=2)
    its.tick(2)
    ((what, which, text),) = [entry for entry in its.lead.log if entry[0] == "fail"]
    assert (what, which) == ("fail", other)
    assert text.startswith(
        "rule gpu fails jobs that would pass a budget: local/nodes: budget everything,"
        " per month: 200.00 of 600.00 is left, and 400.00 would be reserved; it begins"
        " anew on 1970-02-01 "
    )
    assert its.lead.jobs[other].result == "failed"
    assert its.lead.jobs[running].state is JobState.RUN
    its.tick(3)
    assert [entry[0] for entry in its.lead.log].count("fail") == 1


def test_it_is_failed_again_until_that_took() -> None:
    seen = world(view(lent()), local=(DEAR,))
    made = tick_once(seen, **POOR)
    again = run_tick(
        made.records, seen, settings(**POOR), T0 + 1001, made.refusal_cache
    )
    assert set(failed(again)) == {ONE}


@pytest.mark.parametrize("rule", [{}, {"over_budget": "wait"}])
def test_by_default_it_waits(rule: dict[str, Any]) -> None:
    seen = world(view(lent()), local=(DEAR,))
    made = tick_once(seen, policy=[{"name": "gpu", **rule}], budget=POOR["budget"])
    assert failed(made) == {}
    assert made.decisions[ONE].reason is Reason.TURNED_DOWN
    assert reasons(made) == [Reason.OVER_BUDGET]


@pytest.mark.parametrize("online", [(0, 1), (0,)])
def test_a_job_that_own_nodes_could_run_waits(online: tuple[int, ...]) -> None:
    one = job(1, whole(2), duration=HOUR, burstable=True)
    made = tick_once(world(view(one, online=online, busy=(0,)), local=(DEAR,)), **POOR)
    assert failed(made) == {}
    assert made.decisions[ONE].reason is Reason.TURNED_DOWN
    assert reasons(made) == [Reason.OVER_BUDGET]


def test_a_job_that_only_a_rule_marks_waits() -> None:
    seen = world(view(lent(burstable=False)), local=(DEAR,))
    made = tick_once(
        seen,
        intake={"any_job": True},
        policy=[{"over_budget": "fail", "mark": True}],
        budget=POOR["budget"],
    )
    assert failed(made) == {}
    assert reasons(made) == [Reason.OVER_BUDGET]


@pytest.mark.parametrize(
    ("changes", "other"),
    [
        ({"limits": {"max_nodes": 1}}, Reason.TURNED_DOWN),
        ({"world": {"closing": True}}, Reason.DAEMON_STOPPING),
        ({"job": {"urgency": 0}}, Reason.USER_HOLD),
        ({"job": {"state": JobState.DEPEND}}, Reason.NOT_READY),
    ],
)
def test_nothing_is_failed_for_money_that_waits_for_something_else(
    changes: dict[str, Any], other: Reason
) -> None:
    seen = world(view(lent(nodes=1, **changes.pop("job", {}))), local=(DEAR,))
    if "limits" in changes:
        # Its own nodes are within the limit, but those of another burst fill it.
        seen = world(view(lent(1, nodes=1), lent(2, nodes=1, userid=7)), cheap=(DEAR,))
        rich = {
            **FAIL,
            "budget": [{"limit": 1e6}, {"limit": 1, "match": {"user": "7"}}],
        }
        made = tick_once(seen, **rich, **changes)
        assert made.decisions[ONE].reason is Reason.PROPOSED
        assert made.decisions[TWO].reason is other
        assert reasons(made, TWO) == [Reason.LIMIT_NODES]
    else:
        seen = msgspec.structs.replace(seen, **changes.pop("world", {}))
        made = tick_once(seen, **POOR)
        assert made.decisions[ONE].reason is other
    assert failed(made) == {}


GKE: dict[str, Any] = {
    "providers": {"gke": {"type": "fake"}, "kube": {"type": "fake"}},
    "budget": [{"limit": 1, "match": {"provider": "gke"}}],
}


@pytest.mark.parametrize(
    ("rule", "wish", "second", "outcome"),
    [
        # Not of what may be had: provider, price, shape and mode.
        ({"providers": ["gke"]}, {}, {}, True),
        ({"max_price": 2.5}, {}, {"price": 9.0}, True),
        ({}, {"provider": "gke"}, {}, True),
        ({}, {"max_price": 2.5}, {"price": 9.0}, True),
        ({}, {}, {"shape": Shape(1)}, True),
        ({}, {"mode": "joined"}, {"modes": ("isolated",)}, True),
        # It may be had later.
        ({}, {}, {}, False),
        ({}, {}, None, False),
    ],
)
def test_offers_that_a_job_could_never_have_are_not_waited_for(
    rule: dict[str, Any],
    wish: dict[str, Any],
    second: dict[str, Any] | None,
    outcome: bool,
) -> None:
    """The second provider is paused after failures, or has not told its offers."""
    one = lent(preferences=BurstPreferences(**wish))
    base = world(view(one), gke=(DEAR,), kube=())
    offers = None if second is None else (offer(**{"price": 2.0, **second}),)
    seen = msgspec.structs.replace(
        base,
        providers={**base.providers, "kube": ProviderView(offers=offers, read_at=T0)},
    )
    pause = Health(failed={"provision": 3}, until=T0 + 5000)
    records = Records(health={"kube": pause})
    tables = {"policy": [{**FAIL["policy"][0], **rule}], **GKE}
    made = tick_once(seen, records, **tables)
    assert bool(failed(made)) is outcome
    assert Reason.OVER_BUDGET in reasons(made)
    assert len(reasons(made)) == 2


def test_an_offer_whose_nodes_no_rank_slot_declares_is_not_waited_for() -> None:
    small = offer("little", shape=Shape(2), price=1.0)
    made = tick_once(world(view(lent()), gke=(DEAR, small)), **FAIL, **GKE)
    assert set(failed(made)) == {ONE}
    assert Reason.SHAPE_MISMATCH in reasons(made)


def test_an_offer_that_ends_too_soon_for_a_job_is_not_waited_for() -> None:
    brief = offer("brief", lifetime=HOUR / 2)
    made = tick_once(world(view(lent()), local=(brief, DEAR)), **POOR)
    assert set(failed(made)) == {ONE}
    assert reasons(made) == [Reason.LEASE_SHORT, Reason.OVER_BUDGET]


def test_where_nothing_could_be_had_anyway_money_is_not_the_reason() -> None:
    never = BurstPreferences(max_price=1.0)
    made = tick_once(world(view(lent(preferences=never)), local=(DEAR,)), **POOR)
    assert failed(made) == {}
    assert reasons(made) == [Reason.RULE_PRICE]


def test_larger_nodes_of_which_fewer_do_are_waited_for() -> None:
    """Two slots have small nodes; the large ones of the third are drained."""
    hosts = "lead-[0-1],burst-0-[0-3],burst-1-[0-3]"
    shapes = (*[Shape(2)] * 2, *[Shape(1)] * 4, *[Shape(8)] * 4)
    lead = identity(hosts, shapes=shapes)
    one = job(1, slots(8, constraint=LENT), duration=HOUR, burstable=True)
    two = job(1, slots(4, constraint=LENT), duration=HOUR, burstable=True)
    big = offer(shape=Shape(8), price=1.0)
    for it, limit, why in (
        (one, 5.0, Reason.SLOTS_SMALL),
        (two, 5.0, Reason.OVER_BUDGET),
        (two, 1.0, None),
    ):
        drained = dict.fromkeys(range(6, 10), "broken fan")
        picture = view(it, lead=lead, drained=drained)
        tables = {**FAIL, "budget": [{"limit": limit}]}
        made = tick_once(world(picture, lead, local=(big,)), **tables)
        assert bool(failed(made)) is (why is None), limit
        if why:
            assert reasons(made) == [why]


def test_a_job_waits_for_live_bursts_that_may_do_for_it() -> None:
    its = sim(BOUND + 200)
    its.tables["policy"] = FAIL["policy"]
    its.boot()
    first = submit(its, userid=1)
    its.until(its.in_state(State.ONLINE))
    waits = submit(its, userid=1)
    others, larger = submit(its, userid=2), submit(its, nodes=2, userid=1)
    longer = submit(its, duration=3000.0, userid=1)
    its.tick(3)
    failures = [entry[1] for entry in its.lead.log if entry[0] == "fail"]
    assert set(failures) == {others, larger, longer}
    its.lead.finish(first)
    its.until(lambda: its.lead.jobs[waits].state is JobState.RUN)
    assert len(its.bursts) == 1


def test_a_job_waits_for_a_burst_of_the_same_plan() -> None:
    its = sim(BOUND + 100)
    its.tables["policy"] = FAIL["policy"]
    its.boot()
    jobs = [submit(its, userid=1), submit(its, userid=1), submit(its, userid=2)]
    its.until(lambda: bool(its.bursts))
    assert its.burst.jobs == {jobs[0]}
    states = [its.lead.jobs[each].state for each in jobs]
    assert states == [JobState.SCHED, JobState.SCHED, JobState.INACTIVE]


def test_jobs_that_ask_for_the_same_are_failed_alike() -> None:
    seen = world(view(lent(1), lent(2)), local=(DEAR,))
    made = tick_once(seen, **POOR)
    assert set(failed(made)) == {ONE, TWO}
    assert made.decisions[ONE] is made.decisions[TWO]


def test_a_job_for_an_isolated_burst_is_failed_too() -> None:
    alone = BurstPreferences(mode="isolated")
    one = lent(nodes=3, preferences=alone)
    cloud = offer(price=2.0, modes=("isolated",))
    made = tick_once(world(view(one), local=(cloud,)), **POOR)
    assert set(failed(made)) == {ONE}


def test_what_is_impossible_is_so_without_money_too() -> None:
    made = tick_once(world(view(lent(nodes=9)), local=(DEAR,)), **POOR)
    assert failed(made) == {}
    assert made.decisions[ONE].reason is Reason.TOO_LARGE


def test_what_cannot_be_read_fails_nothing() -> None:
    its = sim(BOUND)
    its.tables["policy"] = FAIL["policy"]
    its.lead.disk.records["ledger/1970-01-12"] = "{"
    its.boot()
    one = submit(its)
    its.tick(4)
    assert its.lead.jobs[one].state is JobState.SCHED
    (refusal,) = its.engine.snapshot.decisions[one].refusals
    assert refusal.reason is Reason.BUDGET_UNREAD


def test_a_job_that_has_a_part_of_its_nodes_waits() -> None:
    """One of its two nodes is gone, and there is no money for another."""
    its = sim(2 * (BOUND + 100))
    its.tables["policy"] = FAIL["policy"]
    its.boot()
    one = submit(its, nodes=2)
    its.until(lambda: bool(its.bursts))
    its.lead.drained[its.burst.lease.ranks[0]] = "broken fan"
    its.tick(5)
    assert one in its.burst.jobs
    assert reason_of(its, one) is Reason.TURNED_DOWN
    assert its.lead.jobs[one].state is JobState.SCHED


def reason_of(its: Sim, number: JobId) -> Reason:
    return its.engine.snapshot.decisions[number].reason


def test_a_job_waits_for_the_money_of_a_burst_that_does_nothing() -> None:
    """A user cancels a job whose nodes are about to come, and submits it again."""
    its = sim(1.5 * (BOUND + 100))
    its.tables["policy"] = FAIL["policy"]
    its.joins = False
    its.boot()
    first = submit(its)
    its.until(its.in_state(State.JOIN))
    its.lead.finish(first, "canceled")
    its.until(its.in_state(State.REAP))
    again, dearer = submit(its), submit(its, nodes=2)
    its.joins = True
    its.until(lambda: its.lead.jobs[again].state is JobState.RUN)
    # No burst that ends would leave enough for two nodes.
    failures = [entry[1] for entry in its.lead.log if entry[0] == "fail"]
    assert failures == [dearer]


def test_a_job_waits_for_the_money_of_a_burst_that_is_idle() -> None:
    its = sim(2.3 * (BOUND + 100))
    its.tables["policy"] = FAIL["policy"]
    its.boot()
    first = submit(its)
    its.until(lambda: its.lead.jobs[first].state is JobState.RUN)
    its.lead.finish(first)
    its.until(lambda: its.burst.idle_since is not None)
    together = BurstPreferences(where="together")
    larger, dearer = (submit(its, nodes=n, preferences=together) for n in (2, 3))
    its.tick(3)
    assert its.lead.jobs[larger].state is JobState.SCHED
    its.until(lambda: its.lead.jobs[larger].state is JobState.RUN, ticks=100)
    assert [entry[1] for entry in its.lead.log if entry[0] == "fail"] == [dearer]
