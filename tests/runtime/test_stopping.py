# SPDX-License-Identifier: MIT
"""A daemon that takes all down as it stops makes nothing new, and leaves nothing."""

from burst.daemon import take_down_all_bursts
from burst.model.burst import State
from burst.model.reason import Reason
from tests.builders import whole
from tests.sim import Sim


def test_nothing_new_is_made_and_jobs_are_told():
    s = Sim.at_rest()
    refused = s.lead.submit(whole(9))
    first = s.lead.submit(whole(4))
    s.until(lambda: first in s.lead.running())
    # Its verdict stands from before.
    assert refused in s.engine.snapshot.decisions
    s.engine.stop_provisioning()
    s.engine.post(take_down_all_bursts)
    s.tick()
    waiting = s.lead.submit(whole(4))
    s.tick()
    s.lead.finish(first)
    s.tick(20)

    assert [burst.state for burst in s.bursts] == [State.INACTIVE]
    for job in (refused, waiting):
        assert s.decision(job).reason is Reason.DAEMON_STOPPING
    assert "the daemon stops" in str(s.lead.memos[waiting]["why"])
    # Ranks that we drained for it may be used by the next daemon.
    assert not s.lead.drained
    assert not s.burst.drained
