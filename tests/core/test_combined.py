# SPDX-License-Identifier: MIT
"""A job gets idle nodes of several bursts, and new ones for the rest."""

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from burst.core.plan.fit import NodePool
from burst.core.plan.purchases import Purchases
from burst.core.plan.slots import find_slots
from burst.core.records import Records
from burst.model.burst import Isolated, State
from burst.model.decision import Decision, OfferRejection
from burst.model.jobid import JobId
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from burst.model.shape import Shape
from tests.builders import NODE, T0, but, identity, offer, settings, slots, whole
from tests.core.plans import demand, leases, live_burst, plan
from tests.sim import Sim

THREE = identity("lead-0,burst-0-[0-3],burst-1-[0-3],burst-2-[0-3]")


def room(slot, free, **changes):
    """A live burst of that many nodes, all of them idle."""
    ranks = next(s.ranks for s in find_slots(THREE) if s.name == slot)[:free]
    shape = changes.pop("shape", NODE)
    nodes = dict.fromkeys(ranks, shape)
    changes = {"userids": frozenset({100}), "nodes": free, **changes}
    return live_burst(f"{slot}-aaaaaa", NodePool(nodes, nodes), **changes)


def made(*demands, rooms, taken=("burst-0", "burst-1"), **kw):
    return plan(*demands, lead=THREE, live=rooms, taken=taken, **kw)


def test_a_job_gets_idle_nodes_of_several_bursts():
    rooms = [room("burst-0", 2), room("burst-1", 3)]
    found = made(demand(1, whole(4)), demand(2, whole(1)), rooms=rooms)
    # Of as few bursts as will do; the next has what is left.
    several = ("burst-1-aaaaaa", "burst-0-aaaaaa")
    assert found.assignments == {1: several, 2: ("burst-0-aaaaaa",)}
    assert found.proposals == ()
    both = "burst-1-aaaaaa, burst-0-aaaaaa"
    assert found.decisions[1].text() == f"there is room for it on {both}"


def test_idle_nodes_are_left_to_a_job_behind_where_new_ones_can_be_had():
    rooms = [room("burst-0", 2)]
    found = made(demand(1, whole(4)), demand(2, whole(2)), rooms=rooms)
    assert leases(found) == [("burst-2", "local", 4, [1])]
    assert found.assignments == {2: ("burst-0-aaaaaa",)}
    # Not where it would not do for it, nor where there are no others.
    found = made(demand(1, whole(4)), demand(2, whole(3)), rooms=[room("burst-0", 2)])
    assert set(found.assignments) == {1}
    found = made(demand(1, whole(5)), demand(2, whole(2)), rooms=[room("burst-0", 2)])
    assert set(found.assignments) == {1}


def test_a_job_gets_no_isolated_burst_beside_idle_nodes():
    """It would have all nodes of the job, and the others would cost money for it."""
    wanted = but(demand(1, whole(4)), isolated=Isolated(kind="job", job=JobId(1)))
    both = {"iso": [offer(modes=("isolated",), price=1.0)], "local": [offer(price=2.0)]}
    found = made(wanted, rooms=[room("burst-0", 2)], offers=both)
    assert leases(found) == [("burst-2", "local", 2, [1])]
    assert found.assignments == {1: ("burst-0-aaaaaa",)}
    # It gets one with all its nodes if there is nothing else.
    alone = {"iso": [offer(modes=("isolated",))]}
    found = made(wanted, rooms=[room("burst-0", 2)], offers=alone)
    assert [each.lease.nodes for each in found.proposals] == [4]
    assert found.assignments == {}


@pytest.mark.parametrize(
    ("wanted", "rooms", "changes"),
    [
        (demand(1, whole(5)), [], {}),
        (demand(1, whole(5)), [room("burst-0", 2, userids=frozenset({7}))], {}),
        (demand(1, whole(5), provider="other"), [room("burst-0", 2)], {}),
        (demand(1, whole(5)), [room("burst-0", 2)], {"spread": False}),
        (demand(1, whole(5)), [room("burst-0", 2, jobs=frozenset({1}))], {}),
        (demand(1, whole(7)), [room("burst-0", 2)], {}),
        (demand(1, whole(5, cores_per_slot=9)), [room("burst-0", 2)], {}),
        (demand(None, whole(5)), [room("burst-0", 2)], {}),
        (but(demand(1, whole(5)), duration=10.0), [room("burst-0", 2, lasts=9.0)], {}),
        (
            but(demand(1, whole(5)), preferences=BurstPreferences(where="together")),
            [room("burst-0", 2)],
            {},
        ),
    ],
)
def test_no_nodes_of_a_burst_that_is_not_for_the_job(wanted, rooms, changes):
    found = made(wanted, rooms=rooms, **changes)
    assert found.assignments == {}
    assert found.proposals == ()


