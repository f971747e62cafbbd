# SPDX-License-Identifier: MIT
"""What is told of a burst whose job ends, by the states that Slurm goes through."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from burst_slurm.jobs import SlurmJob, describe

from burst.model.burst import State
from burst.provider import BurstStatus
from burst.testing import FakeProvider
from tests.builders import whole
from tests.sim import Sim


class Seen(FakeProvider):
    """Shows each burst as a job in this state, once there is one."""

    job: SlurmJob | None = None

    def observe(self) -> Sequence[BurstStatus]:
        found = super().observe()
        if self.job is None:
            return found
        seen = describe(self.job, 0.0)
        told = {"phase": seen.phase, "why": seen.why, "failure": seen.failure}
        return [msgspec.structs.replace(each, **told) for each in found]


class SlurmSim(Sim):
    """A daemon whose provider is that."""

    provider_type = Seen


@pytest.mark.parametrize("begun", [State.JOIN, State.ONLINE])
@pytest.mark.parametrize(
    ("last", "exception", "note"),
    [
        ("PREEMPTED", "reclaimed", "lost its nodes to other jobs (PREEMPTED)"),
        ("FAILED", "failed", "Slurm job 7 has failed (FAILED)"),
        ("BOOT_FAIL", "capacity", "had a node that did not boot (BOOT_FAIL)"),
    ],
)
def test_the_state_after_completing_tells_why_a_burst_ended(
    last: str, exception: str, note: str, begun: State
) -> None:
    sim = SlurmSim()
    sim.joins = begun is State.ONLINE
    sim.tick(2)
    sim.lead.submit(whole(4), userid=1)
    sim.until(sim.in_state(begun))
    sim.joins = False
    for rank in sim.burst.lease.ranks if begun is State.ONLINE else ():
        sim.lead.lose(rank)
    for state in ("COMPLETING", last):
        assert sim.burst.exception == ""
        assert isinstance(sim.provider, Seen)
        sim.provider.job = SlurmJob(7, state)
        sim.tick(3)

    assert sim.bursts[0].exception == exception
    assert note in sim.story()
