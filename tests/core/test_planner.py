# SPDX-License-Identifier: MIT
import math

import pytest

from burst.core.plan.demands import LiveBurstWorth
from burst.core.plan.estimate import StartEstimate
from burst.core.plan.fit import NodePool
from burst.core.plan.leasable import UNSCHEDULED
from burst.core.plan.limits import FurtherUse
from burst.model.burst import BurstId
from burst.model.decision import name_ranks
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from burst.model.shape import Shape
from tests.builders import LENT, NODE, T0, but, identity, offer, slots, whole
from tests.core.plans import demand, leases, live_burst, plan, reasons


def test_a_job_gets_a_burst_of_its_size_from_the_start_of_a_slot():
    made = plan(demand(1, whole(3)))

    (proposal,) = made.proposals
    lease = proposal.lease
    assert lease.slot == "burst-0"
    assert lease.hosts == ("burst-0-0", "burst-0-1", "burst-0-2")
    assert lease.ranks == (2, 3, 4)
    assert lease.userids == (100,)
    assert lease.shape == NODE
    assert lease.created == T0
    assert lease.id.startswith("burst-0-")
    assert made.decisions[1].text() == f"3 nodes of local/small for it as {lease.id}"


def test_ids_are_never_the_same_again():
    lead = identity()
    ids = {plan(demand(1, whole(n)), lead=lead).proposals[0].lease.id for n in (1, 2)}

    assert len(ids) == 2


def test_the_smallest_slot_that_fits_is_taken():
    lead = identity("lead-0,burst-0-[0-7],burst-1-[0-1],burst-2-[0-3]")
    made = plan(demand(1, whole(3)), lead=lead)
    assert leases(made) == [("burst-2", "local", 3, [1])]


def shaped(first, second):
    """A lead with slots of two shapes, which stand in its hosts in that order."""
    shapes = (Shape(2), *(first,) * 4, *(second,) * 4)
    return identity("lead-0,burst-0-[0-3],burst-1-[0-3]", shapes=shapes)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("small", "large", "asked", "nodes"),
    [
        (Shape(2), Shape(8), slots(8), 1),
        (Shape(2), Shape(8), slots(1), -1),
        (Shape(8), Shape(4, 1), whole(2), -2),
        (Shape(8), Shape(4, 1), slots(1, gpus=1), 1),
    ],
)
def test_of_slots_of_several_shapes_that_where_fewest_nodes_do_is_taken(
    small, large, asked, nodes, turned
):
    """Each node costs as much; else (below 0) the smallest, and one without GPUs."""
    lead = shaped(large, small) if turned else shaped(small, large)
    offers = {"local": [offer(shape=Shape(8, 1))]}
    made = plan(demand(1, asked), lead=lead, offers=offers)
    (proposal,) = made.proposals
    assert proposal.lease.shape == (small if nodes < 0 else large)
    assert proposal.lease.nodes == abs(nodes)


def test_what_keeps_a_job_from_the_slots_that_hold_it_is_told():
    lead = shaped(Shape(8), Shape(2))
    offers = {"local": [offer(shape=Shape(8), max_nodes=2)]}
    made = plan(demand(1, slots(6, 4)), lead=lead, offers=offers, spread=False)
    assert reasons(made, 1)[1] == [("local/small", Reason.FEW_NODES)]


DEAR, CHEAP = [offer(price=2.0)], [offer(price=1.0, join_time=10)]
SLOW = [offer(price=1.0, join_time=300)]


@pytest.mark.parametrize(
    ("offers", "taken"),
    [
        # The price decides, then the time to join, then the order.
        ({"dear": DEAR, "slow": SLOW, "quick": CHEAP, "quick2": CHEAP}, "quick"),
        # Of one price it is the one without a fee.
        ({"a": [offer(price=1.0, fee=0.1)], "b": SLOW}, "b"),
        # No slot is kept for a provider with the name of the property of all slots.
        ({"burst": DEAR, "cheap": CHEAP}, "cheap"),
    ],
    ids=["price and time", "fee", "a provider named burst"],
)
def test_which_offer_is_taken(offers, taken):
    made = plan(demand(1, whole(2)), offers=offers)
    assert leases(made) == [("burst-0", taken, 2, [1])]


