# SPDX-License-Identifier: MIT
"""While the store refuses the records, no burst is paid for without an end."""

import pytest

from burst.core.burst_requests import request_nodes
from burst.core.resize_request import WantedSize, resize_burst
from burst.model.burst import State
from tests.builders import LENT, whole
from tests.core.isolation import BOTH, running
from tests.sim import Sim

QUICK = {"release": "20s", "idle": "30s", "join": "20s"}
FOUR = whole(4, constraint=LENT)


def held():
    """A burst that comes up for a job that is held for it."""
    sim = Sim(provision="20s", deadlines=QUICK)
    sim.joins = False
    job = sim.lead.submit(FOUR)
    sim.until(sim.in_state(State.JOIN))
    return sim, job


def resized(nodes, before):
    """A burst that was requested, and is being resized; nodes that grow do not join."""
    sim = Sim.at_rest(provision="20s", deadlines=QUICK)
    sim.request(request_nodes(before))
    sim.until(sim.in_state(State.ONLINE))
    sim.joins = False
    wanted = WantedSize(sim.burst.id, nodes)
    sim.ask(lambda tx: resize_burst(tx, wanted))
    assert sim.burst.resize
    return sim


def test_a_job_that_cannot_be_released_leaves_its_burst():
    sim, job = held()
    sim.lead.disk.full = sim.joins = True
    sim.tick(15)
    assert sim.state() is State.ONLINE
    sim.tick(45)
    assert not sim.cloud.bursts
    sim.lead.disk.full = False
    sim.until(lambda: sim.lead.running() == [job])


def test_it_has_its_time_from_the_trouble_on():
    sim, job = held()
    sim.joins = True
    sim.lead.deaf = True
    sim.tick(15)
    sim.lead.deaf = False
    sim.lead.disk.full = True
    sim.tick(15)
    assert sim.burst.jobs == {job}
    sim.tick(15)
    assert not sim.burst.jobs


@pytest.mark.parametrize("runs", [True, False])
def test_it_stays_where_others_run_or_where_that_is_not_known(runs):
    sim, job = held()
    sim.lead.disk.full = sim.joins = True
    sim.until(sim.in_state(State.ONLINE))
    if runs:
        sim.lead.submit(whole(1, constraint=LENT))
        sim.tick()
    sim.lead.unreadable = not runs
    sim.tick(40)
    assert job in sim.burst.jobs


def test_the_job_of_an_isolated_burst_stays():
    """It runs there, and is held for that."""
    sim = Sim(modes=BOTH, deadlines=QUICK)
    job = running(sim)
    sim.lead.disk.full = True
    sim.lead.submit(whole(4, constraint='{"hostlist":["burst-1-[0-3]"]}'))
    sim.tick(40)
    assert sim.burst.jobs == {job}
    assert sim.state() is State.ONLINE


@pytest.mark.parametrize(("nodes", "before"), [(4, 2), (1, 2)])
def test_a_burst_that_is_idle_while_it_is_resized_ends(nodes, before):
    """Each tick would begin something else, a burst for the job; so it is refused."""
    sim = resized(nodes, before)
    sim.lead.disk.full = True
    sim.lead.submit(whole(4, constraint='{"hostlist":["burst-1-[0-3]"]}'))
    sim.until(lambda: not sim.cloud.bursts, ticks=120)
    assert len(sim.bursts) == 1


def test_a_record_that_cannot_be_encoded_is_as_a_store_that_refuses_it(caplog):
    sim = Sim.at_rest()
    sim.change(places={"local": "\udcff"})
    sim.submit_lent(4)
    sim.tick(3)
    assert not sim.cloud.bursts
    why = sim.engine.snapshot.world.halt.why
    assert why.startswith("a record cannot be encoded: UnicodeEncodeError, ")
    assert caplog.text.count("\nUnicodeEncodeError: ") == 1
    sim.change()
    sim.until(lambda: sim.cloud.bursts)
    assert sim.engine.snapshot.world.halt is None
