# SPDX-License-Identifier: MIT
"""`burst down --force`: a burst whose host is dead ends although nobody says so."""

import pytest

from burst.errors import BurstError
from burst.model.burst import BurstId, State
from tests.runtime.asking import Asking


def stuck() -> tuple[Asking, str]:
    """Return a daemon, and a burst that is reaped and does not end."""
    asking = Asking()
    (burst,) = asking.ask("request", nodes=3)["bursts"]
    asking.sim.until(asking.sim.in_state(State.ONLINE))
    asking.sim.provider.ends_after = 1_000_000
    asking.ask("down", burst=burst)
    asking.sim.until(asking.sim.in_state(State.REAP))
    asking.sim.tick(30)
    assert asking.sim.state() is State.REAP
    return asking, burst


def test_what_does_not_end_is_ended_by_force_and_its_slot_is_free() -> None:
    asking, burst = stuck()
    provider = asking.sim.provider
    forced: list[BurstId] = []

    def force_reap(burst_id: BurstId) -> None:
        forced.append(burst_id)
        provider.cloud.bursts.clear()
        provider.reap(burst_id)

    provider.force_reap = force_reap  # type: ignore[method-assign]
    assert provider.has("force_reap")
    asking.sim.tick(30)
    assert forced == []
    assert asking.ask("down", burst=burst, force=True) == {"burst": burst}
    asking.sim.until(asking.sim.in_state(State.INACTIVE), ticks=200)
    assert set(forced) == {burst}
    asking.sim.tick(2)
    assert {slot["state"] for slot in asking.ask("status")["slots"]} == {"free"}


def test_a_burst_whose_place_is_gone_for_good_is_forgotten() -> None:
    asking = Asking()
    asking.sim.change(places={"local": "here"})
    (burst,) = asking.ask("request", nodes=3)["bursts"]
    asking.sim.until(asking.sim.in_state(State.ONLINE))
    asking.sim.change(places={"local": "there"})
    asking.sim.tick()
    (row,) = asking.ask("status")["bursts"]
    assert "burst down --force forgets the burst" in row["note"]
    assert asking.ask("down", burst=burst, force=True) == {"burst": burst}
    asking.sim.tick(5)
    # Its ranks are still online.
    assert asking.sim.state() is State.REAP
    asking.sim.provider.cloud.bursts.clear()
    asking.sim.until(asking.sim.in_state(State.INACTIVE))
    asking.sim.tick(2)
    assert {slot["state"] for slot in asking.ask("status")["slots"]} == {"free"}


def test_a_provider_that_cannot_do_that_says_so() -> None:
    asking, burst = stuck()
    with pytest.raises(BurstError, match="provider local always waits for every host"):
        asking.ask("down", burst=burst, force=True)