@pytest.mark.parametrize(
    ("price", "fee", "words"),
    [
        (0.0, 0.0, ""),
        (2.0, 0.0, ", at 2 per node-hour as offered"),
        (0.0, 0.1, ", plus a fee of 0.1 per hour for the burst"),
        (
            *(2.0, 0.1),
            ", at 2 per node-hour as offered, plus a fee of 0.1 per hour for the burst",
        ),
    ],
)
def test_what_a_burst_costs_is_told_with_it(price, fee, words):
    made = plan(demand(1, whole(2)), offers={"a": [offer(price=price, fee=fee)]})
    (lease,) = (proposal.lease for proposal in made.proposals)
    assert (lease.price, lease.fee) == (price, fee)
    text = made.decisions[1].text()
    assert text == f"2 nodes of a/small for it as {lease.id}{words}"


@pytest.mark.parametrize(
    ("requests", "changes", "made"),
    [
        ([whole(2)] * 3, {}, [("burst-0", 4, [1, 2]), ("burst-1", 2, [3])]),
        # One that grows is one burst.
        (
            [whole(2)] * 3,
            {"limits": {"max_bursts": 2}},
            [("burst-0", 4, [1, 2]), ("burst-1", 2, [3])],
        ),
        (
            [whole(2)] * 2,
            {"limits": {"max_nodes_per_burst": 3}},
            [("burst-0", 2, [1]), ("burst-1", 2, [2])],
        ),
        ([whole(1)] * 2, {"share": False}, [("burst-0", 1, [1]), ("burst-1", 1, [2])]),
        ([slots(1)] * 5, {}, [("burst-0", 2, [1, 2, 3, 4, 5])]),
        # Where the scheduler gives whole nodes, small jobs get one each.
        (
            [*[slots(1)] * 3, slots(5)],
            {"whole_nodes": True},
            [("burst-0", 3, [1, 2, 3]), ("burst-1", 2, [4])],
        ),
    ],
    ids=["grows", "one burst", "limit", "not shared", "small jobs", "whole nodes"],
)
def test_jobs_of_one_user_share_a_burst_that_grows(requests, changes, made):
    found = plan(*map(demand, range(1, 9), requests), **changes)
    assert [(slot, nodes, jobs) for slot, _, nodes, jobs in leases(found)] == made


PER_USER = {"max_nodes_per_user": 2}


@pytest.mark.parametrize(
    ("first", "second", "limits", "users"),
    [
        (whole(2), whole(2), {}, [(1, 2)]),
        (whole(2), whole(1), PER_USER, [(1,), (2,)]),
        (whole(1), whole(2), PER_USER, [(1,), (2,)]),
        # Who joins a burst bears all of it.
        (whole(3), slots(1), {"max_nodes_per_user": 3, "max_bursts": 1}, [(1,)]),
    ],
)
def test_jobs_of_two_users_share_where_allowed_and_within_limits(
    first, second, limits, users
):
    two = demand(1, first, user=1), demand(2, second, user=2)
    shared = plan(*two, share_users=True, limits=limits).proposals
    assert [p.lease.userids for p in shared] == users
    assert len(plan(*two).proposals) == 2


def test_a_shared_burst_keeps_to_the_constraints_of_each_job():
    first = '{"hostlist":["burst-0-[0-1]"]}'
    made = plan(
        demand(1, whole(1, constraint=first)),
        demand(2, whole(1, constraint=first)),
        demand(3, whole(1, constraint=first)),
        demand(4, whole(1)),
    )

    # It waits for one of the two nodes, so that the burst is not used for longer.
    found = [(nodes, jobs) for _, _, nodes, jobs in leases(made)]
    assert found == [(2, [1, 2]), (1, [4])]
    assert reasons(made, 3) == (Reason.RESERVED, [("local/small", Reason.SLOTS_BUSY)])


