# SPDX-License-Identifier: MIT
"""Which slots are kept for whom, and who may use them meanwhile: in one plan."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from burst.core.placement.demand import NodePool
from burst.core.placement.job_backoff import JobBackoff
from burst.core.placement.kept_reservation import (
    KeptReservation,
    update_reservation_backoffs,
)
from burst.core.placement.leased_slots import LeasedSlot, find_leased_slots
from burst.core.placement.limits import BurstUsage
from burst.core.placement.plan import BurstCapacity, Demand, Plan, Reservation
from burst.core.placement.slots import DRAIN_TAG, find_slots
from burst.core.records import Records
from burst.model.burst import BurstId
from burst.model.jobid import JobId
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from burst.model.shape import Shape
from tests.builders import NODE, T0, identity, job, offer, view, whole
from tests.core.plans import leases, plan
from tests.lifecycles import LEASE, run

HOUR = 3600.0
LEAD = identity("lead-[0-1],burst-0-[0-1],burst-1-[0-3],burst-2-[0-3]")
SLOTS = {slot.name: slot for slot in find_slots(LEAD)}


def demand(number, nodes, duration=0.0, constraint="", user=1, **wish):
    return Demand(
        job=JobId(number),
        userid=user,
        request=whole(nodes, constraint=constraint),
        preferences=BurstPreferences(**wish),
        duration=duration,
    )


def there(until=math.inf, nodes=1, jobs=(), user=1):
    share = BurstUsage(nodes=nodes, bursts=1, userids=frozenset({user}))
    jobs = frozenset(map(JobId, jobs))
    return LeasedSlot(until=until, jobs=jobs, shares={BurstId("any"): share})


def on(slot, taken):
    """What is known of a slot that a burst has, as that of one with the slot's name."""
    shares = {BurstId(f"{slot}-aaaaaa"): share for share in taken.shares.values()}
    return msgspec.structs.replace(taken, shares=shares)


def room(slot, free=1, nodes=2, user=1, idle=False):
    """A live burst on a slot, some nodes of which are free."""
    ranks = SLOTS[slot].ranks[:nodes]
    pool = NodePool(dict.fromkeys(ranks[:free], NODE), dict.fromkeys(ranks, NODE))
    return BurstCapacity(
        burst=BurstId(f"{slot}-aaaaaa"),
        userids=frozenset({user} if user else ()),
        provider="local",
        nodes=nodes,
        idle=idle,
        pool=pool,
    )


def planned(*demands, lead=LEAD, busy=None, **kw):
    busy = {name.replace("_", "-"): what for name, what in (busy or {}).items()}
    busy = {name: on(name, what) for name, what in busy.items()}
    return plan(*demands, lead=lead, taken=tuple(busy), busy=busy, **kw)


@pytest.mark.parametrize(
    ("need", "busy", "slots", "start"),
    [
        (3, {"burst_1": 50.0, "burst_2": 40.0}, {"burst-2"}, 40.0),
        (3, {"burst_1": 5.0, "burst_2": 5.0}, {"burst-1"}, 5.0),
        (
            2,
            {"burst_0": 5.0, "burst_1": 5.0, "burst_2": 9.0},
            {"burst-0"},
            5.0,
        ),
        (7, {"burst_1": 9.0, "burst_2": 5.0}, {"burst-0", "burst-1", "burst-2"}, 9.0),
        (6, {"burst_1": 9.0, "burst_2": 5.0}, {"burst-0", "burst-2"}, 5.0),
        (
            10,
            {"burst_1": math.inf},
            {"burst-0", "burst-1", "burst-2"},
            math.inf,
        ),
    ],
)
def test_what_is_free_first_is_kept(need, busy, slots, start):
    busy = {name: there(until) for name, until in busy.items()}
    made = planned(demand(9, need), busy=busy)

    assert made.reservation == Reservation(
        job=JobId(9), slots=frozenset(slots), start=start
    )
    assert made.decisions[9].reason is Reason.RESERVED


def test_a_job_that_is_to_have_one_burst_waits_for_one_slot():
    busy = {"burst_1": there(T0 + 50), "burst_2": there(T0 + 40)}
    made = planned(demand(9, 4, where="together"), busy=busy)
    assert made.reservation.slots == {"burst-2"}


