# SPDX-License-Identifier: MIT
"""A burst of which a part was made before a call failed is made whole."""

import pytest

from burst.model.burst import State
from tests.builders import whole
from tests.sim import Sim


@pytest.mark.parametrize("dies", [False, True])
def test_the_rest_is_asked_for_although_the_first_followers_are_up(dies: bool) -> None:
    """They may join before the next call, or while no daemon runs."""
    sim = Sim.at_rest()
    sim.provider.build_only = 2
    job = sim.lead.submit(whole(4))
    sim.tick()
    if dies:
        sim.executor.pump()
        sim.boot()
    sim.tick()
    assert sim.lead.online == {0, 1, 2, 3}
    assert sim.state() is State.PROVISION

    sim.until(lambda: job in sim.lead.running(), ticks=6)
    assert sim.state() is State.ONLINE
    assert len(sim.bursts) == 1


def test_nodes_that_are_all_up_are_used_although_no_call_ever_worked() -> None:
    sim = Sim.at_rest()
    sim.provider.next_answer_lost = True
    job = sim.lead.submit(whole(4))
    sim.tick(2)
    assert job in sim.lead.running()