def test_shared_bursts_keep_to_the_wish_for_a_provider():
    offers = {"a": [offer()], "b": [offer(price=1.0)]}
    made = plan(demand(1, whole(1)), demand(2, whole(1), provider="b"), offers=offers)

    assert [p.lease.provider for p in made.proposals] == ["a", "b"]


def test_who_has_joined_a_burst_bears_it_once():
    made = plan(
        demand(1, slots(4), user=1),
        demand(2, slots(3), user=2),
        demand(3, slots(1), user=2),
        lead=identity("lead-0,burst-0-[0-1]"),
        share_users=True,
        limits=PER_USER,
    )
    assert [p.jobs for p in made.proposals] == [(1, 2, 3)]


def test_a_burst_too_large_for_a_users_limit_is_not_joined():
    made = plan(
        demand(1, slots(5), user=1),
        demand(2, slots(1), user=2),
        share_users=True,
        limits={"max_nodes_per_user": 2, "max_bursts": 2},
        in_use={BurstId("other"): FurtherUse.new("", (1,), 2, math.inf)},
    )

    # The limit allows it a burst once the other one is gone.
    assert reasons(made, 2) == (Reason.RESERVED, [("local/small", Reason.LIMIT_BURSTS)])
    assert len(made.promises) == 1


@pytest.mark.parametrize("spread", [True, False])
def test_a_limit_is_told_though_no_free_slot_is_large_enough_either(spread):
    jobs = demand(1, whole(3)), demand(2, whole(4))
    kw = {"taken": ["burst-1"], "spread": spread}
    made = plan(*jobs, limits={"max_nodes_per_user": 5}, **kw)
    assert reasons(made, 2)[1] == [("local/small", Reason.LIMIT_USER)]
    made = plan(*jobs, **kw)
    assert reasons(made, 2)[1] == [("local/small", Reason.SLOTS_SMALL)]


def test_a_large_job_gets_several_slots_where_allowed():
    assert leases(plan(demand(1, whole(6)))) == [
        ("burst-1", "local", 4, [1]),
        ("burst-0", "local", 2, [1]),
    ]
    made = plan(demand(1, whole(6)), spread=False)
    assert reasons(made, 1) == (Reason.NO_ROOM, [("local/small", Reason.SLOTS_FEW)])
    assert made.decisions[1].text() == (
        "it needs 6 nodes; offers have that many, but on the lead's rank slots it can"
        " have at most 4 (burst lead add-slot, then restart the lead)"
    )


def test_what_is_coming_already_is_not_made_again():
    assert leases(plan(demand(1, whole(6), coming=[(NODE, 4)]))) == [
        ("burst-0", "local", 2, [1])
    ]


def test_a_burst_larger_than_an_offer_is_split_or_refused():
    small = {"local": [offer(max_nodes=3)]}
    made = plan(demand(1, whole(4)), offers=small)
    assert [nodes for _, _, nodes, _ in leases(made)] == [3, 1]
    made = plan(demand(1, whole(4)), offers=small, spread=False)
    assert reasons(made, 1) == (Reason.TOO_LARGE, [("local/small", Reason.FEW_NODES)])


def test_the_room_of_live_bursts_is_used_first():
    pool = NodePool({2: NODE, 3: NODE}, {2: NODE, 3: NODE})
    room = live_burst(
        "burst-0-aaaaaa", pool, idle=False, userids=frozenset({100}), nodes=2
    )
    made = plan(
        demand(1, whole(1), user=7),
        demand(2, whole(1), provider="other"),
        demand(3, whole(3)),
        demand(4, whole(2)),
        demand(5, whole(1)),
        live=[room],
        taken=["burst-0"],
    )

    assert made.assignments == {4: ("burst-0-aaaaaa",)}
    assert made.decisions[4].text() == "there is room for it on burst-0-aaaaaa"
    assert leases(made) == [("burst-1", "local", 1, [1]), ("burst-1", "local", 3, [3])]


