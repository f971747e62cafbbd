# SPDX-License-Identifier: MIT
"""Which ranks are free, which come free, and which of them a job gets."""

import math

import pytest

from burst.core.plan.leasable import (
    UNSCHEDULED,
    LeasableRanks,
    free_ranks,
    leasable_ranks,
)
from burst.core.plan.rank_table import RankTable
from burst.core.plan.slot_ranks import RankNeed, Sizes, SlotClass
from burst.core.plan.slots import DRAIN_TAG, find_slots
from burst.core.records import Records
from burst.model.jobid import JobId
from burst.model.lead import Bootstrap, HostEntry
from tests.builders import NODE, T0, but, identity, job, view, whole
from tests.core.ticks import recorded
from tests.lifecycles import LEASE, run

LEAD = identity()
SLOTS = find_slots(LEAD)
ALL = frozenset(range(2, 10))
TWO = but(LEASE, hosts=("burst-0-0", "burst-0-1"), ranks=(2, 3), slot="burst-0")
KIND: SlotClass = (NODE, frozenset())
ANY = RankNeed(math.inf)
ONE = JobId(1)


def holder(lease=TWO, **changes):
    return but(run("provision-start"), lease=lease, **changes)


def other_slot():
    return but(
        TWO, id="burst-1-bbbbbb", slot="burst-1", hosts=("burst-1-0",), ranks=(6,)
    )


def gateway():
    """The lead whose first slot is behind a gateway."""
    through = HostEntry(host="burst-0-[1-3]", parent="burst-0-0")
    entries = (*LEAD.bootstrap.hosts, through)
    return but(LEAD, bootstrap=Bootstrap(hosts=entries))


def free(*bursts, slots=SLOTS, **seen):
    return free_ranks(slots, bursts, view(online=(0, 1), **seen))


def later(*bursts, jobs=(), **seen):
    records = Records(bursts={burst.id: burst for burst in bursts})
    return leasable_ranks(SLOTS, records, view(*jobs, online=(0, 1), **seen))


def only(*hosts):
    return frozenset(LEAD.hosts.index(host) for host in hosts)


def table(*bursts, slots=SLOTS, ends=None, **known):
    ends, there = ends or {}, free(*bursts, slots=slots)
    ranks = LeasableRanks(free=there - ends.keys(), ends=ends, **known)
    return RankTable(slots, ranks, frozenset({"local"}))


def fits(found, nodes, want=ANY):
    return [tuple(ranks) for _, ranks in found.fitting(KIND, nodes, want)]


def split(found, nodes, cap, want=ANY):
    pieces = found.split(KIND, nodes, cap, want)
    return pieces and [tuple(ranks) for _, ranks in pieces]


def earliest(found, nodes, most=8, admitted=None, late=math.inf, **sizes):
    its = Sizes(nodes, most, **{"spread": True, **sizes})
    return found.earliest(KIND, its, admitted, late)


def test_what_a_burst_leaves_of_a_slot_is_free():
    assert free() == ALL
    assert free(holder()) == ALL - {2, 3}
    whole_slot = but(TWO, hosts=SLOTS[0].hosts, ranks=SLOTS[0].ranks)
    assert free(holder(whole_slot)) == {6, 7, 8, 9}


def test_a_rest_is_not_free_while_somebody_else_is_there():
    drained = {4: f"{DRAIN_TAG}burst-0-aaaaaa is being taken down"}
    assert free(holder(), drained=drained) == ALL - {2, 3, 4}
    second = frozenset({6, 7, 8, 9})
    assert free(holder(), unfreed=frozenset({5})) == second
    assert free(holder(), allocated=frozenset({5})) == second
    assert free(holder(), torpid=frozenset({5})) == second
    assert free_ranks(SLOTS, [holder()], view(online=(0, 1, 4))) == second
    # A record that cannot be read may be of a burst on it.
    torn = recorded(holder(), unreadable={"burst/burst-0-torn": "torn"})
    assert leasable_ranks(SLOTS, torn, view()).free == second


def test_what_an_administrator_closes_is_no_more_than_that_rank():
    broken = {4: "a disk is broken"}
    assert free(holder(), drained=broken) == ALL - {2, 3, 4}
    assert free(drained=broken) == ALL - {4}
    assert free(excluded=frozenset({2})) == ALL - {2}
    assert free(unscheduled=frozenset({2})) == ALL - {2}


def test_what_a_person_closes_is_told_of_what_would_be_free_else():
    seen = {4: "a disk is broken", 2: "fan", 6: f"{DRAIN_TAG}x is being taken down"}
    assert later(holder(), drained=seen).drained == {4: "a disk is broken"}
    assert later(drained=seen).drained == {4: "a disk is broken", 2: "fan"}
    assert later(drained=seen, excluded=frozenset({4})).drained == {2: "fan"}
    assert later(drained={6: seen[6]}).drained == {}
    gone = frozenset({2, 3})
    told = {2: UNSCHEDULED, 3: UNSCHEDULED, 4: "a disk is broken"}
    assert later(drained=seen, unscheduled=gone).drained == told


