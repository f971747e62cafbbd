# SPDX-License-Identifier: MIT
"""A lead that is restarted with other hosts at the ranks of live bursts."""

import pytest

from burst.model.burst import State
from burst.model.lead import JobState
from tests.builders import but, identity, whole
from tests.sim import Sim

FEWER = "lead-[0-1]"
SHORTER = "lead-[0-1],burst-0-[0-1]"
SHIFTED = "lead-[0-3],burst-0-[0-3],burst-1-[0-3]"


def restarted(hosts):
    """A daemon that begins again at such a lead, with a burst from before."""
    s = Sim.at_rest(deadlines={"idle": "1h", "rejoin": "1h"})
    job = s.lead.submit(whole(4))
    s.until(lambda: job in s.lead.running())
    assert s.burst.lease.ranks == (2, 3, 4, 5)
    s.lead.finish(job)
    owner = s.lead.known.owner
    s.lead.known = but(identity(hosts), owner=owner)
    own = [rank for rank, host in enumerate(s.lead.known.hosts) if host[:4] == "lead"]
    s.lead.online = set(own)
    # Followers know the ranks that there were; none of them joins this lead.
    s.joins = False
    s.boot()
    return s


@pytest.mark.parametrize("hosts", [FEWER, SHORTER, SHIFTED])
def test_its_bursts_are_deleted_and_its_nodes_left_alone(hosts):
    s = restarted(hosts)
    own = set(s.lead.online)
    drained = set()

    for _ in range(30):
        s.tick()
        drained |= set(s.lead.drained)

    assert s.state() is State.INACTIVE
    assert s.cloud.bursts == {}
    assert not drained & own
    assert not s.lead.drained
    assert not s.burst.drained


def test_a_job_on_a_node_that_has_such_a_rank_now_keeps_no_burst():
    s = restarted(SHIFTED)
    job = s.lead.submit(whole(4, constraint='{"properties":["local"]}'))
    s.lead.schedule()
    assert s.lead.jobs[job].state is JobState.RUN
    s.tick(30)

    assert s.state() is State.INACTIVE
    assert job in s.lead.running()


def test_a_drain_of_ours_is_taken_back_from_a_node_that_is_not_ours_any_more():
    s = restarted(SHIFTED)
    ours = f"burst: {s.burst.id} is being taken down"
    (text,) = [t for k, t in s.lead.disk.records.items() if k.startswith("burst/")]
    context = '{"ranks":"2-5","result":"completed","note":"idle"}'
    drain = f'{{"timestamp":{s.now},"name":"drain","context":{context}}}'
    end = text.rindex('],"sums"')
    s.lead.disk.records[f"burst/{s.burst.id}"] = text[:end] + "," + drain + text[end:]
    s.lead.drained = {2: ours, 3: "burst: burst-1-ffffff is being taken down"}
    s.boot()
    assert s.state() is State.DRAIN
    s.tick(30)

    assert s.state() is State.INACTIVE
    assert s.lead.drained == {3: "burst: burst-1-ffffff is being taken down"}
    assert not s.burst.drained
