# SPDX-License-Identifier: MIT
"""Bursts that grow and shrink, with an engine, a provider and crashes in between."""

from __future__ import annotations

import pytest

from burst.core.resize_request import WantedSize, resize_burst
from burst.errors import BurstError, InsufficientCapacity, Transient
from burst.model.burst import State
from burst.model.lead import JobState
from tests.builders import whole
from tests.sim import Sim


def start(nodes: int = 2, **tables):
    """An engine with a burst that a job of so many nodes runs on."""
    sim = Sim(**tables)
    sim.tick(2)
    job = sim.lead.submit(whole(nodes, constraint='{"properties":["burst"]}'))
    sim.until(lambda: job in sim.lead.running())
    return sim, job


def ask(sim, nodes: int):
    answer = sim.engine.post(
        lambda records, world, its_settings, now: resize_burst(
            records, world, its_settings, WantedSize(sim.burst.id, nodes), now
        )
    )
    sim.tick()
    return answer.result(0)


def sized(sim, nodes: int):
    return lambda: sim.burst.resize is None and sim.burst.lease.nodes == nodes


@pytest.mark.parametrize("dies_after", range(6))
def test_it_grows_and_shrinks_whenever_the_daemon_dies(dies_after: int) -> None:
    sim, job = start(1)
    ask(sim, 4)
    for ticks in range(30):
        if ticks == dies_after:
            sim.boot()
        sim.tick()
    assert sized(sim, 4)(), sim.story()
    assert sim.lead.online == set(range(6))
    assert len(sim.cloud.followers()) == 4
    ask(sim, 1)
    for ticks in range(30):
        if ticks == dies_after:
            sim.boot()
        sim.tick()
    assert sized(sim, 1)(), sim.story()
    assert sim.lead.online == {0, 1, 2}
    assert list(sim.cloud.followers()) == ["burst-0-0"]
    assert not sim.lead.drained
    assert job in sim.lead.running()


def test_no_job_is_lost_by_a_shrink_and_a_drained_rank_gets_none() -> None:
    sim, first = start(1)
    ask(sim, 3)
    sim.until(sized(sim, 3))
    second = sim.lead.submit(whole(2, constraint='{"properties":["burst"]}'))
    sim.until(lambda: second in sim.lead.running())
    ask(sim, 1)
    sim.tick(20)
    assert second in sim.lead.running()
    assert sim.burst.leaving == (3, 4)
    third = sim.lead.submit(whole(1, constraint='{"hostlist":["burst-0-[1-2]"]}'))
    sim.lead.finish(second)
    sim.until(sized(sim, 1))
    assert first in sim.lead.running()
    sim.until(lambda: third in sim.lead.running())
    assert len(sim.bursts) == 2, "the ranks that left are free for another burst"


def test_a_growth_for_which_there_are_no_nodes_leaves_the_burst_as_it_was() -> None:
    sim, job = start(2)
    sim.provider.next_resize_error = InsufficientCapacity("none left")
    ask(sim, 4)
    sim.until(sized(sim, 2))
    assert sim.state() is State.ONLINE
    assert job in sim.lead.running()
    assert not sim.lead.drained
    assert "shrink" not in sim.names(), "what is over is told by the last event"
    assert sim.names()[-1] == "shrunk"
    with pytest.raises(BurstError, match="had no capacity"):
        ask(sim, 4)


def test_a_part_of_a_growth_that_never_comes_is_given_back_at_the_deadline() -> None:
    sim, job = start(1, deadlines={"provision": "20s", "join": "10s"})
    sim.provider.starts_only = 2
    ask(sim, 4)
    sim.until(lambda: sim.lead.online == {0, 1, 2, 3})
    sim.tick(40)
    sim.until(sized(sim, 1))
    assert sim.lead.online == {0, 1, 2}
    assert list(sim.cloud.followers()) == ["burst-0-0"]
    assert job in sim.lead.running()


def test_a_call_that_fails_for_a_while_is_repeated() -> None:
    sim, _ = start(1)
    sim.provider.next_resize_error = Transient("busy")
    ask(sim, 2)
    sim.until(sized(sim, 2))
    sim.provider.next_answer_lost = True
    sim.provider.ends_after = 3
    ask(sim, 1)
    sim.until(sized(sim, 1))
    assert list(sim.cloud.followers()) == ["burst-0-0"]