def test_of_hosts_behind_a_gateway_one_that_is_drained_closes_all():
    slots = find_slots(gateway())
    first = slots[0]
    ranks = LeasableRanks(drained={first.ranks[1]: "fan"})
    found = RankTable(slots, ranks, frozenset())
    assert found.drained_for(KIND, ANY, 2, spread=False) == {first.ranks[1]: "fan"}
    assert not found.drained_for(KIND, ANY, first.size + 1, spread=False)


def test_hosts_that_join_through_a_gateway_stay_together():
    slots = find_slots(gateway())
    assert [slot.divisible for slot in slots] == [False, True]
    assert free(holder(), slots=slots) == {6, 7, 8, 9}


def test_ranks_come_free_when_the_jobs_there_have_ended():
    def end(*jobs, bare=False, end=0.0, **seen):
        lease = but(TWO, end=end)
        burst = holder(lease, **({"times": {}} if bare else {}))
        found = later(burst, jobs=jobs, **seen)
        assert found.ends.keys() == found.holders.keys() == {2, 3}
        return found.ends[2]

    assert end() == math.inf
    assert end(end=T0 + 9) == T0 + 9
    assert end(job(1, whole(1), t_start=T0)) == math.inf
    assert end(job(1, whole(1), t_start=T0, duration=50.0)) == T0 + 50
    # One that is about to start ends no later than within that minute.
    assert T0 + 50 <= end(job(1, whole(1), duration=50.0)) < T0 + 110
    assert end(bare=True) == 0.0
    assert end(bare=True, allocated=frozenset({2})) == math.inf


def test_ranks_that_only_a_person_can_free_are_not_waited_for():
    ours = dict.fromkeys((2, 3), f"{DRAIN_TAG}burst-0-aaaaaa is being taken down")
    drained = {**ours, 4: "a disk is broken"}
    assert later(drained=drained).ends == {2: 0.0, 3: 0.0}
    assert later(drained=drained, unfreed=frozenset({3})).ends == {2: 0.0}
    unread = Records(unreadable={"burst/burst-0-torn": "torn"})
    assert not leasable_ranks(SLOTS, unread, view(drained=ours)).ends
    stuck = holder(quarantined="why")
    assert not later(stuck).ends


def test_the_smallest_slot_of_which_nothing_is_taken_comes_first():
    found = table(holder())
    assert fits(found, 2) == [(6, 7), (4, 5)]
    assert fits(found, 3) == [(6, 7, 8)]
    assert split(found, 6, 4) == [(6, 7, 8, 9), (4, 5)]
    assert split(found, 7, 4) is None
    found = table(holder(), holder(other_slot()))
    assert found.largest(KIND, ANY) == 3
    assert fits(found, 1) == [(4,), (7,)]


def test_a_job_gets_the_hosts_that_it_names_wherever_they_stand_in_a_slot():
    found = table()
    assert fits(found, 1, RankNeed(math.inf, only("burst-0-3"))) == [(5,)]
    ends = RankNeed(math.inf, only("burst-0-0", "burst-0-2", "burst-1-3"))
    assert split(found, 3, 8, ends) == [(9,), (2, 4)]
    assert split(found, 4, 8, ends) is None
    assert found.largest(KIND, ends) == 2


def test_hosts_behind_a_gateway_are_had_from_the_first_on():
    slots = find_slots(gateway())[:1]
    found = table(slots=slots)
    assert fits(found, 2, RankNeed(math.inf, frozenset({2, 3, 5}))) == [(2, 3)]
    assert fits(found, 1, RankNeed(math.inf, frozenset({3, 5}))) == []
    assert fits(found, 4, RankNeed(math.inf, ALL)) == [(2, 3, 4, 5)]
    # Whoever has some has all, and who is promised some is promised all.
    place = earliest(found, 2)
    assert place.ranks == (4, 5)
    found.promise(place._replace(start=T0 + 9), ONE, math.inf)
    assert found.promised_from([2]) == T0 + 9
    assert fits(found, 1) == []
    ((slot, ranks),) = found.fitting(KIND, 1, RankNeed(T0 + 9))
    found.take(slot, ranks, T0 + 9)
    assert not table(slots=slots, ends={2: T0}).earliest(
        KIND, Sizes(5, 8, True), None, math.inf
    )


def test_what_is_taken_is_free_no_more_and_comes_free_in_time():
    found = table()
    (slot, ranks), *_ = found.fitting(KIND, 4, ANY)
    found.take(slot, ranks, T0 + 50)
    assert fits(found, 4) == [(6, 7, 8, 9)]
    assert earliest(found, 8) == (T0 + 50, tuple(range(2, 10)), True, None)
    found.prolong((*ranks, 0), T0 + 70)
    found.prolong(ranks, T0 + 60)
    assert earliest(found, 8).start == T0 + 70
    assert found.by_slot((2, 3, 6)) == {"burst-0": 2, "burst-1": 1}


