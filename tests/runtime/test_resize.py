# SPDX-License-Identifier: MIT
"""Bursts that grow and shrink, with an engine, a provider and crashes in between."""

import pytest

from burst.core.resize_request import WantedSize, resize_burst
from tests.builders import whole
from tests.sim import Sim


def start(nodes: int = 2, **tables):
    """An engine with a burst that a job of so many nodes runs on."""
    sim = Sim.at_rest(**tables)
    job = sim.lead.submit(whole(nodes, constraint='{"properties":["burst"]}'))
    sim.until(lambda: job in sim.lead.running())
    return sim, job


def ask(sim, nodes: int):
    return sim.ask(lambda tx: resize_burst(tx, WantedSize(sim.burst.id, nodes)))


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