def test_nodes_that_are_not_all_idle_or_of_another_shape_are_not_counted():
    part = room("burst-0", 2)
    part.pool.take(slots(1))
    found = made(demand(1, whole(6)), rooms=[part])
    assert found.assignments == {}
    # Eight tasks of two cores need as many nodes of four cores as of two.
    rooms = [room("burst-0", 2), room("burst-1", 3, shape=Shape(2))]
    found = made(demand(1, slots(12, cores=2)), rooms=rooms)
    assert found.assignments == {1: ("burst-0-aaaaaa",)}


def test_who_joins_several_bursts_bears_all_of_them():
    rooms = [room("burst-0", 2), room("burst-1", 3)]
    kw = {"share_users": True, "taken": ("burst-0", "burst-1", "burst-2")}
    limits = {"max_nodes_per_user": 4}
    found = made(demand(1, whole(4), user=7), rooms=rooms, limits=limits, **kw)
    assert found.assignments == {}
    rooms = [room("burst-0", 2), room("burst-1", 3)]
    limits = {"max_nodes_per_user": 5}
    found = made(demand(1, whole(4), user=7), rooms=rooms, limits=limits, **kw)
    assert set(found.assignments) == {1}


class OneBurst(Purchases):
    """Budgets that allow one live burst to be kept for jobs."""

    def __init__(self):
        super().__init__(Records(), settings(), {}, lambda _: None, T0)
        self.kept = set()

    limited = True

    def refuse_use(self, demand, burst, key):
        if not self.kept or burst in self.kept:
            return None
        return OfferRejection(key, Reason.OVER_BUDGET)

    def use(self, demand, burst):
        self.kept.add(burst)

    def copy(self):
        made = OneBurst()
        made.kept = set(self.kept)
        return made


def test_bursts_that_no_budget_lets_a_job_keep_are_not_combined():
    rooms = [room("burst-0", 2), room("burst-1", 3)]
    found = made(demand(1, whole(4)), rooms=rooms, purchases=OneBurst())
    assert (found.assignments, leases(found)) == ({}, [("burst-2", "local", 4, [1])])
    rooms = [room("burst-0", 2), room("burst-1", 3)]
    found = made(demand(1, whole(7)), rooms=rooms, purchases=OneBurst())
    assert (found.assignments, leases(found)) == ({}, [])


def test_what_a_job_did_not_get_counts_against_no_budget():
    rooms = [room("burst-0", 2), room("burst-1", 3)]
    jobs = (demand(1, whole(4)), demand(2, whole(2)))
    # One of both was counted before the other was refused.
    found = made(*jobs, rooms=rooms, purchases=OneBurst())
    assert found.assignments == {2: ("burst-0-aaaaaa",)}
    rooms = [room("burst-0", 2), room("burst-1", 2, userids=frozenset({7}))]
    jobs = (demand(1, whole(7)), demand(2, whole(2), user=7))
    # The idle nodes were counted before none were found for the rest.
    found = made(*jobs, rooms=rooms, purchases=OneBurst())
    assert found.assignments == {2: ("burst-1-aaaaaa",)}


def test_nothing_is_made_beside_idle_nodes_for_a_job_that_is_not_worth_it():
    why = Decision(Reason.NOT_WORTH)
    job = but(demand(1, whole(4)), not_bought=why)
    found = made(job, rooms=[room("burst-0", 2)])
    assert (found.proposals, found.assignments) == ((), {})
    assert found.decisions[1] is why


def test_who_joins_a_burst_bears_it_beside_what_is_made():
    rooms = [room("burst-0", 3, userids=frozenset({300}))]
    needs_two_more = demand(1, whole(5), user=7)
    for limit, more in ((4, []), (5, [("burst-2", "local", 2, [1])])):
        kw = {"limits": {"max_nodes_per_user": limit}, "share_users": True}
        found = made(needs_two_more, rooms=rooms, **kw)
        assert leases(found) == more