def test_a_live_burst_that_is_not_worth_it_to_one_job_serves_an_equal_one_behind_it():
    pool = NodePool({2: NODE, 3: NODE}, {2: NODE, 3: NODE})
    room = live_burst(
        "burst-0-aaaaaa", pool, idle=False, userids=frozenset({100}), nodes=2
    )
    soon = StartEstimate(expected=T0, latest=T0, earliest=T0)
    ahead = but(demand(1, whole(2)), live_worth=LiveBurstWorth(soon, 60.0, 1.0, T0))
    slots_taken = {"live": [room], "taken": ["burst-0", "burst-1"]}
    made = plan(ahead, demand(2, whole(2)), **slots_taken)

    assert made.decisions[1].reason is Reason.TURNED_DOWN
    assert made.assignments == {2: ("burst-0-aaaaaa",)}


def test_a_request_ahead_of_jobs_has_a_burst_of_its_own():
    made = plan(demand(1, whole(1)), demand(None, whole(2), user=None))

    assert leases(made) == [("burst-0", "local", 1, [1]), ("burst-1", "local", 2, [])]
    assert made.decisions[None].reason is Reason.PROPOSED


BAD = "bad fan"


@pytest.mark.parametrize(
    ("nodes", "told", "drained", "more"),
    [
        # All else is free; the second slot is leased to the end of time.
        (4, "2", {2: BAD}, {"taken": ["burst-1"]}),
        (4, "2-3", {2: BAD, 3: ""}, {"taken": ["burst-1"]}),
        # Two slots would do together.
        (8, "2", {2: BAD}, {"spread": True}),
        # No rank is free at all.
        (1, "2-5", dict.fromkeys((2, 3, 4, 5), BAD), {"taken": ["burst-1"]}),
        # Some come free later, and there will be too few of them.
        (7, "2-3", {2: BAD, 3: BAD}, {"spread": True, "busy": {"burst-1": T0 + 9}}),
        # Others will do, or more is lacking than these.
        (1, "", {2: BAD}, {"taken": ["burst-0", "burst-1"], "drained": {}}),
        (6, "", {2: BAD}, {"spread": True, "busy": {"burst-1": T0 + 9}}),
    ],
)
def test_a_job_that_lacks_ranks_which_a_person_drained_is_told(
    nodes, told, drained, more
):
    fields = {"drained": drained, "spread": False, **more}
    made = plan(demand(1, whole(nodes)), **fields)
    [refusal] = made.decisions[1].refusals
    assert (refusal.reason is Reason.SLOTS_DRAINED) == bool(told)
    if told:
        assert refusal.text().startswith(
            f"it cannot use {name_ranks(told)} of rank slots, drained by hand: bad fan"
        )
        assert refusal.next_step() == (
            "an administrator undrains them once they can be used again: flux resource"
            f" undrain {told}"
        )


def test_a_job_that_lacks_ranks_which_the_scheduler_does_not_have_is_told():
    drained = {2: UNSCHEDULED, 3: BAD}
    made = plan(demand(1, whole(4)), drained=drained, spread=False, taken=["burst-1"])
    [refusal] = made.decisions[1].refusals
    assert refusal.text().startswith("it cannot use rank 2 of rank slots, which")
    assert refusal.next_step() == "an administrator does what burst doctor says of them"


def test_a_drained_rank_that_is_too_small_for_a_job_is_not_told():
    large = whole(1, cores_per_slot=99)
    made = plan(demand(1, large), drained={2: BAD}, taken=["burst-0", "burst-1"])
    [refusal] = made.decisions[1].refusals
    assert refusal.reason is Reason.NODE_SMALL


