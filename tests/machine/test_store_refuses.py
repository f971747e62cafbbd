# SPDX-License-Identifier: MIT
"""Interleavings in which the store takes nothing."""

from __future__ import annotations

import pytest

from burst.errors import StoreError
from tests.machine.explore import Taken
from tests.machine.invariants import Broken
from tests.machine.steps import Steps

IDLE: tuple[Taken, ...] = (
    ("submit", {"nodes": 4, "user": 1}),
    ("time_passes", {"ticks": 5}),
    ("store_is_full", {"full": True}),
    ("running_jobs_end", {}),
)
TICKS = 10
"""Of 40 s: longer than all that an idle burst may be kept for."""


def go_on(machine: Steps) -> None:
    for _ in range(TICKS):
        machine.take("tick", {"seconds": 40.0})


def idle_and_full() -> Steps:
    """A world in which nothing can be stored, with a burst that is idle since then."""
    machine = Steps({"providers": {"a": {"max_nodes": 4}}})
    for name, arguments in IDLE:
        machine.take(name, arguments)
    assert [burst.state.value for burst in machine.world.live] == ["online"]
    return machine


def test_what_is_idle_is_taken_down() -> None:
    machine = idle_and_full()
    go_on(machine)
    assert not machine.world.made()


def test_what_stays_although_it_is_idle_is_seen() -> None:
    machine = idle_and_full()

    def tick(now: float) -> float:
        raise StoreError("no space left")

    machine.world.engine.tick = tick  # type: ignore[method-assign]
    with pytest.raises(Broken) as broken:
        go_on(machine)
    assert broken.value.name == "use"