@pytest.mark.parametrize(
    ("first", "changes"),
    [
        (demand(9, 6, where="together"), {}),
        (demand(9, 6), {"spread": False}),
        (demand(9, 4, mode="isolated"), {}),
        (demand(9, 4, provider="other"), {"offers": {"local": [offer()], "other": []}}),
        (demand(9, 4, max_price=1.0), {"offers": {"local": [offer(price=2.0)]}}),
        (demand(9, 4), {"offers": {"local": [offer(shape=Shape(1))]}}),
        (demand(9, 4), {"offers": {"local": [offer(modes=("isolated",))]}}),
        (demand(9, 4), {"limits": {"max_nodes": 3}}),
        (demand(9, 10), {"limits": {"max_bursts": 2}}),
        (demand(9, 4), {"limits": {"max_nodes_per_user": 3}}),
        (msgspec.structs.replace(demand(9, 4), reservation_paused=True), {}),
        (msgspec.structs.replace(demand(9, 2), coming=2), {}),
        (demand(9, 4, constraint='{"hostlist":["burst-0-0"]}'), {}),
    ],
)
def test_no_slots_are_kept_for_a_job_that_they_would_not_serve(first, changes):
    busy = {"burst_0": there(), "burst_1": there(), "burst_2": there()}
    made = planned(first, busy=busy, in_use=busy.values(), **changes)
    assert made.reservation is None
    assert made.proposals == ()


def test_slots_of_bursts_that_come_for_the_job_are_not_kept_for_it():
    rest = msgspec.structs.replace(demand(9, 8), coming=4)
    busy = {"burst_1": there(0.0, jobs=[9]), "burst_2": there()}
    assert planned(rest, busy=busy).reservation.slots == {"burst-2"}
    # Nor for the sake of a limit.
    limits = {"max_nodes": 8}
    busy = {"burst_1": there(0.0, 5, jobs=[9]), "burst_2": there(nodes=4)}
    made = planned(rest, busy=busy, limits=limits, in_use=busy.values())
    assert made.reservation is None


def test_bursts_that_use_up_a_limit_are_kept_from_others_too():
    """Two slots are free, and the limit allows both once the third is."""
    busy = {"burst_0": there(nodes=1, user=2)}
    rooms = [room("burst-0", user=2)]
    kw = {"busy": busy, "in_use": busy.values(), "capacities": rooms}
    made = planned(demand(1, 8), demand(2, 1, user=2), limits={"max_nodes": 8}, **kw)
    assert made.reservation.slots == {"burst-0", "burst-1", "burst-2"}
    assert made.assignments == {}
    assert made.decisions[1].reason is Reason.RESERVED
    assert [r.reason for r in made.decisions[2].refusals] == [Reason.SLOTS_RESERVED]


def test_for_a_limit_of_a_user_only_his_bursts_have_to_go():
    busy = {"burst_0": there(nodes=1, user=2), "burst_1": there(nodes=2)}
    kw = {"busy": busy, "in_use": busy.values()}
    made = planned(demand(1, 4), limits={"max_nodes_per_user": 5}, **kw)
    assert made.reservation.slots == {"burst-1"}
    made = planned(demand(1, 4), limits={"max_nodes_per_user": 4}, **kw)
    assert made.reservation.slots == {"burst-1"}
    other = {
        "burst_0": there(nodes=1, user=2),
        "burst_1": there(nodes=2),
        "burst_2": there(0.0, 1, user=2),
    }
    made = planned(
        demand(1, 4),
        limits={"max_nodes_per_user": 4},
        busy=other,
        in_use=other.values(),
    )
    assert made.reservation.slots == {"burst-1"}
    two = {
        "burst_0": there(nodes=1),
        "burst_1": there(9.0, 3, user=2),
        "burst_2": there(9.5, 3, user=2),
    }
    made = planned(
        demand(1, 4), limits={"max_nodes_per_user": 4}, busy=two, in_use=two.values()
    )
    assert made.reservation.slots == {"burst-0", "burst-1"}


