# SPDX-License-Identifier: MIT
"""A job that lost a node of its burst is run again where that is wanted."""

from typing import NamedTuple

import pytest

from burst.core.records import RecordChanges
from burst.core.repeats import ASK_AGAIN_S, KEPT, note_answer
from burst.errors import LeadError, Unreadable
from burst.model.jobid import JobId, format_f58
from burst.model.lead import GuestAccess, JobState
from burst.model.repeat import Repeat
from burst.model.request import BurstPreferences, parse_preferences
from tests.builders import but, identity, whole
from tests.core.ticks import recorded
from tests.fakes import Crash, FakeLead
from tests.sim import Sim

WANTED = BurstPreferences(requeue=True)


class Answer(NamedTuple):
    """What a lead raises, and whether it has taken the job."""

    error: BaseException
    arrives: bool = False


class TakingLead(FakeLead):
    """Takes jobs. `answers` are the first of its answers that are none."""

    def __init__(self, *args):
        super().__init__(*args)
        self.answers = []
        self.taken = []

    def submitted_jobspec(self, job):
        spec = self.jobspec(job)
        wish = {"requeue": self.jobs[job].preferences.requeue}
        spec["attributes"]["system"]["burst"] = wish
        return spec

    def submit_jobs(self, jobs):
        (new,) = jobs
        answer = self.answers.pop(0) if self.answers else None
        if answer is None or answer.arrives:
            self.taken.append(new.jobspec)
            wish = parse_preferences(new.jobspec)
            again = self.submit(whole(4), urgency=new.urgency, preferences=wish)
        if answer is None:
            return [again]
        if isinstance(answer.error, Unreadable | Crash):
            raise answer.error
        return [answer.error]

    def find_jobs(self, names):
        raise NotImplementedError

    def outcomes(self, jobs):
        raise NotImplementedError


def running(preferences=WANTED, spot=False, lead=None, **changes):
    """A job runs on a burst."""
    rejoin = {"deadlines": {"rejoin": "5s"}}
    sim = Sim(lead or TakingLead(), **{**rejoin, **changes})
    sim.fake_settings = but(sim.fake_settings, spot=spot)
    sim.boot()
    sim.tick(2)
    job = sim.run_job(whole(4), preferences=preferences)
    return sim, job


def lose(sim, job):
    """The cloud takes the nodes of a job that runs."""
    (burst,) = (b for b in sim.live if job in b.jobs)
    sim.provider.reclaim(burst.id)
    sim.tick(3)
    assert sim.lead.jobs[job].result == "failed"


def again(sim, job):
    """Return the job that is in place of one."""
    found = sim.records.repeats[job].again
    assert found is not None
    return found


def test_it_is_submitted_held_and_runs_once_the_daemon_has_seen_it():
    sim, job = running()
    lose(sim, job)
    second = again(sim, job)
    view = sim.lead.jobs[second]
    system = sim.lead.taken[-1]["attributes"]["system"]
    told = {"urgency": 16, "repeats": format_f58(job), "losses": 1}
    assert system["burst"] == {"requeue": True, **told}
    assert system["environment"], "the rest is as it was"
    assert view.preferences.repeats == format_f58(job)
    sim.until(lambda: sim.lead.jobs[second].state is JobState.RUN)
    assert sim.lead.jobs[second].urgency == 16
    row = sim.explained(job)
    assert row["again"] == f"it was submitted again as {format_f58(second)}"
    assert row["why"].endswith(row["again"])
    sim.tick(int(2 * ASK_AGAIN_S))
    assert len(sim.lead.taken) == 1


@pytest.mark.parametrize(
    ("own", "rule", "runs"),
    [
        (None, True, True),
        (None, False, False),
        (None, None, False),
        (False, True, False),
        (True, False, True),
    ],
)
def test_the_user_decides_and_else_the_rule(own, rule, runs):
    rules = {} if rule is None else {"policy": [{"requeue": rule}]}
    sim, job = running(BurstPreferences(requeue=own), **rules)
    lose(sim, job)
    assert bool(sim.lead.taken) is runs
    assert bool(sim.records.repeats) is runs


