# SPDX-License-Identifier: MIT
"""Bursts that grow and shrink, with an engine, a provider and crashes in between."""

import pytest

from burst.core.resize_request import WantedSize, resize_burst
from burst.model.burst import State
from tests.builders import whole
from tests.sim import Sim


def start(nodes: int = 2, **tables):
    """An engine with a burst that a job of so many nodes runs on."""
    sim = Sim.at_rest(**tables)
    job = sim.lead.submit(whole(nodes, constraint='{"properties":["burst"]}'))
    sim.until(lambda: job in sim.lead.running())
    return sim, job


def ask(sim, nodes: int):
    return sim.ask(
        lambda records, world, its_settings, now: resize_burst(
            records, world, its_settings, WantedSize(sim.burst.id, nodes), now
        )
    )


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


BURSTS = '{"properties":["burst"]}'


def test_a_job_that_lacks_some_nodes_has_its_burst_grow_and_they_leave_again() -> None:
    sim = Sim.at_rest(deadlines={"idle": "30s"})
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