def test_a_brief_job_has_a_slot_that_is_kept_until_it_is_needed():
    busy = {"burst_1": there(T0 + 2 * HOUR)}
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
    ("until", "start", "duration", "may"),
    [
        (T0 + 9, T0 + 50, 50.0, True),
        (T0 + 9, T0 + 50, 51.0, False),
        (T0 + 9, math.inf, 9.0, True),
        (T0 + 9, math.inf, 10.0, False),
        (math.inf, math.inf, 1.0, False),
        (T0 + 9, T0 + 50, 0.0, False),
    ],
)
def test_a_burst_on_a_kept_slot_gets_a_job_that_ends_in_time(
    until, start, duration, may
):
    busy = {"burst_1": there(until), "burst_2": there(start)}
    small = demand(2, 1, duration)
    made = planned(demand(1, 10), small, busy=busy, capacities=[room("burst-1")])
    assert made.reservation.start == max(until, start)
    assert (2 in made.assignments) is may


@pytest.mark.parametrize(
    ("start", "changes", "ends"),
    [
        (math.inf, {"idle": True}, True),
        (T0 - 1, {"idle": True}, True),
        (math.inf, {"idle": False}, False),
        # Brief jobs use it until then.
        (T0 + 50, {"idle": True}, False),
        # It was requested ahead of jobs.
        (math.inf, {"idle": True, "user": None}, False),
    ],
)
def test_an_idle_burst_makes_way_once_the_others_could_be_free(start, changes, ends):
    busy = {"burst_1": there(0.0), "burst_2": there(start)}
    rooms = [room("burst-1", free=2, **changes)]
    made = planned(demand(1, 10), busy=busy, capacities=rooms)
    assert made.reservation.slots == {"burst-0", "burst-1", "burst-2"}
    assert bool(made.ending) is ends


def test_an_idle_burst_that_a_job_ahead_has_got_does_not_make_way():
    busy = {"burst_1": there(0.0), "burst_2": there()}
    rooms = [room("burst-1", free=2, idle=True)]
    made = planned(demand(1, 1), demand(2, 10), busy=busy, capacities=rooms)
    assert made.assignments == {1: "burst-1-aaaaaa"}
    assert made.reservation
    assert made.ending == frozenset()


def test_a_part_of_a_job_is_no_room_for_others():
    made = planned(demand(1, 7), demand(2, 1), demand(3, 2))
    assert [(slot, nodes, jobs) for slot, _, nodes, jobs in leases(made)] == [
        ("burst-2", 4, [1]),
        ("burst-1", 3, [1]),
        ("burst-0", 1, [2]),
    ]


def test_slots_that_only_a_person_can_free_are_not_waited_for():
    ours = dict.fromkeys((2, 3), f"{DRAIN_TAG}burst-0-aaaaaa is being taken down")
    drained = {**ours, 4: "a disk is broken"}
    slots = tuple(SLOTS.values())
    assert find_leased_slots(slots, Records(), view(drained=drained, lead=LEAD)) == {
        "burst-0": LeasedSlot(until=0.0)
    }
    unfreed = view(drained=drained, lead=LEAD, unfreed=frozenset({3}))
    assert find_leased_slots(slots, Records(), unfreed) == {}
    unread = Records(unreadable={"burst/burst-0-torn": "torn"})
    assert find_leased_slots(slots, unread, view(drained=ours, lead=LEAD)) == {}
    burst = run("provision-start")
    stuck = msgspec.structs.replace(burst, quarantined="why")
    lead = identity()
    assert (
        find_leased_slots(find_slots(lead), Records(bursts={LEASE.id: stuck}), view())
        == {}
    )


def test_a_slot_is_free_when_the_jobs_on_it_have_ended():
    burst = run("provision-start")
    slots = find_slots(identity())

    def until(*jobs, bare=False, **lead):
        jobless = msgspec.structs.replace(burst, jobs=frozenset()) if bare else burst
        records = Records(bursts={LEASE.id: jobless})
        return find_leased_slots(slots, records, view(*jobs, **lead))["burst-0"].until

    assert until() == math.inf
    assert until(job(1, whole(1), duration=50.0)) == math.inf
    assert until(job(1, whole(1), t_start=T0)) == math.inf
    assert until(job(1, whole(1), t_start=T0, duration=50.0)) == T0 + 50
    assert until(bare=True) == 0.0
    assert until(bare=True, allocated=frozenset({2})) == math.inf