@pytest.mark.parametrize("shown", [True, False])
def test_it_is_submitted_once_the_lead_shows_the_lost_node(shown):
    """It would be lost there at once. Not shown: the follower is back already."""
    sim, job = running()
    (burst,) = sim.live
    sim.lead.change(job, lost_node="node failure on burst-0-0 (rank 2)")
    sim.lead.finish(job, "failed")
    sim.tick(10)
    assert sim.records.repeats[job].is_open
    assert not sim.lead.taken
    if shown:
        sim.provider.reclaim(burst.id)
        sim.tick(3)
    else:
        sim.tick(int(ASK_AGAIN_S))
    assert len(sim.lead.taken) == 1
    assert again(sim, job)


def test_what_ended_otherwise_is_not_run_again():
    sim, job = running()
    sim.lead.finish(job, "failed")
    sim.tick(3)
    assert not sim.records.repeats


def test_a_guests_job_is_not_run_again_and_it_is_told_why():
    guests = GuestAccess(allow_guest_user=True)
    lead = TakingLead(identity(access=guests, owner_userid=7))
    sim, job = running(lead=lead, plan={"share_users": True})
    lose(sim, job)
    assert not sim.lead.taken
    told = "it is not run again: the daemon cannot sign the job of another user"
    assert told in sim.explained(job)["why"]


def test_it_is_run_again_twice_and_then_no_more():
    sim, job = running()
    for losses in (1, 2):
        lose(sim, job)
        job = again(sim, job)
        assert sim.lead.jobs[job].preferences.losses == losses
        sim.until(lambda job=job: sim.lead.jobs[job].state is JobState.RUN)
    lose(sim, job)
    assert len(sim.lead.taken) == 2
    told = "it is not run again: a job is run again at most 2 times"
    assert sim.explained(job)["why"].endswith(told)


@pytest.mark.parametrize("arrives", [True, False])
def test_a_daemon_that_is_killed_as_it_submits_makes_one_job(arrives):
    sim, job = running()
    sim.lead.answers = [Answer(Crash(), arrives)]
    (burst,) = sim.live
    sim.provider.reclaim(burst.id)
    with pytest.raises(Crash):
        sim.tick(3)
    sim.boot()
    assert sim.records.repeats[job].is_open, "the intent was written before"
    sim.tick(2)
    sim.until(lambda: bool(sim.lead.taken), seconds=5.0)
    sim.tick(int(2 * ASK_AGAIN_S))
    assert len(sim.lead.taken) == 1
    second = sim.lead.jobs[again(sim, job)]
    assert second.state is JobState.RUN


@pytest.mark.parametrize("arrives", [True, False])
def test_a_lead_that_does_not_answer_is_asked_again_if_no_job_is_there(arrives):
    sim, job = running()
    sim.lead.answers = [Answer(Unreadable("no answer"), arrives)]
    lose(sim, job)
    assert len(sim.lead.taken) == arrives
    sim.tick(int(2 * ASK_AGAIN_S))
    assert len(sim.lead.taken) == 1
    assert sim.lead.jobs[again(sim, job)].state is JobState.RUN


def test_what_the_lead_refuses_is_told():
    sim, job = running()
    sim.lead.answers = [Answer(LeadError("queue burst is disabled"))]
    lose(sim, job)
    assert not sim.lead.taken
    told = "it is not run again: queue burst is disabled"
    assert sim.explained(job)["why"].endswith(told)


def test_a_lead_that_takes_no_jobs_is_told():
    sim, job = running(lead=FakeLead())
    lose(sim, job)
    assert "takes no jobs from burst" in sim.explained(job)["again"]


def test_only_the_last_are_kept():
    sim, job = running()
    older = {
        JobId(10_000 + n): Repeat(losses=1, urgency=16, since=n, again=JobId(1))
        for n in range(KEPT + 1)
    }
    sim.engine._records.now = but(sim.records, repeats=older)
    lose(sim, job)
    sim.tick()
    kept = sim.records.repeats
    assert kept.keys() == {job} | older.keys() - {JobId(10_000)}


