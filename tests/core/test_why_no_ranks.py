# SPDX-License-Identifier: MIT
"""The reason that a job is told has to be the one that lasts, or that really waits."""

import pytest

from burst.core.money.ledger import Payer
from burst.core.plan.limits import FurtherUse
from burst.core.plan.purchases import Purchases
from burst.core.records import Records
from burst.model.burst import BurstId
from burst.model.next_step import ends_by_waiting
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from burst.model.shape import Shape
from tests.builders import (
    NODE,
    OWN,
    T0,
    but,
    identity,
    job,
    offer,
    settings,
    slots,
    view,
    whole,
    world,
)
from tests.core.plans import demand, plan, reasons
from tests.core.ticks import tick_once

BIG = Shape(8, 4)
ALL = frozenset(range(2, 10))
TWO_KINDS = but(
    identity("lead-0,burst-0-[0-1],burst-1-[0-1]"),
    shapes=(OWN, *[NODE] * 2, *[BIG] * 2),
    properties={
        "burst": frozenset({1, 2, 3, 4}),
        "gpu": frozenset({3, 4}),
    },
)


def test_slots_that_are_leased_do_not_hide_a_budget():
    known = settings(budget=[{"limit": 0.1}])
    purchases = Purchases(Records(), known, {}, lambda _: Payer(100), T0)
    sold = {"local": [offer(price=1.0)]}
    leased = ["burst-0", "burst-1"]
    made = plan(demand(1, whole(1)), offers=sold, taken=leased, purchases=purchases)
    told = [("local/small", Reason.BUDGET_SMALL)]
    assert reasons(made, 1) == (Reason.TURNED_DOWN, told)


@pytest.mark.parametrize(
    ("sold", "need"),
    [(BIG, slots(1, 1, 4)), (NODE, slots(1, 1))],
    ids=["the free nodes are too small", "they are larger than those of the offer"],
)
def test_free_slots_that_never_serve_a_job_do_not_hide_leased_ones(sold, need):
    leased = ["burst-1"] if sold is BIG else ["burst-0"]
    offers = {"local": [offer(shape=sold)]}
    made = plan(demand(1, need), lead=TWO_KINDS, offers=offers, taken=leased)
    assert reasons(made, 1)[1] == [("local/small", Reason.SLOTS_BUSY)]


def test_slots_that_never_serve_a_job_do_not_hide_that_others_are_drained():
    drained = dict.fromkeys([3, 4], "broken fan")
    offers = {"local": [offer(shape=BIG)]}
    need = whole(1, constraint='{"properties":["gpu"]}')
    made = plan(demand(1, need), lead=TWO_KINDS, offers=offers, drained=drained)
    assert reasons(made, 1)[1] == [("local/small", Reason.SLOTS_DRAINED)]


@pytest.mark.parametrize("leased", [[], ["burst-0"]])
def test_a_job_is_told_that_no_slot_for_an_offer_is_one_that_it_may_have(leased):
    need = whole(1, constraint='{"properties":["gpu"]}')
    made = plan(demand(1, need), lead=TWO_KINDS, taken=leased)
    [refusal] = made.decisions[1].refusals
    assert not ends_by_waiting(refusal.reason)
    assert refusal.text() == (
        "the rank slots for its nodes have at most 0 nodes for the job; 1 needed"
    )


def test_a_provider_whose_bursts_may_use_no_slot_is_told_so():
    kept = but(identity(), properties={"burst": ALL, "gke": ALL})
    wish = demand(1, whole(2), provider="local")
    offers = {"local": [offer()], "gke": [offer()]}
    made = plan(wish, lead=kept, offers=offers, taken=["burst-0", "burst-1"])
    assert reasons(made, 1)[1][0] == ("local/small", Reason.SLOTS_FEW)
    offers = {"gke": [offer()], "local": [offer()]}
    made = plan(
        demand(1, whole(2)), lead=kept, offers=offers, taken=["burst-0", "burst-1"]
    )
    assert reasons(made, 1)[1] == [
        ("gke/small", Reason.SLOTS_BUSY),
        ("local/small", Reason.SLOTS_FEW),
    ]


