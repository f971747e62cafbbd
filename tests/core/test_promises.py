# SPDX-License-Identifier: MIT
"""Which ranks are promised to whom, and who may use them meanwhile: in one plan."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from burst.core.money.ledger import Payer
from burst.core.plan.demands import Demand
from burst.core.plan.fit import NodePool
from burst.core.plan.limits import FurtherUse
from burst.core.plan.promises import MOST
from burst.core.plan.purchases import Purchases
from burst.core.plan.slots import find_slots
from burst.core.records import Records
from burst.model.burst import BurstId, Isolated
from burst.model.jobid import JobId
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from burst.model.shape import Shape
from tests.builders import NODE, OWN, T0, but, identity, offer, settings, slots, whole
from tests.core.plans import leases, live_burst, plan, reasons

HOUR = 3600.0
LEAD = identity("lead-[0-1],burst-0-[0-1],burst-1-[0-3],burst-2-[0-3]")
SLOTS = {slot.name: slot for slot in find_slots(LEAD)}


def demand(number, nodes, duration=0.0, constraint="", user=1, **wish):
    return Demand(
        job=JobId(number),
        userid=user,
        request=whole(nodes, constraint=constraint),
        preferences=BurstPreferences(**wish),
        since=T0,
        duration=duration,
    )


def of(slot):
    return BurstId(f"{slot}-aaaaaa")


def room(slot, free=1, user=1, idle=False):
    """A live burst that has a slot, some nodes of which are free."""
    ranks = SLOTS[slot].ranks
    pool = NodePool(dict.fromkeys(ranks[:free], NODE), dict.fromkeys(ranks, NODE))
    userids = frozenset({user} if user else ())
    return live_burst(of(slot), pool, idle, userids=userids, nodes=len(ranks))


def planned(*demands, busy=None, users=None, rooms=(), **kw):
    """A plan where slots are busy until a time, by a burst of user 1 or another."""
    busy = {name.replace("_", "-"): at for name, at in (busy or {}).items()}
    users = {name.replace("_", "-"): user for name, user in (users or {}).items()}
    in_use = {
        of(name): FurtherUse.new(
            "local/small", (SLOTS[name].size,), users.get(name, 1), until
        )
        for name, until in busy.items()
    }
    holders = {rank: of(name) for name in busy for rank in SLOTS[name].ranks}
    kw = {"lead": LEAD, "live": rooms, "holders": holders, **kw}
    return plan(*demands, busy=busy, in_use=in_use, **kw)


def slots_of(promise):
    return {n for n, s in SLOTS.items() if not set(s.ranks).isdisjoint(promise.ranks)}


@pytest.mark.parametrize(("limit", "promised"), [(1e6, [1, 2, 3]), (7.0, [1])])
def test_what_a_budget_lets_one_job_have_is_promised_to_one(limit, promised):
    # Each of them may cost between 4 and 7: two nodes for two hours and a boot.
    known = settings(budget=[{"limit": limit}])
    purchases = Purchases(Records(), known, {}, lambda _: Payer(1), T0)
    made = planned(
        *[demand(number, 2, 2 * HOUR) for number in (1, 2, 3)],
        busy={"burst_0": T0 + 5, "burst_1": T0 + 5, "burst_2": T0 + 5},
        offers={"local": [offer(price=1.0)]},
        purchases=purchases,
    )
    assert [promise.job for promise in made.promises] == promised


@pytest.mark.parametrize(
    ("need", "busy", "slots", "start"),
    [
        (3, {"burst_1": T0 + 50, "burst_2": T0 + 40}, {"burst-2"}, T0 + 40),
        (3, {"burst_1": T0 + 5, "burst_2": T0 + 5}, {"burst-1"}, T0 + 5),
        (
            2,
            {"burst_0": T0 + 5, "burst_1": T0 + 5, "burst_2": T0 + 9},
            {"burst-0"},
            T0 + 5,
        ),
        (7, {"burst_1": T0 + 9, "burst_2": T0 + 5}, {"burst-1", "burst-2"}, T0 + 9),
        (6, {"burst_1": T0 + 9, "burst_2": T0 + 5}, {"burst-0", "burst-2"}, T0 + 5),
        (5, {"burst_1": 0.0, "burst_2": T0 + 50}, {"burst-0", "burst-1"}, 0.0),
    ],
)
def test_what_is_free_first_is_promised(need, busy, slots, start):
    made = planned(demand(9, need), busy=busy)
    (promise,) = made.promises
    assert (promise.job, promise.start) == (9, start)
    assert len(promise.ranks) == need
    assert slots_of(promise) == slots
    assert made.decisions[9].reason is Reason.RESERVED


@pytest.mark.parametrize(
    ("wanted", "changes", "start"),
    [
        (demand(1, 4, HOUR), {}, T0 + 50),
        # Other ranks are free, and limits allow those once it needs no further nodes.
        (demand(1, 4, HOUR), {"taken": (), "limits": {"max_nodes": 4}}, T0 + 50),
        (demand(1, 4, HOUR, where="together"), {}, T0 + 50),
        (demand(1, 4, 3 * HOUR), {}, T0 + 99),
        (but(demand(1, 6, HOUR, where="together"), rest=whole(4)), {}, T0 + 99),
    ],
    ids=["it joins", "by limits", "it has enough", "it ends before", "not for a rest"],
)
def test_the_nodes_of_a_burst_that_stays_are_promised_to_those_that_can_join_it(
    wanted, changes, start
):
    live = room("burst-1", free=0)
    live.source.lasts = 2 * HOUR
    kw = {"taken": ("burst-0", "burst-2"), **changes}
    stays = {of("burst-1"): T0 + 99}
    made = planned(wanted, busy={"burst_1": T0 + 50}, rooms=[live], staying=stays, **kw)
    assert [each.start for each in made.promises] == [start]


def test_a_job_is_told_its_place_and_what_ends_before():
    (told,) = planned(demand(9, 10), busy={"burst_1": T0 + HOUR}).decisions.values()
    text = told.text()
    assert text.startswith("gets 10 nodes of local/small by about ")
    assert ", when burst-1-aaaaaa ends; kept" in text
    (told,) = planned(demand(9, 10), busy={"burst_1": 0.0}).decisions.values()
    assert " as soon as they are free; kept" in told.text()
    (told,) = planned(demand(9, 10), busy={"burst_1": math.inf}).decisions.values()
    assert "when burst-1-aaaaaa ends, at an unknown time" in told.text()
    assert re.search(
        r"; kept for it: ranks \S+ until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$", told.text()
    )
    (late,) = planned(demand(9, 10), busy={"burst_1": T0 - 9}).decisions.values()
    assert " as soon as burst-1-aaaaaa ends; kept" in late.text()
    # Guests are not told of the bursts of others.
    assert "when another burst ends" in told.guests_text()


@pytest.mark.parametrize(
    ("ends", "start", "slot"),
    [
        ({"burst_0": T0 + HOUR, "burst_1": T0 + 9}, T0 + 9, "burst-1"),
        ({"burst_0": T0 + 9, "burst_1": T0 + HOUR}, T0 + 9, "burst-0"),
        ({"burst_0": T0 + 9, "burst_1": T0 + 9}, T0 + 9, "burst-1"),
        ({"burst_0": math.inf, "burst_1": T0 + 9 * HOUR}, T0 + 9 * HOUR, "burst-1"),
    ],
)
def test_of_slots_of_several_shapes_those_are_promised_that_are_free_first(
    ends, start, slot
):
    """Then those of which the job needs fewer nodes; last those of an unknown time."""
    shapes = (OWN, *(NODE,) * 2, *(Shape(8, 1),) * 4)
    lead = identity("lead-0,burst-0-[0-1],burst-1-[0-3]", shapes=shapes)
    ask = but(demand(1, 2), request=slots(8))
    kw = {"busy": {n.replace("_", "-"): at for n, at in ends.items()}}
    offers = {"local": [offer(shape=Shape(8, 1))]}
    made = plan(ask, lead=lead, offers=offers, **kw)
    (promise,) = made.promises
    ranks = {each.name: each.ranks for each in find_slots(lead)}[slot]
    assert promise.start == start
    assert set(promise.ranks) <= set(ranks)


def test_where_no_limit_tells_when_ranks_are_kept_for_a_while():
    big, busy = demand(1, 10), {"burst_1": math.inf}
    (promise,) = planned(big, busy=busy).promises
    assert promise.start == T0 + 4 * HOUR
    made = planned(big, demand(2, 1, HOUR), demand(3, 1), busy=busy)
    assert leases(made) == [("burst-0", "local", 1, [2])]
    # Not once it has waited for so long.
    late = but(big, since=T0 - 4 * HOUR)
    made = planned(late, demand(3, 1), busy=busy)
    assert made.promises == ()
    assert leases(made) == [("burst-0", "local", 1, [3])]
    # What a limit tells is waited for, however long that is.
    known = {"burst_1": T0 + 9 * HOUR, "burst_2": math.inf}
    (promise,) = planned(demand(1, 6), busy=known).promises
    assert promise.start == T0 + 9 * HOUR


def test_a_job_that_is_to_have_one_burst_waits_for_one_slot():
    busy = {"burst_1": T0 + 50, "burst_2": T0 + 40}
    (promise,) = planned(demand(9, 4, where="together"), busy=busy).promises
    assert slots_of(promise) == {"burst-2"}


@pytest.mark.parametrize(
    ("first", "changes"),
    [
        (demand(9, 6, where="together"), {}),
        (demand(9, 6), {"spread": False}),
        (demand(9, 6, provider="other"), {}),
        (demand(9, 11), {}),
        (demand(9, 6), {"limits": {"max_nodes_per_burst": 1}}),
        (demand(9, 6), {"limits": {"max_bursts": 1}}),
        (demand(9, 6), {"offers": {"local": [offer(lifetime=HOUR)]}}),
    ],
)
def test_nothing_is_promised_to_a_job_that_could_not_have_it(first, changes):
    made = planned(first, demand(10, 2), busy={"burst_1": T0 + 50}, **changes)
    if changes.get("offers"):
        first = demand(9, 6, 2 * HOUR)
        made = planned(first, demand(10, 2), busy={"burst_1": T0 + 50}, **changes)
    assert 9 not in [promise.job for promise in made.promises]
    assert made.decisions[9].reason is not Reason.RESERVED


def test_each_job_is_promised_other_ranks_and_those_of_one_before_after_it():
    busy = {"burst_0": T0 + 10, "burst_1": T0 + 20, "burst_2": T0 + 30}
    jobs = [demand(n, 4, HOUR) for n in (1, 2, 3)]
    made = planned(*jobs, busy=busy)
    starts = [promise.start for promise in made.promises]
    assert starts == [T0 + 20, T0 + 30, T0 + 20 + HOUR]
    assert set(made.promises[0].ranks).isdisjoint(made.promises[1].ranks)
    assert made.promises[2].ranks == made.promises[0].ranks


def test_free_ranks_that_a_job_ahead_is_promised_are_waited_for_too():
    busy = {"burst_1": T0 + HOUR, "burst_2": T0 + 3 * HOUR}
    made = planned(demand(1, 6, HOUR), demand(2, 2, 2 * HOUR), busy=busy)
    starts = {each.job: (each.start, slots_of(each)) for each in made.promises}
    assert starts == {
        1: (T0 + HOUR, {"burst-0", "burst-1"}),
        2: (T0 + 2 * HOUR, {"burst-0"}),
    }


def test_what_is_lent_of_a_job_that_waits_for_no_known_time_is_no_other_jobs():
    """One job waits for all slots, one ahead of it for a rank that is free at once."""
    kw = {
        "busy": {"burst_0": 0.0, "burst_1": math.inf, "burst_2": 0.0},
        "users": {"burst_0": 2},
        "rooms": [room("burst-0", user=2)],
    }
    made = planned(demand(1, 1), demand(2, 6), demand(3, 1, user=2), **kw)
    assert [(each.job, each.known) for each in made.promises] == [(1, True), (2, False)]
    assert made.assignments == {}
    # Where the other waits for all of them alone, they are lent.
    made = planned(demand(2, 10), demand(3, 1, user=2), **kw)
    assert made.assignments == {3: ("burst-0-aaaaaa",)}


def test_so_many_jobs_are_promised_something():
    jobs = [demand(n, 10, 60.0) for n in range(1, MOST + 5)]
    made = planned(*jobs, busy={"burst_0": T0 + 9})
    assert [promise.job for promise in made.promises] == [*range(1, MOST + 1)]
    assert made.decisions[MOST + 1].reason is Reason.TURNED_DOWN


def test_a_limit_is_waited_for_as_ranks_are():
    """Two slots are free, and the limit allows both once the third is."""
    kw = {"busy": {"burst_0": T0 + HOUR}, "users": {"burst_0": 2}}
    kw |= {"limits": {"max_nodes": 8}, "rooms": [room("burst-0", user=2)]}
    made = planned(demand(1, 8), demand(2, 1, user=2), demand(3, 1), **kw)
    (promise,) = made.promises
    assert promise.start == T0 + HOUR
    assert made.assignments == {}
    # What would be in use as it starts is refused to others.
    assert reasons(made, 3)[1] == [("local/small", Reason.LIMIT_RESERVED)]
    made = planned(demand(1, 8), demand(2, 1, HOUR / 2, user=2), **kw)
    assert made.assignments == {2: ("burst-0-aaaaaa",)}


def test_what_limits_will_allow_a_job_is_no_other_jobs():
    kw = {"busy": {"burst_1": T0 + HOUR}, "limits": {"max_nodes": 8}}
    made = planned(demand(1, 5), demand(2, 4, where="together"), demand(3, 1), **kw)
    assert leases(made) == [("burst-0", "local", 1, [3])]
    assert [promise.start for promise in made.promises] == [T0 + HOUR]
    made = planned(demand(1, 6), demand(2, 3, HOUR / 2), demand(3, 3), **kw)
    assert leases(made) == [("burst-2", "local", 3, [2])]
    assert reasons(made, 3)[1] == [("local/small", Reason.LIMIT_NODES)]


@pytest.mark.parametrize(
    ("sold", "starts"),
    [({}, [T0 + HOUR]), ({"max_nodes": 3}, []), ({"shape": Shape(0)}, [])],
    ids=["it may be made later", "it has too few nodes", "its nodes are too small"],
)
def test_limits_are_kept_for_an_isolated_burst_that_could_be_made(sold, starts):
    alone = Isolated(kind="job", job=JobId(1))
    isolated = but(demand(1, 4, mode="isolated"), isolated=alone)
    offers = {"local": [offer(modes=("joined", "isolated"), **sold)]}
    limits = {"max_nodes": 4}
    made = planned(isolated, busy={"burst_1": T0 + HOUR}, limits=limits, offers=offers)
    assert [promise.start for promise in made.promises] == starts
    assert all(promise.ranks == () for promise in made.promises)


def test_bursts_that_end_before_do_not_keep_others_from_nodes():
    """Eight of 14 nodes are in use, and job 1 begins with six once four have ended."""
    names = "burst-0-[0-1],burst-1-[0-3],burst-2-[0-3]"
    kw = {"lead": identity(f"lead-[0-1],{names},burst-3-[0-5]")}
    kw |= {"busy": {"burst_1": T0 + HOUR / 2, "burst_2": T0 + HOUR}}
    kw |= {"limits": {"max_nodes": 14}}
    hosts = '{"hostlist":["burst-0-[0-1],burst-2-[0-3]"]}'
    first, second = demand(1, 6, constraint=hosts), demand(2, 6, where="together")
    made = planned(first, second, demand(3, 1), rooms=[room("burst-1", free=2)], **kw)
    assert leases(made) == [("burst-3", "local", 6, [2])]
    # A burst that ends before does not stay for another job, unless that is brief.
    assert made.assignments == {}
    assert [(p.job, p.start) for p in made.promises] == [(1, T0 + HOUR), (3, T0 + HOUR)]
    kw["rooms"] = [room("burst-1", free=2)]
    made = planned(first, second, demand(3, 1, HOUR), **kw)
    assert made.assignments == {3: (of("burst-1"),)}
    # Nor beside new nodes for the same job.
    for nodes, duration, new in ((6, 0.0, 4), (7, 0.0, 0), (7, HOUR, 5)):
        kw["rooms"] = [room("burst-1", free=2)]
        made = planned(first, demand(2, nodes, duration), **kw)
        assert sum(size for _, _, size, _ in leases(made)) == new


@pytest.mark.parametrize(("duration", "joins"), [(HOUR, True), (0.0, False)])
def test_a_burst_of_the_plan_does_not_stay_where_a_limit_is_kept(duration, joins):
    """It would have ended by then."""
    lead = identity(f"{LEAD.bootstrap.hosts[0].host},burst-3-[0-5]")
    other = '{"hostlist":["burst-3-[0-5]"]}'
    busy = {"burst_1": T0 + HOUR / 2, "burst_2": T0 + HOUR}
    first = demand(1, 10, constraint=f'{{"not":[{other}]}}')
    request = slots(1, constraint=other)
    core = but(demand(2, 1, HOUR / 2), request=request)
    more = but(core, job=JobId(4), duration=duration)
    jobs = first, core, demand(3, 4, where="together", user=2), more
    made = planned(*jobs, lead=lead, busy=busy, limits={"max_nodes": 14})
    assert [(*jobs,) for *_, jobs in leases(made)] == [(2, 4) if joins else (2,), (3,)]


def test_for_a_limit_of_a_user_only_his_bursts_have_to_go():
    kw = {"limits": {"max_nodes_per_user": 4}, "users": {"burst_0": 2, "burst_2": 2}}
    made = planned(demand(1, 3), busy={"burst_0": 0.0, "burst_1": T0 + 9}, **kw)
    assert [promise.start for promise in made.promises] == [T0 + 9]


@pytest.mark.parametrize("user", [1, 2])
@pytest.mark.parametrize("limit", ["max_nodes", "max_nodes_per_user"])
def test_the_end_of_a_burst_of_the_plan_frees_all_that_it_has_by_then(limit, user):
    """Two jobs share a burst of the plan, which grows for the second of them."""
    first = demand(1, 1, HOUR), demand(2, 1, HOUR, user=user)
    behind = demand(3, 3, HOUR, user=user), demand(4, 1, user=user)
    made = planned(*first, *behind, limits={limit: 3}, share_users=True)
    assert leases(made) == [("burst-0", "local", 2, [1, 2])]
    # One that may stay would be too much with the job ahead, and begins after it.
    starts = [(each.job, each.start) for each in made.promises]
    assert starts == [(3, T0 + HOUR), (4, T0 + 2 * HOUR)]
    assert reasons(made, 4)[1] == [("local/small", Reason.LIMIT_RESERVED)]


@pytest.mark.parametrize("limit", ["max_nodes", "max_nodes_per_user"])
def test_jobs_that_a_limit_has_wait_are_promised_nodes_one_after_another(limit):
    jobs = [demand(number, 3, HOUR) for number in range(1, 6)]
    made = planned(*jobs, demand(6, 3), demand(7, 3), limits={limit: 4})
    assert [(each.job, each.start) for each in made.promises] == [
        *((number, T0 + (number - 1) * HOUR) for number in range(2, 6)),
        (6, T0 + 5 * HOUR),
    ]
    # Nothing tells when the last of them ends.
    assert reasons(made, 7)[0] is Reason.TURNED_DOWN


def test_a_burst_of_the_plan_ends_in_time_for_a_job_that_a_limit_has_wait_for_it():
    def core(number, duration):
        ask = demand(number, 1, duration)
        return but(ask, request=slots(1))

    jobs = core(1, HOUR), demand(2, 8), core(3, 2 * HOUR), core(4, HOUR / 2)
    made = planned(*jobs, limits={"max_nodes": 8})
    assert leases(made) == [("burst-0", "local", 1, [1, 4])]
    assert [(each.job, each.start) for each in made.promises] == [(2, T0 + HOUR)]


def test_a_brief_job_has_ranks_that_are_kept_until_they_are_needed():
    busy = {"burst_1": T0 + 2 * HOUR}
    kw = {"busy": busy, "offers": {"local": [offer(join_time=60)]}}
    big, brief = demand(1, 10), demand(2, 3, HOUR)
    made = planned(big, brief, demand(3, 3, 2 * HOUR), **kw)
    assert [(slot, jobs) for slot, _, _, jobs in leases(made)] == [("burst-2", [2])]
    # With the time that it takes to join, and for as long as it may run.
    for duration in (0.0, 2 * HOUR - 59):
        made = planned(big, demand(2, 3, duration), **kw)
        assert made.proposals == ()
    # Where it grows a burst, too.
    made = planned(big, demand(2, 1, HOUR), demand(3, 1, HOUR), demand(4, 1), **kw)
    assert [jobs for *_, jobs in leases(made)] == [[2, 3]]


@pytest.mark.parametrize(
    ("start", "duration", "may"),
    [(T0 + 50, 50.0, True), (T0 + 50, 51.0, False), (T0 + 50, 0.0, False)],
)
def test_a_burst_on_promised_ranks_gets_a_job_that_ends_in_time(start, duration, may):
    busy = {"burst_1": T0 + 9, "burst_2": start}
    made = planned(
        demand(1, 10), demand(2, 1, duration), busy=busy, rooms=[room("burst-1")]
    )
    assert [promise.start for promise in made.promises] == [start]
    assert (2 in made.assignments) is may


@pytest.mark.parametrize(
    ("start", "changes", "ends"),
    [
        (0.0, {"idle": True}, True),
        (T0 - 1, {"idle": True}, True),
        (0.0, {"idle": False}, False),
        # Brief jobs use it until then.
        (T0 + 50, {"idle": True}, False),
        # It was requested ahead of jobs.
        (0.0, {"idle": True, "user": None}, False),
    ],
)
def test_an_idle_burst_makes_way_once_the_others_could_be_free(start, changes, ends):
    busy = {"burst_1": 0.0, "burst_2": start}
    rooms = [room("burst-1", free=4, **{"user": 2, **changes})]
    made = planned(demand(1, 10), busy=busy, rooms=rooms)
    assert len(made.promises) == 1
    assert bool(made.ending) is ends


def test_an_idle_burst_that_the_job_can_have_stays_for_it():
    busy = {"burst_1": 0.0, "burst_2": T0 + 50}
    rooms = [room("burst-1", free=4, idle=True)]
    made = planned(demand(1, 10), busy=busy, rooms=rooms)
    assert (made.ending, made.awaited) == (frozenset(), {of("burst-1")})
    # Not where it is to have one burst, which is larger.
    slots = {"burst_0": math.inf, "burst_1": 0.0, "burst_2": math.inf}
    rooms = [room("burst-1", free=3, idle=True)]
    made = planned(demand(1, 4, where="together"), busy=slots, rooms=rooms)
    assert (made.ending, made.awaited) == ({of("burst-1")}, frozenset())
    # Nor does one end that somebody requested.
    rooms = [room("burst-1", free=3, user=None, idle=True)]
    made = planned(demand(1, 4, where="together"), busy=slots, rooms=rooms)
    assert (len(made.promises), made.ending) == (1, frozenset())


@pytest.mark.parametrize("mode", ["", "isolated"])
def test_an_idle_burst_makes_way_for_an_isolated_one_if_a_limit_wants_that(mode):
    isolated = but(demand(1, 4, mode=mode), isolated=Isolated(kind="job"))
    made = planned(
        isolated,
        busy={"burst_0": 0.0},
        rooms=[room("burst-0", free=2, idle=True)],
        limits={"max_nodes": 4},
        offers={"local": [offer(modes=("isolated", "joined"))]},
    )
    assert (made.ending, made.awaited) == ({of("burst-0")}, frozenset())
    assert made.decisions[1].text() == (
        "gets 4 nodes of local/small as soon as limits allow it; kept for it: so much"
        " of the limits"
    )


def test_an_idle_burst_that_a_job_ahead_has_got_does_not_make_way():
    rooms = [room("burst-1", free=4, user=2, idle=True)]
    busy = {"burst_1": 0.0, "burst_2": 0.0}
    made = planned(demand(1, 1, user=2), demand(2, 10), busy=busy, rooms=rooms)
    assert made.assignments == {1: ("burst-1-aaaaaa",)}
    assert made.promises
    assert made.ending == frozenset()


def test_a_part_of_a_job_is_no_room_for_others():
    made = planned(demand(1, 7), demand(2, 1), demand(3, 2))
    assert [(slot, nodes, jobs) for slot, _, nodes, jobs in leases(made)] == [
        ("burst-2", 4, [1]),
        ("burst-1", 3, [1]),
        ("burst-0", 1, [2]),
        # In this plan, too, what others leave of a slot is free.
        ("burst-1", 1, [3]),
        ("burst-0", 1, [3]),
    ]


times = st.sampled_from([0.0, T0 + HOUR, T0 + 3 * HOUR, math.inf])
durations = st.sampled_from([0.0, HOUR / 2, 2 * HOUR])
jobs = st.lists(st.tuples(st.integers(1, 10), durations, st.integers(1, 2)), max_size=8)
sites = st.dictionaries(
    st.sampled_from(sorted(SLOTS)),
    st.tuples(times, st.integers(0, 2), st.booleans(), st.integers(1, 2)),
)
limits = st.sampled_from([{}, {"max_nodes": 8}, {"max_bursts": 2}])


@given(wanted=jobs, found=sites, limit=limits)
@hypothesis(max_examples=150, deadline=None)
def test_nobody_takes_what_is_promised_to_a_job_ahead(wanted, found, limit):
    demands = [demand(n, k, d, user=u) for n, (k, d, u) in enumerate(wanted, 1)]
    site = {
        "busy": {name: until for name, (until, *_) in found.items()},
        "users": {name: user for name, (*_, user) in found.items()},
        "rooms": [
            room(name, free, user=user, idle=idle and free == SLOTS[name].size)
            for name, (_, free, idle, user) in found.items()
        ],
    }
    made = planned(*demands, limits=limit, **site)
    taken = {
        job: frozenset(proposal.lease.ranks)
        for proposal in made.proposals
        for job in proposal.jobs
    }
    for job, bursts in made.assignments.items():
        if len(bursts) == 1:
            slot = SLOTS[bursts[0].removesuffix("-aaaaaa")]
            taken.setdefault(job, frozenset(slot.ranks))
    for promise in made.promises:
        assert promise.job not in taken
        assert made.decisions[promise.job].reason is Reason.RESERVED
        assert len(set(promise.ranks)) >= wanted[promise.job - 1][0]
        for job, ranks in taken.items():
            late = demands[job - 1].end(T0) > promise.start
            meets = not ranks.isdisjoint(promise.ranks)
            if job > promise.job and meets and late:
                # Nobody knows when it starts, and this job has what is idle meanwhile.
                assert job in made.assignments
                assert made.overtaken.keys() == {promise.job}
    for job, nodes in made.overtaken.items():
        assert nodes <= wanted[job - 1][0]


def test_a_burst_of_the_plan_has_all_its_ranks_until_its_last_job_ends():
    jobs = demand(1, 1, 2 * HOUR), demand(2, 1, HOUR), demand(3, 3, where="together")
    kw = {"busy": {"burst_0": T0 + 9 * HOUR, "burst_2": T0 + 9 * HOUR}}
    made = planned(*jobs, **kw)
    assert leases(made) == [("burst-1", "local", 2, [1, 2])]
    assert [promise.start for promise in made.promises] == [T0 + 2 * HOUR]


def test_a_burst_does_not_grow_by_ranks_that_are_promised_before_its_last_job_ends():
    jobs = demand(1, 1, 2 * HOUR), demand(2, 7), demand(3, 1, HOUR / 2)
    kw = {"busy": {"burst_0": T0 + 9 * HOUR, "burst_2": T0 + HOUR}}
    made = planned(*jobs, **kw)
    assert [promise.start for promise in made.promises] == [T0 + HOUR]
    assert [its for *_, its in leases(made)] == [[1], [3]]
