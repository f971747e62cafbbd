# SPDX-License-Identifier: MIT
"""When the next tick is due: at a deadline that can be acted on, and not in a spin."""

import pytest

from burst.model.burst import State
from tests.builders import whole
from tests.fakes import FakeLead
from tests.sim import Sim

LONG = {"daemon": {"cadence": "50s"}}


def due(sim: Sim, seconds: float = 1.0) -> float:
    """In how many seconds the engine wants the next tick, after one now."""
    sim.now += seconds
    sim.lead.now = sim.now
    sim.executor.pump()
    return sim.engine.tick(sim.now) - sim.now


def ticks_within(sim: Sim, seconds: float) -> int:
    """How many ticks the engine wants in that time."""
    ticks, pause, left = 0, 0.0, seconds
    while left > 0:
        pause = due(sim, pause)
        ticks += 1
        left -= pause
    return ticks


@pytest.fixture
def coming() -> Sim:
    """A burst whose nodes do not join."""
    tables = {"deadlines": {"join": "30s"}, "limits": {"max_bursts": 1}, **LONG}
    sim = Sim(FakeLead(), provision="30s", **tables)
    sim.joins = False
    sim.tick(2)
    sim.lead.submit(whole(4))
    sim.until(sim.in_state(State.JOIN))
    return sim


def test_a_tick_is_due_just_after_a_deadline(coming: Sim) -> None:
    coming.tick(22)
    assert coming.state() is State.JOIN
    for _ in range(100):
        pause = due(coming, 0.0)
        if coming.now + pause > coming.burst.since + 30.0:
            break
        coming.now += pause
    ends = coming.burst.since + 30.0
    assert ends < coming.now + pause <= ends + 0.02


@pytest.mark.parametrize("trouble", ["unreadable", "quarantined"])
def test_a_deadline_that_cannot_be_acted_on_makes_no_spin(coming, trouble) -> None:
    if trouble == "unreadable":
        coming.lead.unreadable = True
    else:
        spoilt = f"job/{coming.burst.id}/1"
        coming.lead.disk.records[spoilt] = "{"
        coming.boot()
        coming.tick()
        assert coming.burst.quarantined
    # Past the deadline; the provider's pace has settled.
    coming.tick(120)
    assert coming.burst.live
    assert ticks_within(coming, 600.0) < 200
    if trouble == "unreadable":
        coming.lead.unreadable = False
        # No deadline ran meanwhile: what was left of it is left.
        coming.until(lambda: coming.bursts[0].result is not None)