def test_a_drained_rank_that_a_job_cannot_have_anyway_is_not_told():
    others = whole(1, constraint='{"hostlist":["burst-0-[1-3]"]}')
    jobs = [demand(number, others) for number in range(1, 5)]
    made = plan(*jobs, drained={2: BAD}, spread=False)
    [refusal] = made.decisions[4].refusals
    assert refusal.reason is Reason.SLOTS_BUSY


def test_equal_jobs_are_refused_alike():
    made = plan(*[demand(n, whole(4)) for n in range(1, 7)])

    assert made.decisions[3].reason is Reason.RESERVED
    assert made.decisions[5] is made.decisions[6]
    told = [("local/small", Reason.SLOTS_BUSY)]
    assert reasons(made, 5) == (Reason.TURNED_DOWN, told)


UNKNOWN = {"offers": {"p": None}}
TINY = {"offers": {"local": [offer(shape=Shape(2))]}}
EXCLUDED = whole(1, constraint='{"properties":["^burst"]}')


@pytest.mark.parametrize(
    ("what", "changes", "reason", "refusal"),
    [
        (whole(1), {"offers": {}}, Reason.NO_OFFERS, None),
        (whole(1), UNKNOWN, Reason.TURNED_DOWN, ("p/*", Reason.OFFERS_UNKNOWN)),
        (whole(1), {"lead": identity("lead-[0-1]")}, Reason.NO_SLOTS, None),
        (EXCLUDED, {}, Reason.EXCLUDED, ("local/small", Reason.SLOTS_FEW)),
        (slots(1, 9), {}, Reason.NEVER_FITS, ("local/small", Reason.NODE_SMALL)),
        (whole(1), TINY, Reason.TURNED_DOWN, ("local/small", Reason.SHAPE_MISMATCH)),
        (whole(9), {}, Reason.NO_ROOM, ("local/small", Reason.SLOTS_FEW)),
    ],
)
def test_says_why_nothing_can_be_had(what, changes, reason, refusal):
    made = plan(demand(1, what), **changes)

    assert made.proposals == ()
    assert reasons(made, 1) == (reason, [refusal] if refusal else [])


@pytest.mark.parametrize("spread", [True, False])
@pytest.mark.parametrize(("total", "never"), [(3, True), (4, False), (0, False)])
def test_more_nodes_than_an_offer_has_in_all_are_impossible(total, never, spread):
    """Whatever of them is in use now."""
    lead = identity("lead-0,burst-0-[0-3]")
    kw = {"lead": lead, "spread": spread, "offers": {"local": [offer(total=total)]}}
    others = {BurstId("a"): FurtherUse.new("local/small", (1,), None, math.inf)}
    made = plan(demand(1, whole(4)), taken=["burst-0"], in_use=others, **kw)
    decision = made.decisions[1]
    if not never:
        assert decision.reason is Reason.TURNED_DOWN
        return
    assert decision.reason is Reason.TOO_LARGE
    assert decision.text() == "it needs 4 nodes; the most that it could ever have is 3"


def test_a_job_may_have_nodes_of_several_offers_which_have_too_few_each():
    """Some of one that another job leaves idle, and the rest of the other."""
    job, small = demand(1, whole(6)), offer(total=4)
    made = plan(job, offers={"local": [small], "gke": [small]})
    full = [("local/small", Reason.OFFER_FULL), ("gke/small", Reason.OFFER_FULL)]
    assert reasons(made, 1) == (Reason.TURNED_DOWN, full)
    # What comes already need not be had.
    made = plan(demand(1, whole(8), coming=[(NODE, 4)]), offers={"local": [small]})
    assert leases(made) == [("burst-0", "local", 4, [1])]
    made = plan(demand(1, whole(8), coming=[(NODE, 3)]), offers={"local": [small]})
    assert made.decisions[1].reason is Reason.TOO_LARGE


