# SPDX-License-Identifier: MIT
"""What tests of isolated bursts say often."""

from burst.model.burst import State
from burst.model.program import Program
from burst.model.request import BurstPreferences
from burst.runtime.action_runner import make_spec
from tests.builders import whole

ALONE = BurstPreferences(mode="isolated", wait=0)
BOTH = ("joined", "isolated")


def submit(sim, nodes=3, **changes):
    return sim.lead.submit(whole(nodes), **{"preferences": ALONE, **changes})


def running(sim):
    """Return a job that runs in an isolated burst, and does not end."""
    sim.provider.ends_with = None
    job = submit(sim)
    sim.until(sim.in_state(State.ONLINE))
    return job


def over(sim):
    return sim.in_state(State.INACTIVE)


def reason(sim, job):
    """Why the job ended: it was told, and ended once."""
    (_,) = [text for what, number, text in sim.lead.log if number == job]
    return sim.lead.memos[job]["why"]


def spec_of(sim):
    """What the provider would be asked for."""
    return make_spec(sim.burst, sim.lead.known, Program(kind="interactive"))
