# SPDX-License-Identifier: MIT
"""Members whose jobs run in isolated bursts, on an engine that is run by hand."""

from __future__ import annotations

import msgspec
import pytest
from burst_ensemble.algorithm import MemberDecision, MemberView, Memory

from burst.core.tick import KEPT_ENDED, TAGGED_KEPT_S
from burst.model.active_job import JobOutcome
from burst.model.burst import NOT_HELD, State
from burst.model.lead import JobState
from burst.model.request import ResourceRequest
from tests.builders import whole
from tests.plugins.ensemble.runtime.ensemble_site import MEMBER
from tests.plugins.ensemble.runtime.far_site import FAR, Far


def test_each_job_runs_in_a_burst_of_its_own_within_the_size() -> None:
    site = Far()
    site.wants(2, "md", "md", "md")
    site.step(3)
    assert [b.lease.nodes for b in site.bursts] == [1, 1]
    assert all(b.lease.isolated and not b.lease.ranks for b in site.bursts)
    assert [b.state for b in site.bursts] == [State.ONLINE, State.ONLINE]
    view = site.says.saw[-1]
    assert (view.nodes, view.nodes_paid, view.nodes_up, view.nodes_free) == (2, 2, 2, 0)
    assert (view.queue.run, view.queue.sched, view.waiting) == (2, 1, {1: 1})
    assert view.cores_up == sum(2 * b.lease.shape.cores for b in site.bursts[:1])
    assert (site.row["member"]["mode"], site.row["member"]["slot"]) == ("isolated", "")
    assert site.row["nodes"]["node_up_count"] == site.row["member"]["nodes_paid"] == 2
    assert site.job(0).state is JobState.SCHED, "the lead holds it"
    site.end_programs()
    site.step(4)
    assert [b.state for b in site.bursts] == [State.ONLINE]
    site.end_programs(3)
    site.step(3)
    assert site.bursts == []
    view = site.says.saw[-1]
    assert (view.tally.success, view.tally.failed) == (2, 1)
    assert view.tally.events == {"submit": 3, "start": 3, "finish": 3, "exception": 1}
    assert view.tally.duration.min > 5, "as long as it ran elsewhere"
    assert (view.nodes_up, view.nodes_free, view.nodes_paid) == (2, 2, 0)
    assert len(site.sim.cloud.begun) == len(set(site.sim.cloud.begun)) == 3


def test_a_burst_whose_provider_was_not_called_is_dropped_at_the_end() -> None:
    site = Far(of_ensemble={"checkSeconds": "0.1s"})
    site.says.says = MemberDecision(nodes=1, submit=("md",))
    site.pace(0.2)
    site.ensembles.look()
    site.says.says = MemberDecision()
    site.sim.tick(2)
    site.ensembles.look()
    # Its job is not held for long enough to be surely held.
    assert [b.state for b in site.bursts] == [State.NEW]
    site.down()
    site.sim.tick()
    site.ensembles.look()
    assert [b.exception for b in site.bursts] == [NOT_HELD]
    site.pace(1.0)
    site.step(3)
    assert site.bursts == []
    assert site.sim.cloud.begun == []
    assert site.job(0).state is JobState.INACTIVE
    note = "sweep/a has ended: by hand"
    assert ("cancel", site.job(0).id, note) in site.sim.lead.log


def test_a_job_that_ended_while_nobody_looked_ran_as_long_as_its_burst() -> None:
    site = Far()
    site.wants(1, "md")
    site.step(3)
    # It ends, and is forgotten by the lead, between two looks.
    site.sim.tick(20)
    site.end_programs()
    site.sim.tick(3)
    job = site.job(0)
    assert job.state is JobState.INACTIVE
    site.lead.ended[job.id] = JobOutcome("completed", job.t_finish, job.t_finish)
    del site.sim.lead.jobs[job.id]
    site.step(2)
    tally = site.says.saw[-1].tally
    assert (tally.success, tally.duration.count) == (1, 1)
    assert tally.duration.mean > 20


def test_jobs_of_users_run_in_bursts_of_the_member_too() -> None:
    site = Far()
    joined = site.users(whole(1), mode="joined")
    other = site.users(whole(1))
    cores = ResourceRequest(nodes=0, slots=16, cores_per_slot=1)
    many = site.users(cores)
    site.wants(3)
    site.step(3)
    assert [b.lease.isolated_job for b in site.bursts] == [other]
    # It asks for cores alone, of four nodes, and has to wait for as many.
    assert site.sim.lead.jobs[many].state is JobState.SCHED
    assert site.sim.lead.jobs[joined].state is JobState.SCHED