def test_a_constraint_admits_idle_nodes_too():
    rooms = [room("burst-0", 2), room("burst-1", 3)]
    only = '{"hostlist":["burst-0-0","burst-1-[0-1]"]}'
    found = made(demand(1, whole(4, constraint=only)), rooms=rooms)
    assert found.assignments == {}
    rooms = [room("burst-0", 2), room("burst-1", 3)]
    found = made(demand(1, whole(3, constraint=only)), rooms=rooms)
    assert set(found.assignments[1]) == {"burst-0-aaaaaa", "burst-1-aaaaaa"}


sizes = st.lists(st.integers(1, 4), max_size=3)


@given(idle=sizes, wanted=st.lists(st.integers(1, 12), max_size=6))
@hypothesis(max_examples=100, deadline=None)
def test_no_node_is_given_twice_and_each_job_gets_all_it_needs(idle, wanted):
    rooms = [room(f"burst-{n}", size) for n, size in enumerate(idle)]
    taken = [f"burst-{n}" for n in range(len(idle))]
    demands = [demand(n, whole(size)) for n, size in enumerate(wanted, 1)]
    free = {capacity.burst: capacity.source.nodes for capacity in rooms}
    found = made(*demands, rooms=rooms, taken=taken)
    left = {capacity.burst: len(capacity.pool.free) for capacity in rooms}
    given_away = sum(free.values()) - sum(left.values())
    new: dict[int, int] = {}
    for proposal in found.proposals:
        shared = [wanted[job - 1] for job in proposal.jobs]
        for job in proposal.jobs:
            new[job] = new.get(job, 0) + proposal.lease.nodes
        assert len(shared) == 1 or sum(shared) == proposal.lease.nodes
    lives = found.assignments.keys()
    needed = sum(wanted[job - 1] for job in lives)
    mixed = sum(n for job, n in new.items() if job in found.assignments)
    assert given_away == needed - mixed
    for job in {*lives, *new}:
        assert job in lives or new[job] >= wanted[job - 1]


# In the engine.


def sim(**tables):
    s = Sim(**{"deadlines": {"idle": "1h"}, **tables})
    s.tick(2)
    return s


def submit(s, nodes):
    job = s.submit_lent(nodes)
    s.until(lambda: job in s.lead.running())
    return job


def test_a_job_runs_on_what_is_left_of_two_slots_and_two_bursts():
    s = sim()
    jobs = [submit(s, 3), submit(s, 3)]
    for job in jobs:
        s.lead.finish(job)
    s.tick(2)
    big = submit(s, 8)
    nodes = sorted(burst.lease.nodes for burst in s.bursts)
    assert nodes == [1, 1, 3, 3]
    assert all(burst.jobs == {big} for burst in s.bursts)
    ranks = [rank for burst in s.bursts for rank in burst.lease.ranks]
    assert sorted(ranks) == list(range(2, 10))
    s.lead.finish(big)
    s.tick(2)
    assert all(burst.idle_since for burst in s.bursts)
    # Then one of them is enough.
    submit(s, 3)
    assert len(s.bursts) == 4


def test_where_a_new_burst_fails_the_rest_is_made_again():
    s = sim()
    first = submit(s, 4)
    s.lead.finish(first)
    s.tick(2)
    s.joins = False
    big = s.submit_lent(6)
    s.tick(3)
    failed = next(b for b in s.bursts if b.state is not State.ONLINE)
    s.provider.fail(failed.id, "broken")
    s.joins = True
    s.until(lambda: big in s.lead.running(), seconds=60)
    assert not next(b for b in s.bursts if b.id == failed.id).live
    assert sum(b.lease.nodes for b in s.bursts if b.live) == 6


def test_an_idle_burst_that_a_job_waits_for_stays_as_long_as_it_took_to_make():
    s = sim(deadlines={"idle": "2s"})
    s.joins = False
    first = s.submit_lent(4)
    s.tick(30)
    s.joins = True
    s.until(lambda: first in s.lead.running())
    other = submit(s, 4)
    s.lead.finish(first)
    s.tick(2)
    big = s.submit_lent(8)
    s.tick(20)
    one = next(b for b in s.bursts if b.idle_since)
    assert one.state is State.ONLINE
    s.lead.finish(other)
    s.until(lambda: big in s.lead.running(), ticks=3)
    assert len(s.bursts) == 2


def test_it_does_not_stay_for_ever():
    s = sim(deadlines={"idle": "2s"})
    first, _ = submit(s, 4), submit(s, 4)
    s.lead.finish(first)
    s.tick(2)
    s.submit_lent(8)
    s.tick(10)
    assert sorted(b.live for b in s.bursts) == [False, True]
