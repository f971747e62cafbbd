# SPDX-License-Identifier: MIT
"""A burst whose record cannot be read is taken down when a person says so."""

import pytest

from burst.core.commands import TakeDown, take_down_any
from burst.core.orphans import unreadable_rows
from burst.core.plan.slots import find_slots
from burst.core.records import Transaction
from burst.errors import BurstError
from burst.model.burst import BurstId, State
from burst.model.lead import JobState
from tests.builders import LENT, but, whole
from tests.sim import Sim


def spoilt(sim: Sim, nodes: int = 4):
    """A burst with a job that runs, of which a new daemon cannot read the record."""
    sim.tick(2)
    job = sim.run_job(whole(nodes))
    name = sim.burst.id
    records = sim.lead.disk.records
    records[f"burst/{name}"] = records[f"burst/{name}"][:-5]
    records[f"job/{name}/{job}"] = '{"submitted":1.0}'
    sim.boot()
    sim.tick(3)
    assert not sim.bursts
    return name, job


def test_its_job_ends_first_then_all_of_it_is_deleted():
    sim = Sim()
    name, job = spoilt(sim)
    assert unreadable_rows(sim.records, sim.engine.snapshot.world) == [
        {
            "id": name,
            "provider": "local",
            "hosts": "burst-0-[0-3]",
            "why": "its record cannot be read",
        }
    ]

    sim.take_down(name)

    sim.tick(20)
    assert sim.burst.state is State.REAP
    assert sim.lead.jobs[job].state is JobState.RUN
    assert sim.lead.drained.keys() == {2, 3, 4, 5}
    sim.lead.finish(job)
    sim.until(sim.in_state(State.INACTIVE))
    sim.tick(5)
    assert not sim.cloud.followers()
    assert not sim.lead.drained
    assert not sim.records.unreadable
    # A new daemon reads it, and its slot is free.
    sim.boot()
    sim.tick(2)
    assert not sim.records.unreadable
    assert not [key for key in sim.lead.disk.records if key.startswith("job/")]
    sim.run_job(whole(8))


def test_it_costs_what_the_nodes_that_it_had_cost():
    """Which ranks of its slot it had is not known; how many it paid for is."""
    sim = Sim(prices={"local.nodes": 1.0})
    name, job = spoilt(sim, nodes=3)

    sim.take_down(name)

    sim.tick(2)
    assert sim.burst.lease.nodes == 4
    assert sim.records.entries[name].nodes == 3
    sim.lead.finish(job)
    sim.until(sim.in_state(State.INACTIVE))
    assert sim.records.settled[name].nodes == 3


def test_its_ranks_are_known_by_hosts_and_drains_where_slots_were_declared_anew():
    """Else its slot were free at once, and what runs there reaped under its job."""
    sim = Sim()
    name, _ = spoilt(sim)
    seen = sim.engine.snapshot
    anew = ("burst-0-[0-1]", "burst-0-[2-3]", "burst-1-[0-3]")
    blind = but(seen.world.providers["local"], statuses={})
    slots = find_slots(seen.world.identity, anew)
    assert seen.world.lead
    lead = but(seen.world.lead, drained={6: f"burst: {name} is being taken down"})
    world = but(seen.world, slots=slots, providers={"local": blind}, lead=lead)
    tx = Transaction(seen.records, world, seen.settings, sim.now)
    take_down_any(tx, TakeDown(name))
    assert tx.bursts[name].lease.ranks == (2, 3, 4, 5, 6)


def test_ranks_of_other_bursts_are_not_drained():
    """Slots may have been declared anew meanwhile."""
    sim = Sim()
    name, _ = spoilt(sim)
    sim.run_job(whole(4))
    records = sim.lead.disk.records
    key = f"burst/{sim.burst.id}"
    records[key] = records[key].replace('"ranks":[6,7,8,9]', '"ranks":[5,7,8,9]')
    sim.boot()
    sim.tick()

    sim.take_down(name)

    assert sim.bursts[-1].lease.ranks == (2, 3, 4)


def test_jobs_on_two_of_one_slot_run_to_their_end():
    sim = Sim()
    sim.tick(2)
    jobs = [sim.run_job(whole(2, constraint=LENT)) for _ in range(3)]
    found = sorted(sim.bursts, key=lambda burst: burst.lease.ranks)[:2]
    names = [burst.id for burst in found]
    assert [burst.lease.ranks for burst in found] == [(2, 3), (4, 5)]
    for name in names:
        sim.lead.disk.records[f"burst/{name}"] = "torn"
    sim.boot()
    sim.tick(3)

    for name in names:
        sim.take_down(name)
    sim.tick(20)

    assert {sim.lead.jobs[job].state for job in jobs} == {JobState.RUN}
    for job in jobs:
        sim.lead.finish(job)
    sim.tick(40)
    assert not set(names) & set(sim.cloud.followers().values())


def test_a_provider_that_is_not_there_cannot_be_asked():
    sim = Sim()
    name, _ = spoilt(sim)

    with pytest.raises(BurstError, match="is no provider gke; the settings have local"):
        sim.take_down(name, provider="gke")

    assert f"burst/{name}" in sim.records.unreadable


def test_it_must_be_clear_whose_it_is():
    sim = Sim()
    sim.tick(2)
    sim.lead.disk.records["burst/burst-0-ffffff"] = "{"
    sim.boot()
    sim.tick(2)
    records, world = sim.records, sim.engine.snapshot.world
    two = {"a": world.providers["local"], "b": world.providers["local"]}
    world = but(world, providers=two)
    tx = Transaction(records, world, sim.engine.snapshot.settings, sim.now)

    with pytest.raises(
        BurstError, match=r"which provider made it \(a, b\); burst down"
    ):
        take_down_any(tx, TakeDown("burst-0-ffffff"))

    take_down_any(tx, TakeDown("burst-0-ffffff", "", "b"))
    assert tx.bursts[BurstId("burst-0-ffffff")].lease.provider == "b"


def test_a_burst_of_which_only_a_job_cannot_be_read_is_taken_down():
    sim = Sim()
    sim.tick(2)
    job = sim.run_job(whole(4))
    key = f"job/{sim.burst.id}/{job}"
    sim.lead.disk.records[key] = "{"
    sim.boot()
    sim.tick()
    assert sim.burst.quarantined

    sim.take_down(sim.burst.id)

    assert sim.burst.state is State.DRAIN
    # By the ranks that it has, it is on record anew.
    assert sim.lead.disk.records[key].startswith('{"submitted"')
    sim.lead.finish(job)
    sim.until(sim.in_state(State.INACTIVE))
    with pytest.raises(BurstError, match="has ended"):
        sim.take_down(sim.burst.id)


def test_records_of_jobs_without_a_burst_are_forgotten():
    sim = Sim()
    sim.lead.disk.records["job/burst-7-ffffff/1"] = '{"submitted":1.0}'
    sim.boot()
    sim.tick()

    sim.take_down("burst-7-ffffff")

    assert "job/burst-7-ffffff/1" not in sim.lead.disk.records
    with pytest.raises(BurstError, match="there is no burst burst-7-ffffff"):
        sim.take_down("burst-7-ffffff")