def test_a_job_that_its_user_takes_back_is_no_job_of_a_burst_any_more() -> None:
    site = Far()
    site.wants(1, "md")
    site.step(3)
    job = site.job(0).id
    site.sim.lead.change(job, urgency=16)
    site.step(3)
    assert site.bursts == []
    assert (site.job(0).state, len(site.job(0).ranks)) == (JobState.RUN, 1)
    view = site.says.saw[-1]
    assert (view.queue.run, view.nodes_paid, view.nodes_free) == (1, 0, 1)
    assert view.tally.events == {"submit": 1, "start": 1}


def test_a_job_that_ends_while_a_step_is_under_way_gets_no_burst() -> None:
    site = Far()
    site.wants(1, "md")
    decide = site.says.decide

    def meanwhile(view: MemberView, memory: Memory, now: float) -> MemberDecision:
        site.sim.lead.finish(site.job(0).id, "canceled")
        return decide(view, memory, now)

    site.says.decide = meanwhile  # type: ignore[method-assign]
    site.step(2)
    assert site.sim.cloud.begun == []
    assert site.bursts == []


def test_the_cost_of_each_burst_is_counted_however_many_end_at_once() -> None:
    many = KEPT_ENDED + 5
    site = Far(prices={"local.nodes": 3600.0}, of_member={"max": 150})
    site.wants(many, *("md",) * many)
    site.step(2)
    assert len(site.bursts) == many
    begun = site.sim.now
    site.sim.tick(8)
    site.end_programs()
    site.sim.tick(8)
    assert site.bursts == []
    assert len(site.sim.engine.snapshot.records.bursts) == many
    site.step()
    least = many * (site.sim.now - begun - 16)
    assert site.member("a").spent > least
    site.sim.tick(2, seconds=TAGGED_KEPT_S)
    assert len(site.sim.engine.snapshot.records.bursts) == KEPT_ENDED


def test_nodes_of_members_have_the_image_that_the_file_says() -> None:
    near = {**MEMBER, "name": "b", "image": "near:1"}
    site = Far(near, of_member={"image": "far:1"})
    given = site.sim.fake_settings
    site.sim.fake_settings = msgspec.structs.replace(given, own_images=True)
    site.restart()
    site.wants(1, "md")
    site.step(3)
    found = {
        burst.spec.image: bool(burst.spec.program)
        for burst in site.sim.cloud.bursts.values()
    }
    assert found == {"near:1": False, "far:1": True}


def test_no_jobs_are_submitted_while_nothing_is_offered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = Far()
    assert set(site.abilities()) == {"joined", "isolated"}
    site.sim.enabled = False
    site.restart()
    assert set(site.abilities()) == set(), "no file is refused yet"
    site.wants(1, "md")
    assert site.sim.lead.jobs == {}
    assert "provider local offers no isolated bursts now" in caplog.text
    site.sim.enabled = True
    can = msgspec.structs.replace(site.sim.fake_settings, own_images=True)
    site.sim.fake_settings = can
    site.restart()
    assert set(site.abilities()) == {"joined", "isolated", "image"}
    site.step(2)
    assert len(site.sim.lead.jobs) == 1


def test_other_members_get_their_jobs_while_nothing_is_offered_to_one() -> None:
    near = {**MEMBER, "name": "b", "jobs": FAR["jobs"]}
    # An offer that there is not: of the isolated member alone.
    site = Far(near, of_member={"offer": "gone"})
    site.says.says = MemberDecision(submit=("md",))
    site.algorithms["b"].says = site.says.says  # type: ignore[attr-defined]
    site.step()
    assert [name.split("/")[1] for name in site.lead.names] == ["b"]


def test_a_job_that_no_burst_could_hold_does_not_keep_others_waiting() -> None:
    site = Far(nodes=2, of_member={"max": 4})
    site.users(whole(3))
    site.wants(4, "wide", "wide")
    site.step(3)
    assert [b.lease.nodes for b in site.bursts] == [2, 2]
    site.end_programs()
    site.step(3)
    assert "2 nodes" in site.row["member"]["waits_for"]


def test_bursts_of_an_ensemble_that_is_lost_end_with_their_jobs() -> None:
    site = Far()
    site.wants(1, "md")
    site.step(3)
    store = site.sim.lead.disk.records
    for key in [key for key in store if key.startswith("ensemble")]:
        del store[key]
    site.restart()
    site.step(3)
    assert [b.state for b in site.bursts] == [State.ONLINE]
    site.end_programs()
    site.step(2)
    assert site.bursts == []
    assert site.job(0).result == "completed"