THREE_SLOTS = identity("lead-0,burst-0-[0-3],burst-1-[0-3],burst-2-[0-3]")


@pytest.mark.parametrize(("total", "never"), [(6, True), (7, False), (0, False)])
def test_a_job_that_a_further_rank_slot_would_serve_waits_for_it(total, never):
    """It may be spread, so no single burst needs to have all its nodes."""
    offers = {"local": [offer(max_nodes=3, total=total)]}
    decision = plan(demand(1, whole(7)), offers=offers).decisions[1]
    assert decision.reason is (Reason.TOO_LARGE if never else Reason.NO_ROOM)
    assert decision.facts["most"] == 6
    made = plan(demand(1, whole(7)), offers=offers, lead=THREE_SLOTS)
    sizes = [nodes for _, _, nodes, _ in leases(made)]
    assert sizes == ([] if never else [3, 3, 1])


def test_a_slot_larger_than_any_burst_is_no_reason_to_fail_a_job():
    large = identity("lead-0,burst-0-[0-15]")
    made = plan(demand(1, whole(12)), lead=large)
    assert reasons(made, 1)[0] is Reason.NO_ROOM


def test_a_slot_with_a_providers_name_is_kept_for_it():
    ranks = {"gke": frozenset(range(1, 5)), "burst": frozenset(range(1, 9))}
    lead = identity("lead-0,burst-0-[0-3],burst-1-[0-3]", properties=ranks)
    offers = {"local": [offer()], "gke": [offer(price=5.0)]}
    jobs = [demand(number, whole(4, constraint=LENT)) for number in (1, 2, 3)]
    made = plan(*jobs, lead=lead, offers=offers)

    assert leases(made) == [("burst-1", "local", 4, [1]), ("burst-0", "gke", 4, [2])]


@pytest.mark.parametrize("asked", [whole(5), whole(1, gpus_per_slot=2)])
def test_nothing_is_impossible_before_each_provider_has_answered(asked):
    offers = {"local": [offer(total=1)], "gke": None}
    for wish in ("", "gke"):
        made = plan(demand(1, asked, provider=wish), offers=offers)
        assert not made.decisions[1].reason.about_job.final
    made = plan(demand(1, asked, provider="local"), offers=offers)
    assert made.decisions[1].reason.about_job.final
    made = plan(demand(1, asked), offers={**offers, "gke": []})
    assert made.decisions[1].reason.about_job.final


def test_a_slot_is_kept_for_a_provider_that_has_not_answered_yet():
    lead = identity("lead-0,burst-0-[0-3]", properties={"gke": frozenset(range(1, 5))})
    offers = {"local": [offer()], "gke": None}
    assert plan(demand(1, whole(4)), lead=lead, offers=offers).proposals == ()


def test_a_slot_is_passed_over_where_a_constraint_excludes_its_start():
    second = '{"hostlist":["burst-1-[0-3]"]}'
    made = plan(demand(1, whole(2, constraint=second)))
    assert leases(made) == [("burst-1", "local", 2, [1])]


@pytest.mark.parametrize(
    ("nodes", "limit", "sizes"), [(4, 2, [2, 2]), (3, 2, [2, 1]), (8, 4, [4, 4])]
)
def test_a_limit_of_nodes_a_burst_splits_a_job_that_may_be_spread(nodes, limit, sizes):
    made = plan(demand(1, whole(nodes)), limits={"max_nodes_per_burst": limit})

    assert [n for _, _, n, _ in leases(made)] == sizes


@pytest.mark.parametrize("where", ["together", "spread"])
def test_what_a_limit_of_nodes_a_burst_keeps_from_a_job_is_said(where):
    asked = demand(1, whole(6))
    asked = but(asked, preferences=BurstPreferences(where=where))
    made = plan(asked, limits={"max_nodes_per_burst": 2})

    (refusal,) = made.decisions[1].refusals
    assert refusal.text() == "limit of 2 nodes per burst; 6 are needed"
