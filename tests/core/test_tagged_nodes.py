# SPDX-License-Identifier: MIT
"""What a program is told that requests nodes with tags."""

import msgspec

from burst.core.tagged_nodes import TaggedNodes, tagged_nodes
from burst.decode import from_plain
from burst.model.burst import Tag
from burst.model.hold import HoldState
from burst.model.jobid import JobId
from burst.model.lead import JobState, QueueView
from tests.builders import but
from tests.core.tags import OURS, request, submit
from tests.sim import Sim


def told(sim: Sim) -> TaggedNodes:
    """What a program is told, as it comes over a connection."""
    seen = sim.engine.snapshot
    made = tagged_nodes(seen.records, seen.world, seen.settings, seen.now)
    text = msgspec.json.encode(msgspec.to_builtins(made))
    return from_plain(msgspec.json.decode(text), TaggedNodes)


def test_bursts_with_a_tag_are_told_with_their_nodes_and_cost() -> None:
    sim = Sim()
    request(sim, OURS)
    request(sim, None)
    assert [burst.tag for burst in told(sim).bursts] == [OURS]
    sim.tick(6, seconds=3.0)
    (burst,) = told(sim).bursts_of(OURS)
    assert (burst.state, burst.usable, burst.has_jobs) == ("online", True, False)
    assert (burst.nodes, burst.wanted, burst.up.nodes, burst.up.free) == (2, 2, 2, 2)
    assert burst.up.cores == burst.up.cores_free > 0
    submit(sim, 1, OURS.name)
    sim.tick()
    seen = sim.engine.snapshot
    assert seen.world.lead is not None
    rank = min(seen.records.bursts[burst.id].lease.ranks)
    lead = but(seen.world.lead, allocated=frozenset({rank}))
    world = but(seen.world, lead=lead)
    found = tagged_nodes(seen.records, world, seen.settings, seen.now)
    (burst,) = found.bursts
    assert (burst.up.nodes, burst.up.free, burst.has_jobs) == (2, 1, True)
    assert told(sim).bursts_of(Tag(OURS.name, 101)) == [], "another user's"


def test_jobs_are_told_with_a_tag_alone_and_whether_their_user_holds_them() -> None:
    sim = Sim()
    submit(sim, 1, OURS.name)
    submit(sim, 2, "")
    sim.tick(2)
    (one,) = told(sim).jobs
    assert (one.id, one.tag, one.nodes, one.urgency) == (1, OURS, 2, 16)
    assert (one.state, one.held_back) == (JobState.SCHED, False)
    assert told(sim).tags_waiting() == {OURS}
    seen = sim.engine.snapshot
    assert seen.world.lead is not None
    taken_back = but(seen.records.holds[JobId(1)], state=HoldState.TAKEN_BACK)
    records = but(seen.records, holds={JobId(1): taken_back})
    held = tagged_nodes(records, seen.world, seen.settings, seen.now)
    assert [each.held_back for each in held.jobs] == [True]
    lead = but(seen.world.lead, queues={"": QueueView(started=False)})
    stopped = tagged_nodes(seen.records, but(seen.world, lead=lead), seen.settings, 0.0)
    assert [each.held_back for each in stopped.jobs] == [True]


def test_what_can_be_requested_is_told_with_the_prices_of_the_site() -> None:
    sim = Sim(prices={"local.nodes": 2.5})
    sim.tick(2)
    found = told(sim)
    assert [offer.price for offer in found.offers["local"]] == [2.5]
    assert found.slots == tuple(sim.engine.snapshot.world.slots)
    assert found.is_read


def test_without_a_lead_that_can_be_read_there_are_no_jobs() -> None:
    sim = Sim()
    submit(sim, 1, OURS.name)
    sim.tick(2)
    seen = sim.engine.snapshot
    world = but(seen.world, lead=None)
    found = tagged_nodes(seen.records, world, seen.settings, seen.now)
    assert (found.is_read, found.jobs) == (False, ())