class LateLead(TakingLead):
    """Kills what a job has on its other nodes for longer than its burst lives."""

    def lose(self, rank):
        before = dict(self.jobs)
        super().lose(rank)
        for job, view in before.items():
            if view != self.jobs[job]:
                lost = self.jobs[job].lost_node
                self.jobs[job] = but(view, state=JobState.CLEANUP, lost_node=lost)


def not_kept(sim, job):
    """Drop what is on record of the second job, as so many later ones do."""
    repeats = {other: of for other, of in sim.records.repeats.items() if other != job}
    sim.engine._records.now = but(sim.records, repeats=repeats)
    sim.tick()
    assert job not in sim.records.repeats


def waited_in_vain(preferences=WANTED, **changes):
    """A job waits for a burst that does not come up, and is taken down."""
    sim = Sim(TakingLead(), deadlines={"rejoin": "5s"}, **changes)
    sim.joins = False
    sim.tick(2)
    job = sim.lead.submit(whole(4), preferences=preferences)
    sim.tick(3)
    (burst,) = sim.live
    assert job in burst.jobs
    sim.take_down(burst.id)
    sim.until(lambda: burst.id not in {b.id for b in sim.live})
    sim.joins = True
    return sim, job


def test_that_it_once_waited_for_a_burst_that_is_gone_runs_it_no_second_time():
    sim, job = waited_in_vain()
    sim.until(lambda: job in sim.lead.running(), ticks=200)
    lose(sim, job)
    second = again(sim, job)
    sim.until(lambda: sim.lead.jobs[second].state is JobState.RUN)
    sim.lead.finish(second)
    sim.tick(3)
    not_kept(sim, job)
    sim.boot()
    sim.tick(5)
    assert len(sim.lead.taken) == 1


def test_a_wish_of_later_does_not_count_for_a_job_that_has_ended():
    sim, job = waited_in_vain(BurstPreferences())
    sim.until(lambda: job in sim.lead.running(), ticks=200)
    lose(sim, job)
    sim.tables["policy"] = [{"requeue": True}]
    sim.boot()
    sim.tick(5)
    assert not sim.lead.taken
    assert not sim.records.repeats


def test_a_job_that_ran_on_own_nodes_is_not_run_again():
    sim, job = waited_in_vain()
    sim.lead.change(job, ranks=frozenset({0, 1}), ran_on=frozenset({0, 1}))
    sim.lead.change(job, state=JobState.RUN, t_start=sim.now)
    sim.tick()
    sim.lead.change(job, lost_node="node failure on lead-1 (rank 1)")
    sim.lead.finish(job, "failed")
    sim.tick(3)
    assert not sim.records.repeats


def test_one_that_ends_after_its_burst_is_run_again_once():
    sim, job = running(lead=LateLead())
    (burst,) = sim.live
    sim.provider.reclaim(burst.id)
    sim.until(lambda: burst.id not in {b.id for b in sim.live}, seconds=60.0)
    assert not sim.records.repeats
    sim.lead.finish(job, "failed")
    sim.tick(3)
    assert again(sim, job)
    assert sim.records.bursts[burst.id].sums.results == {"failed": 1}
    not_kept(sim, job)
    sim.boot()
    sim.tick(5)
    assert len(sim.lead.taken) == 1


def test_what_is_known_of_the_second_job_is_not_changed():
    known = Repeat(losses=1, urgency=16, since=1.0, again=JobId(2))
    tx = RecordChanges(recorded(), 2.0)
    tx.repeats[JobId(1)] = known
    note_answer(tx, JobId(1), None, "no answer")
    note_answer(tx, JobId(3), JobId(4))
    assert tx.result().repeats == {JobId(1): known}
    opened = but(known, again=None)
    assert opened.text() == "it is being submitted again"
