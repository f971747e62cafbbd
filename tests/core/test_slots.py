# SPDX-License-Identifier: MIT
import pytest

from burst.core.lifecycle import begin
from burst.core.plan.leasable import free_ranks
from burst.core.plan.slots import find_slots, is_found_by_name, slot_holders
from burst.errors import ConfigError
from burst.model.burst import State
from burst.model.shape import Shape
from tests.builders import NODE, T0, but, identity, view
from tests.lifecycles import LEASE


def test_hosts_of_one_stem_are_a_slot():
    found = find_slots(identity("lead-[0-1],burst-0-[0-3],burst-1-[0-1],extra"))

    assert [(s.name, s.ranks, s.size) for s in found] == [
        ("burst-0", (2, 3, 4, 5), 4),
        ("burst-1", (6, 7), 2),
    ]
    assert found[0].hosts == ("burst-0-0", "burst-0-1", "burst-0-2", "burst-0-3")
    assert found[0].shape == NODE
    assert found[0].properties == {"burst"}


def test_a_slot_has_what_all_its_nodes_have():
    lead = identity("lead-0,burst-0-[0-1]")
    shapes = Shape(2), Shape(8, 1), Shape(4, 2)
    properties = {"gke": frozenset({1, 2}), "gpu": frozenset({2})}
    lead = but(lead, shapes=shapes, properties=properties)

    (slot,) = find_slots(lead)

    assert slot.shape == Shape(4, 1)
    assert slot.properties == {"gke"}


def test_slots_may_be_declared():
    lead = identity("lead-0,a[0-2],Odd.Name,b1")

    found = find_slots(lead, ["b1", "a[0-2]", "Odd.Name"])

    assert [(s.name, s.ranks) for s in found] == [
        ("a", (1, 2, 3)),
        ("odd-name", (4,)),
        ("b", (5,)),
    ]


def test_hosts_without_a_common_stem_are_named_for_the_first():
    assert find_slots(identity("lead-0,x1,y1"), ["x1,y1"])[0].name == "x1"


@pytest.mark.parametrize(
    ("declared", "what"),
    [
        (["burst-9-[0-1]"], "is not in the lead's hosts"),
        (["burst-0-[0-"], "not a hostlist"),
        ([""], "is not in the lead's hosts"),
        (["burst-0-[0,2]"], "not a run of ranks"),
        (["burst-0-[1-0]"], "not a hostlist"),
        (["burst-0-[0-1]", "burst-0-[1-2]"], "burst-0-1 is in two slots"),
    ],
)
def test_refuses_slots_that_the_lead_does_not_have(declared, what):
    with pytest.raises(ConfigError, match=what):
        find_slots(identity(), declared)


def test_slots_that_would_share_a_name_are_told_apart_by_their_first_hosts():
    lead = identity("lead-0,n[1-4],m[1-2]")

    found = find_slots(lead, ["n[1-2]", "n[3-4]", "m[1-2]"])

    assert [slot.name for slot in found] == ["n1", "n3", "m"]


@pytest.mark.parametrize(
    ("slots", "found"),
    [
        ([("burst-0-0", "burst-0-1"), ("burst-1-0",)], True),
        ([("burst-0-0",), ("burst-0-1",)], False),
        ([("gpu-0", "gpu-1")], False),
    ],
)
def test_whether_names_tell_the_slots(slots, found):
    hosts = ["lead-0", *(host for slot in slots for host in slot)]

    assert is_found_by_name(hosts, slots) is found


def test_ranks_decide_who_has_a_slot_and_not_names():
    lead = identity()
    before = find_slots(lead)
    three = {"hosts": before[0].hosts[:3], "ranks": before[0].ranks[:3]}
    lease = but(LEASE, **three)
    leased = begin(lease, {}, T0)
    anew = find_slots(lead, ["burst-0-[0-1]", "burst-0-[2-3]", "burst-1-[0-3]"])

    assert [slot.name for slot in anew] == ["burst-0-0", "burst-0-2", "burst-1"]
    free = free_ranks(anew, [leased], view(online=(), lead=lead))
    assert free == {5, *anew[2].ranks}
    # Of a lead that has started anew with its hosts in another order, hosts do.
    moved = find_slots(identity("lead-0,burst-1-[0-3],burst-0-[0-3],lead-1"))
    ended = but(leased, state=State.INACTIVE)
    assert slot_holders(moved, [ended]) == {}
    assert slot_holders(moved, [leased]) == {
        "burst-1": lease.id,  # its ranks are those that the lease has
        "burst-0": lease.id,
    }


@pytest.mark.parametrize(
    ("key", "kept"),
    [
        ("burst/burst-0-aaaaaa", {"burst-0-0", "burst-0-2"}),
        ("burst/burst-0-2-aaaaaa", {"burst-0-2"}),
        ("burst/burst-1-aaaaaa", {"burst-1"}),
        # Nothing is known of it, so it may have any.
        ("burst/other-aaaaaa", {"burst-0-0", "burst-0-2", "burst-1"}),
        ("burst/x", {"burst-0-0", "burst-0-2", "burst-1"}),
    ],
)
def test_slots_that_an_unreadable_record_may_have_are_kept(key, kept):
    slots = find_slots(identity(), ["burst-0-[0-1]", "burst-0-[2-3]", "burst-1-[0-3]"])

    assert slot_holders(slots, [], [key]) == dict.fromkeys(kept, key)