def test_after_its_deadline_a_reservation_is_none_for_as_long():
    first = Reservation(job=JobId(1), slots=frozenset({"burst-0"}), start=math.inf)
    one = {JobId(1)}
    kept = update_reservation_backoffs({}, first, one, T0, 60)
    assert kept == {1: JobBackoff(since=T0)}
    assert update_reservation_backoffs(kept, first, one, T0 + 60, 60) == kept
    passed = update_reservation_backoffs(kept, first, one, T0 + 61, 60)
    assert passed == {1: JobBackoff(expired=1, until=T0 + 121)}
    assert update_reservation_backoffs(passed, None, one, T0 + 100, 60) == passed
    again = update_reservation_backoffs(passed, first, one, T0 + 121, 60)
    twice = update_reservation_backoffs(again, first, one, T0 + 182, 60)
    assert twice == {1: JobBackoff(expired=2, until=T0 + 302)}
    # Forgotten with the job, or where another is first.
    assert update_reservation_backoffs(twice, None, set(), T0 + 200, 60) == {}
    assert update_reservation_backoffs(kept, None, one, T0 + 1, 60) == {}
    known = msgspec.structs.replace(first, start=T0 + 500)
    assert update_reservation_backoffs(kept, known, one, T0 + 400, 60) == {}
    assert update_reservation_backoffs({}, known, one, T0 + 501, 60) == {
        1: JobBackoff(since=T0 + 501)
    }


times = st.sampled_from([0.0, T0 + HOUR, T0 + 3 * HOUR, math.inf])
jobs = st.lists(
    st.tuples(
        st.integers(1, 10),
        st.sampled_from([0.0, HOUR / 2, 2 * HOUR]),
        st.integers(1, 2),
    ),
    max_size=8,
)
sites = st.dictionaries(
    st.sampled_from(sorted(SLOTS)),
    st.tuples(times, st.integers(0, 2), st.booleans(), st.integers(1, 2)),
)
limits = st.sampled_from([{}, {"max_nodes": 8}, {"max_bursts": 2}])


def site(found):
    """What bursts have, and what is free of them."""
    busy = {n: there(until, 2, user=user) for n, (until, _, _, user) in found.items()}
    rooms = [
        room(name, free, user=user, idle=idle and free == 2)
        for name, (_, free, idle, user) in found.items()
    ]
    return {"busy": busy, "capacities": rooms, "in_use": busy.values()}


@given(wanted=jobs, found=sites, limit=limits)
@hypothesis(max_examples=300, deadline=None)
def test_no_later_job_takes_what_is_kept_and_nothing_else_changes(wanted, found, limit):
    demands = [demand(n, k, d, user=u) for n, (k, d, u) in enumerate(wanted, 1)]
    made = planned(*demands, limits=limit, **site(found))
    never = [msgspec.structs.replace(each, reservation_paused=True) for each in demands]
    plain = planned(*never, limits=limit, **site(found))
    if made.reservation is None:
        assert made == plain
        return
    first, slots = made.reservation.job, made.reservation.slots
    start = made.reservation.start
    assert first not in made.assignments
    assert all(first not in proposal.jobs for proposal in made.proposals)
    taken = [(job, p.lease.slot) for p in made.proposals for job in p.jobs]
    taken += [(job, b.removesuffix("-aaaaaa")) for job, b in made.assignments.items()]
    by_slot = {p.lease.slot: p for p in made.proposals}
    for number, slot in taken:
        if number > first and slot in slots:
            if slot in by_slot and by_slot[slot].jobs[0] < first:
                # It grew for this one; the first waits for nodes that it had before.
                there_before = [
                    wanted[j - 1][0] for j in by_slot[slot].jobs if j < first
                ]
                mine = {wanted[j - 1][2] for j in (*by_slot[slot].jobs, first)}
                assert sum(there_before) >= wanted[first - 1][0]
                assert len(mine) == 1
                continue
            ends = T0 + demands[number - 1].duration
            until = found[slot][0] if math.isinf(start) else start
            assert T0 < ends <= until < math.inf
    # Those ahead of it get what they would have got.
    for each in demands[: first - 1]:
        assert made.assignments.get(each.job) == plain.assignments.get(each.job)
        assert made.decisions[each.job].reason is plain.decisions[each.job].reason


def test_what_a_job_was_overtaken_by_is_known_as_long_as_it_is_pending():
    one, gone, new = JobId(1), JobId(2), JobId(3)
    kept = KeptReservation(overtaken={one: 3, gone: 4})
    after = kept.after(Plan(overtaken={new: 1}), {one, new}, T0, HOUR)
    assert after.overtaken == {one: 3, new: 1}
