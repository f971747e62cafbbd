# SPDX-License-Identifier: MIT
"""What bursts leave of a slot is for others, except where hosts share a gateway."""

import json

import msgspec

from burst.core.placement.free_ranks import free_ranks, narrowed
from burst.core.placement.slot_index import SlotIndex
from burst.core.placement.slots import DRAIN_TAG, find_slots
from burst.core.select.constraints import Constraints
from burst.model.lead import Bootstrap, HostEntry
from burst.model.shape import Shape
from tests.builders import identity, view, whole
from tests.lifecycles import LEASE, run

LEAD = identity()
SLOTS = find_slots(LEAD)
TWO = msgspec.structs.replace(
    LEASE, hosts=("burst-0-0", "burst-0-1"), ranks=(2, 3), slot="burst-0"
)


def holder(lease=TWO):
    return msgspec.structs.replace(run("provision-start"), lease=lease)


def rests(*bursts, unread=(), slots=SLOTS, **seen):
    """What is free of slots of which something is not."""
    found = free_ranks(slots, bursts, view(online=(0, 1), **seen), unread)
    sizes = {slot.name: slot.size for slot in slots}
    parts = [slot for slot in found if slot.size < sizes[slot.name]]
    return [(rest.name, rest.ranks, rest.hosts) for rest in parts]


def test_what_a_burst_leaves_of_a_slot_is_free():
    assert rests() == []
    assert rests(holder()) == [("burst-0", (4, 5), ("burst-0-2", "burst-0-3"))]
    seen = view(online=(0, 1))
    free = free_ranks(SLOTS, [holder()], seen)
    assert [slot.size for slot in free] == [2, 4]
    whole = msgspec.structs.replace(TWO, hosts=SLOTS[0].hosts, ranks=SLOTS[0].ranks)
    assert rests(holder(whole)) == []


def test_a_rest_is_not_free_while_somebody_else_is_there():
    drained = {4: f"{DRAIN_TAG}burst-0-aaaaaa is being taken down"}
    assert rests(holder(), drained=drained) == [("burst-0", (5,), ("burst-0-3",))]
    assert rests(holder(), unfreed=frozenset({5})) == []
    assert rests(holder(), allocated=frozenset({5})) == []
    assert rests(holder(), torpid=frozenset({5})) == []
    (other,) = free_ranks(SLOTS, [holder()], view(online=(0, 1, 4)))
    assert other.name == "burst-1"
    # A record that cannot be read may be of a burst on it.
    assert rests(holder(), unread=["burst/burst-0-torn"]) == []


def test_what_an_administrator_closes_is_no_more_than_that_rank():
    broken = {4: "a disk is broken"}
    assert rests(holder(), drained=broken) == [("burst-0", (5,), ("burst-0-3",))]
    [(name, ranks, _)] = rests(drained=broken)
    assert (name, ranks) == ("burst-0", (2, 3, 5))
    [(name, ranks, _)] = rests(excluded=frozenset({2}))
    assert (name, ranks) == ("burst-0", (3, 4, 5))


def test_hosts_that_join_through_a_gateway_stay_together():
    through = HostEntry(host="burst-0-[1-3]", parent="burst-0-0")
    entries = (*LEAD.bootstrap.hosts, through)
    lead = msgspec.structs.replace(LEAD, bootstrap=Bootstrap(hosts=entries))
    slots = find_slots(lead)
    assert [slot.divisible for slot in slots] == [False, True]
    assert rests(holder(), slots=slots) == []


def index(*bursts):
    seen = view(online=(0, 1))
    free = free_ranks(SLOTS, bursts, seen)
    return SlotIndex(SLOTS, free, Constraints(LEAD), frozenset({"local"}))


def only(*hosts):
    return json.dumps({"hostlist": hosts})


