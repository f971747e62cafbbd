# SPDX-License-Identifier: MIT
"""A lead that refuses to let one job start on its nodes, and answers otherwise.

The nodes are paid for, so the job leaves them, as one does that Flux does not start.
"""

from types import MappingProxyType

import pytest

from burst.model.burst import State
from burst.model.lead import GuestAccess, QueueView
from burst.model.reason import Reason
from tests.builders import identity, whole
from tests.fakes import FakeLead
from tests.sim import Sim

GUESTS = GuestAccess(allow_guest_user=True)
QUEUES = {"burst": ("burst",), "burst-ready": ("burst",)}


class RefusingLead(FakeLead):
    """Confines, moves and releases no job of `refused`."""

    def __init__(self, *, guests=True):
        access = GUESTS if guests else GuestAccess()
        super().__init__(known=identity(queues=QUEUES, access=access), confines=guests)
        stopped = QueueView(started=False)
        self.queues = {"": QueueView(), "burst": stopped, "burst-ready": QueueView()}
        self.refused = set()

    def confine(self, lent):
        rest = {job: ranks for job, ranks in lent.items() if job not in self.refused}
        return self._failures(lent) | super().confine(rest)

    def move(self, queues, lent=MappingProxyType({})):
        rest = {job: name for job, name in queues.items() if job not in self.refused}
        its = {job: ranks for job, ranks in lent.items() if job in rest}
        return self._failures(queues) | super().move(rest, its)

    def release(self, urgencies):
        rest = {job: to for job, to in urgencies.items() if job not in self.refused}
        return self._failures(urgencies) | super().release(rest)

    def _failures(self, asked):
        return {job: "refused" for job in asked if job in self.refused}


@pytest.mark.parametrize("guests", [True, False])
@pytest.mark.parametrize(("mode", "queue"), [("hold", ""), ("queue", "burst")])
def test_a_job_that_the_lead_does_not_let_to_its_nodes_leaves_them(mode, queue, guests):
    lead = RefusingLead(guests=guests)
    sim = Sim(lead, deadlines={"release": "60s"}, intake={"mode": mode})
    job = lead.submit(whole(3), queue=queue)
    lead.refused.add(job)
    sim.until(sim.in_state(State.ONLINE))
    sim.tick(50)
    assert sim.state() is State.ONLINE
    sim.tick(30)
    assert sim.state() is State.INACTIVE, sim.story()
    told = sim.decision(job)
    assert told.reason is Reason.NOT_STARTED
    assert "to let it start there (burst's log has the error)" in told.text()
    sim.tick(30)
    assert len(sim.bursts) == 1


def test_the_time_of_a_refusal_goes_on_after_the_daemon_was_killed():
    lead = RefusingLead()
    sim = Sim(lead, deadlines={"release": "60s"})
    lead.refused.add(lead.submit(whole(3)))
    sim.until(sim.in_state(State.ONLINE))
    sim.tick(40)
    sim.boot()
    sim.tick(40)
    assert sim.state() is State.INACTIVE, sim.story()


def test_the_time_of_a_refusal_ends_with_its_cause():
    """A job whose node is lost is held until it is back, and then has all its time."""
    lead = RefusingLead()
    sim = Sim(lead, deadlines={"release": "60s", "rejoin": "10m"})
    job = lead.submit(whole(3))
    lead.refused.add(job)
    sim.until(sim.in_state(State.ONLINE))
    sim.tick(40)
    sim.joins = False
    lead.lose(min(sim.burst.lease.ranks))
    sim.tick(120)
    sim.joins = True
    sim.tick(30)
    assert sim.state() is State.ONLINE, sim.story()
    lead.refused.clear()
    sim.until(lambda: lead.running() == [job])