@pytest.mark.parametrize(
    ("sizes", "start", "ranks"),
    [
        ({"nodes": 2}, 0.0, (8, 9)),
        ({"nodes": 5}, T0 + 10, (2, 6, 7, 8, 9)),
        ({"nodes": 3, "spread": False}, 0.0, (7, 8, 9)),
        ({"nodes": 4, "most": 2}, T0 + 20, (2, 3, 8, 9)),
        ({"nodes": 5, "spread": False}, None, ()),
        ({"nodes": 3, "most": 2, "spread": False}, None, ()),
        ({"nodes": 3, "admitted": {2, 3, 6}}, T0 + 20, (2, 3, 6)),
        ({"nodes": 7}, None, ()),
        ({"nodes": 7, "late": T0 + 99}, T0 + 99, (2, 3, 4, 6, 7, 8, 9)),
        ({"nodes": 5, "own": {"burst-0-aaaaaa"}}, None, ()),
    ],
)
def test_the_ranks_that_are_free_first(sizes, start, ranks):
    ends = {2: T0 + 10, 3: T0 + 20, 4: math.inf, 5: math.inf}
    holders = dict.fromkeys(ends, "burst-0-aaaaaa")
    place = earliest(table(ends=ends, holders=holders), **sizes)
    if start is None:
        assert place is None
        return
    assert (place.start, place.ranks) == (start, ranks)
    assert place.known is (start != T0 + 99)
    assert place.last == ("burst-0-aaaaaa" if start else None)


def staying(end, slots=SLOTS):
    """A burst that stays until `end` has two ranks, and another burst has one."""
    holders = {2: "burst-0-aaaaaa", 3: "burst-0-aaaaaa", 6: "burst-1-bbbbbb"}
    stays = {"burst-0-aaaaaa": end}
    ends = {2: T0 + 9, 3: T0 + 9, 6: T0 + 20}
    return table(slots=slots, ends=ends, holders=holders, staying=stays)


@pytest.mark.parametrize(
    ("end", "late", "start"),
    [(T0 + 50, math.inf, T0 + 50), (math.inf, T0 + 99, T0 + 99)],
)
def test_whoever_cannot_join_a_burst_that_stays_gets_its_ranks_once_it_ends(
    end, late, start
):
    found = staying(end)
    place = earliest(found, 7, late=late)
    assert (place.start, place.known) == (start, start == end)
    assert place.last == "burst-0-aaaaaa"
    assert earliest(staying(math.inf), 7) is None
    assert earliest(found, 7, joins={"burst-0-aaaaaa": T0}).start == T0 + 9


def test_behind_a_gateway_a_burst_that_stays_keeps_its_slot_from_whoever_cannot_join():
    found = staying(math.inf, slots=find_slots(gateway()))
    assert earliest(found, 5) is None
    assert earliest(found, 5, joins={"burst-0-aaaaaa": T0}).start == T0 + 9


def test_promised_ranks_are_for_those_that_give_them_back_in_time():
    found = table(ends={2: T0 + 50})
    assert found.first_promised() is None
    assert found.promised_from([3]) == math.inf
    place = earliest(found, 8)
    assert not found.are_free(place.ranks)
    found.promise(place, ONE, T0 + 150)
    assert found.first_promised() == ONE
    assert found.promised_from([3]) == found.promised_from([0, 2]) == T0 + 50
    assert fits(found, 1) == []
    assert fits(found, 4, RankNeed(T0 + 50)) == [(6, 7, 8, 9)]
    # They are free again once that job has ended, for the next one.
    assert earliest(found, 8).start == T0 + 150
    found.promise(earliest(found, 8), JobId(2), math.inf)
    assert found.promised_from([3]) == T0 + 50
    assert earliest(found, 1) is None


def test_what_a_job_could_have_if_all_were_free():
    def sizes(found, cap=8, admitted=None):
        return [
            found.capacity(KIND, admitted, cap, spread=spread)
            for spread in (False, True)
        ]

    found = table(holder(), holder(other_slot()))
    assert sizes(found) == [4, 8]
    assert sizes(found, cap=3) == [3, 6]
    assert sizes(found, admitted=only("burst-0-3")) == [1, 1]
    assert sizes(found, admitted=ALL - only("burst-0-1")) == [4, 7]
    assert not found.has_any(only("lead-0"))
    behind = table(slots=find_slots(gateway())[:1])
    assert sizes(behind, admitted=ALL - only("burst-0-2")) == [2, 2]
    assert not behind.has_any(only("burst-0-3"))