def test_a_job_gets_the_hosts_that_it_names_wherever_they_stand_in_a_slot():
    found = index()
    (kind,) = found.free_classes("local")
    last = next(found.fitting(kind, 1, only("burst-0-3")))
    assert (last.name, last.ranks, last.hosts) == ("burst-0", (5,), ("burst-0-3",))
    ends = only("burst-0-0", "burst-0-2", "burst-1-3")
    assert found.split_over_slots(kind, 3, ends, 8) == [
        (narrowed(SLOTS[1], frozenset({9})), 1),
        (narrowed(SLOTS[0], frozenset({2, 4})), 2),
    ]
    assert found.split_over_slots(kind, 4, ends, 8) is None


def test_no_job_that_names_a_host_of_a_slot_is_failed_for_it():
    found = index()
    one = whole(1, constraint=only("burst-0-3"))
    assert found.why_never(one, {"local": 8}, spread=False) is None
    others = whole(3, constraint='{"not":[{"hostlist":["burst-0-1"]}]}')
    assert found.why_never(others, {"local": 8}, spread=False) is None


def test_hosts_behind_a_gateway_are_had_from_the_first_on():
    slot = msgspec.structs.replace(SLOTS[0], divisible=False)
    assert narrowed(slot, frozenset({2, 3, 5})).ranks == (2, 3)
    assert narrowed(slot, frozenset({3, 5})).ranks == ()


def other_slot():
    lease = msgspec.structs.replace(
        TWO, id="burst-1-bbbbbb", slot="burst-1", hosts=("burst-1-0",), ranks=(6,)
    )
    return holder(lease)


def test_a_rest_is_found_after_the_slots_that_are_free():
    found = index(holder())
    (kind,) = found.free_classes("local")
    assert [slot.ranks for slot in found.fitting(kind, 2, "")] == [
        (6, 7, 8, 9),
        (4, 5),
    ]
    assert [slot.ranks for slot in found.fitting(kind, 3, "")] == [(6, 7, 8, 9)]
    shares = found.split_over_slots(kind, 6, "", 4)
    assert [(slot.ranks, nodes) for slot, nodes in shares] == [
        ((6, 7, 8, 9), 4),
        ((4, 5), 2),
    ]


def test_where_only_rests_are_free_the_largest_is_known():
    found = index(holder(), other_slot())
    (kind,) = found.free_classes("local")
    assert found.largest_free(kind, "") == 3
    assert found.largest_free(kind, '{"hostlist":["burst-0-[0-3]"]}') == 2
    assert found.largest_free(kind, '{"hostlist":["burst-0-3"]}') == 1
    only = '{"hostlist":["burst-0-[2-3]","burst-1-1"]}'
    assert [r.ranks for r in found.fitting(kind, 1, only)] == [(4, 5), (7, 8, 9)]
    assert [r.ranks for r in found.fitting(kind, 2, only)] == [(4, 5)]
    assert found.usable(SLOTS[0], only) == 0
    most = found.fitting(kind, 1, '{"hostlist":["lead-0","burst-0-2"]}')
    assert [r.ranks for r in most] == [(4, 5)]
    assert found.split_over_slots(kind, 6, "", 4) is None
    for rest in list(found.fitting(kind, 1, "")):
        found.take(rest)
    assert found.free_classes("local") == []


def test_rests_are_withheld_and_lent_with_their_slots():
    found = index(holder(), other_slot())
    (kind,) = found.free_classes("local")
    found.withhold(frozenset({"burst-0"}))
    assert found.withholds
    assert [r.ranks for r in found.fitting(kind, 1, "")] == [(7, 8, 9)]
    assert list(found.fitting(kind, 1, '{"hostlist":["burst-0-2"]}')) == []
    found.withhold(frozenset({"burst-0", "burst-1"}))
    assert found.free_classes("local") == []
    found.withhold(frozenset())
    assert not found.withholds
    assert [r.ranks for r in found.fitting(kind, 1, "")] == [(4, 5), (7, 8, 9)]
    assert kind[0] == Shape(4, 1)
