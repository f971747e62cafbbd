# SPDX-License-Identifier: MIT
"""Interleavings with jobs that Flux's scheduler gets later than they are submitted."""

from __future__ import annotations

import msgspec
import pytest

from tests.machine.explore import replay
from tests.machine.invariants import Broken
from tests.machine.steps import Steps

SCENARIO = {"providers": {"a": {"max_nodes": 4}}}
LATER = ("submit_later", {"nodes": 1, "seconds": 15.0, "held": False})
STOPPED = ("person_stops_queues", {"stopped": True})
TICKS = ("time_passes", {"ticks": 5})


def test_one_that_begins_later_waits_for_free_own_nodes_from_then_on() -> None:
    replay(SCENARIO, LATER, STOPPED, *[TICKS] * 6)


def test_a_burst_that_is_made_for_it_beside_free_own_nodes_is_seen() -> None:
    """As where it is told to wait from its submission on."""
    machine = Steps(SCENARIO)
    seen = machine.world.lead.observe

    def observe():
        view = seen()
        jobs = {
            j: msgspec.structs.replace(v, t_eligible=0.0) for j, v in view.jobs.items()
        }
        return msgspec.structs.replace(view, jobs=jobs)

    machine.world.lead.observe = observe  # type: ignore[method-assign]
    for name, arguments in (LATER, STOPPED, TICKS, TICKS):
        machine.take(name, arguments)
    with pytest.raises(Broken) as broken:
        machine.take("time_passes", {"ticks": 10})
    assert broken.value.name == "use"