def test_it_is_taken_down_whole_while_it_grows() -> None:
    sim, job = start(1)
    sim.provider.starts_after = 50
    ask(sim, 4)
    sim.tick(3)
    sim.lead.finish(job)
    sim.engine.stop_provisioning()
    sim.tick(2)
    sim.provider.fail(sim.burst.id, "its host is gone")
    for rank in (2, 3, 4, 5):
        sim.lead.lose(rank)
    sim.until(sim.in_state(State.INACTIVE), ticks=100)
    assert not sim.cloud.followers()
    sim.tick(3)
    assert not sim.lead.drained
    assert sim.lead.jobs[job].state is JobState.INACTIVE


def test_what_it_costs_is_settled_by_the_size_that_it_had() -> None:
    sim = Sim(deadlines={"idle": "10s"}, plan={"resize": False})
    sim.fake_settings = type(sim.fake_settings)(
        max_nodes=8, shape=sim.fake_settings.shape, price=3600.0
    )
    sim.boot()
    sim.tick(2)
    job = sim.lead.submit(whole(1, constraint='{"properties":["burst"]}'))
    sim.until(lambda: job in sim.lead.running())
    begun = sim.now
    entry = sim.engine.snapshot.records.entries[sim.burst.id]
    ask(sim, 4)
    grown = sim.engine.snapshot.records.entries[sim.burst.id]
    assert grown.nodes == 4
    assert grown.reserved > entry.reserved
    sim.until(sized(sim, 4))
    sim.tick(20, seconds=5.0)
    ask(sim, 1)
    sim.until(sized(sim, 1))
    changed = sim.now
    shrunk = sim.engine.snapshot.records.entries[sim.burst.id]
    assert shrunk.nodes == 1
    assert shrunk.reserved < grown.reserved
    sim.tick(40, seconds=5.0)
    sim.lead.finish(job)
    sim.until(sim.in_state(State.INACTIVE), ticks=100)
    (row,) = sim.engine.snapshot.records.settled.values()
    # A node costs one unit a second: one all the time, and three more in between.
    alone = sim.now - begun
    costs = row.costs.total / 1e6
    assert costs == pytest.approx(alone + 3 * (changed - begun), abs=25)
    assert row.costs.work / 1e6 == pytest.approx(alone, abs=30)
    assert row.reserved >= row.costs.total
    assert row.grown == 0


BURSTS = '{"properties":["burst"]}'


def test_a_job_that_lacks_some_nodes_has_its_burst_grow_and_they_leave_again() -> None:
    sim = Sim(deadlines={"idle": "30s"})
    sim.tick(2)
    first = sim.lead.submit(whole(2, constraint=BURSTS))
    sim.until(lambda: first in sim.lead.running())
    sim.lead.finish(first)
    sim.tick(2)
    large = sim.lead.submit(whole(4, constraint=BURSTS))
    sim.until(lambda: large in sim.lead.running())
    assert sim.burst.lease.nodes == 4, "it is one burst, of four nodes"
    assert len(sim.provider.running()) == 4
    sim.lead.finish(large)
    small = sim.lead.submit(whole(1, constraint=BURSTS))
    sim.until(lambda: small in sim.lead.running())
    sim.until(sized(sim, 1), ticks=100)
    assert small in sim.lead.running()
    assert len(sim.provider.running()) == 1
    sim.lead.finish(small)
    sim.until(sim.in_state(State.INACTIVE), ticks=100)
    sim.tick(2)
    assert not sim.lead.drained


def test_a_job_whose_burst_cannot_grow_gets_a_further_one() -> None:
    sim = Sim(deadlines={"idle": "1h"}, limits={"cooldown": "5s"})
    sim.tick(2)
    first = sim.lead.submit(whole(2, constraint=BURSTS))
    sim.until(lambda: first in sim.lead.running())
    sim.lead.finish(first)
    sim.tick(2)
    sim.provider.next_resize_error = InsufficientCapacity("none")
    large = sim.lead.submit(whole(4, constraint=BURSTS))
    sim.until(lambda: large in sim.lead.running(), ticks=200)