@pytest.mark.parametrize("leased", [[], ["burst-0", "burst-1"]])
def test_a_job_that_takes_more_bursts_than_are_allowed_is_told_so(leased):
    sold = {"local": [offer(max_nodes=4)]}
    limits = {"max_bursts": 1}
    made = plan(demand(1, whole(6)), offers=sold, limits=limits, taken=leased)
    [refusal] = made.decisions[1].refusals
    assert (refusal.reason, made.promises) == (Reason.FEW_BURSTS, ())
    assert refusal.text() == "its nodes take 2 bursts; [limits] max_bursts is 1"
    assert not ends_by_waiting(refusal.reason)


@pytest.mark.parametrize(
    ("hosts", "why"),
    [
        ("lead-0,burst-0-[0-1],burst-1-[0-1],burst-2-[0-3]", Reason.SLOTS_SMALL),
        ("lead-0,burst-0-[0-1],burst-1-[0-1],burst-2-[0-1]", Reason.FEW_BURSTS),
    ],
    ids=["one is enough in the leased slot", "all slots are small"],
)
@pytest.mark.parametrize("leased", [["burst-2"], ["burst-1", "burst-2"]])
def test_the_bursts_that_a_job_takes_are_the_fewest_that_it_may_have(
    hosts, why, leased
):
    made = plan(
        demand(1, whole(4)),
        lead=identity(hosts),
        limits={"max_bursts": 1},
        taken=leased,
    )
    assert reasons(made, 1)[1] == [("local/small", why)]


def test_a_limit_for_each_burst_that_is_no_less_than_the_offer_has_is_no_reason():
    sold, limits = {"local": [offer(max_nodes=2)]}, {"max_nodes_per_burst": 2}
    made = plan(demand(1, whole(3)), offers=sold, limits=limits, spread=False)
    assert reasons(made, 1)[1] == [("local/small", Reason.FEW_NODES)]


def test_a_job_that_needs_more_nodes_than_an_offer_has_in_all_is_told_so():
    sold = {"local": [offer(total=2), offer("other", total=9, shape=Shape(1))]}
    made = plan(demand(1, whole(3)), offers=sold, spread=False)
    assert reasons(made, 1)[1] == [
        ("local/small", Reason.FEW_NODES),
        ("local/other", Reason.SHAPE_MISMATCH),
    ]


def test_a_limit_for_each_burst_is_no_reason_if_the_job_may_have_several_later():
    limits = {"max_nodes_per_burst": 2}
    made = plan(demand(1, whole(4)), limits=limits, taken=["burst-1"])
    assert reasons(made, 1)[1] == [("local/small", Reason.SLOTS_SMALL)]
    made = plan(demand(1, whole(5)), limits=limits, taken=["burst-1"])
    assert reasons(made, 1)[1] == [("local/small", Reason.LIMIT_BURST)]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, Reason.SLOTS_BUSY),
        ({"shape": Shape(1)}, Reason.SHAPE_MISMATCH),
        ({"max_nodes": 1}, Reason.FEW_NODES),
        ({"total": 2}, Reason.OFFER_FULL),
    ],
)
def test_each_offer_is_refused_for_its_own_reason(changed, reason):
    sold = {"local": [offer(), offer("other", **changed)]}
    made = plan(
        demand(1, whole(2)),
        offers=sold,
        spread=False,
        taken=["burst-0", "burst-1"],
        in_use={BurstId("b"): FurtherUse(offer="local/other", nodes=1)},
    )
    told = [("local/small", Reason.SLOTS_BUSY), ("local/other", reason)]
    assert reasons(made, 1)[1] == told


@pytest.mark.parametrize(
    ("nodes", "mode", "queue", "who"),
    [
        (1, "hold", "", "Flux starts it on own nodes when its turn comes"),
        (3, "hold", "", "its user changes the job"),
        (1, "queue", "burst", "its user changes the job"),
    ],
    ids=["own nodes will do", "too large", "in the stopped queue"],
)
def test_a_job_that_own_nodes_will_run_needs_nobody(nodes, mode, queue, who):
    dear = BurstPreferences(max_price=1.0)
    waiting = job(1, whole(nodes), queue=queue, preferences=dear)
    seen = world(view(waiting, busy=[0, 1]), local=(offer(price=2.0),))
    decision = tick_once(seen, intake={"mode": mode}).decisions[waiting.id]
    assert decision.reason is Reason.TURNED_DOWN
    assert decision.next_step().startswith(who)
