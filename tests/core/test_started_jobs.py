# SPDX-License-Identifier: MIT
"""Reports, accounts and explanations name the same jobs of a burst, by their ranks."""

from burst.core.past_bursts import PastBursts
from burst.model.burst import State
from burst.model.jobid import format_f58
from burst.model.lead import JobState
from tests.builders import whole
from tests.sim import Sim

PRICED = {"idle": "20s", "release": "5m"}


class Crossed:
    """Two bursts that were made for a job each, and Flux starts each on the other."""

    def __init__(self):
        self.sim = Sim(deadlines=PRICED)
        self.sim.tick(2)
        self.lead = self.sim.lead
        self.lead.schedule = lambda: None  # type: ignore[method-assign]
        self.jobs = [self.lead.submit(whole(4), userid=user) for user in (100, 101)]
        both = [State.ONLINE] * 2
        self.sim.until(lambda: [b.state for b in self.sim.bursts] == both)
        self.made_for = {
            job: next(b.id for b in self.sim.bursts if job in b.jobs)
            for job in self.jobs
        }
        one, two = self.jobs
        self.ran_on = {one: self.made_for[two], two: self.made_for[one]}

    def start(self, job):
        ranks = frozenset(self.record(self.ran_on[job]).lease.ranks)
        changes = {"ranks": ranks, "ran_on": ranks, "t_start": self.sim.now}
        self.lead.change(job, state=JobState.RUN, **changes)

    def record(self, burst):
        return self.sim.records.bursts[burst]

    def booked(self):
        """On which burst each job is, by the accounts."""
        records = self.sim.records
        entries = records.entries.values()
        now = {job: row.burst for row in entries for job, _ in row.use.jobs}
        rows = (*entries, *records.settled.values())
        paid = {s.job: row.burst for row in rows for s in row.shares if s.node_seconds}
        return {**now, **paid}

    def reported(self):
        snapshot = self.sim.engine.snapshot
        past = PastBursts(snapshot.records, snapshot.world, (), 0.0, self.sim.now)
        return {row["id"]: row["bursts"] for row in past.jobs()}

    def explained(self, job):
        return [burst["id"] for burst in self.sim.explained(job)["bursts"]]

    def is_told_by_ranks(self):
        f58 = {format_f58(job): [burst] for job, burst in self.ran_on.items()}
        assert self.booked() == self.ran_on
        assert self.reported() == f58
        for job, burst in self.ran_on.items():
            assert self.explained(job) == [burst]


def test_jobs_that_start_on_each_others_bursts_are_booked_where_they_ran():
    crossed = Crossed()
    for job in crossed.jobs:
        crossed.start(job)
    crossed.sim.tick(5)
    for job, burst in crossed.ran_on.items():
        assert crossed.record(burst).started == {job}
    crossed.is_told_by_ranks()

    for job in crossed.jobs:
        crossed.lead.finish(job)
    crossed.sim.until(lambda: all(not b.live for b in crossed.sim.bursts), ticks=90)
    crossed.is_told_by_ranks()
    for job, burst in crossed.ran_on.items():
        sums = crossed.record(burst).sums
        assert [each for each, _ in sums.recent] == [job]
        assert sums.results == {"completed": 1}


def test_one_that_also_ended_before_anybody_looked_is_on_the_burst_where_it_ran():
    crossed = Crossed()
    one = crossed.jobs[0]
    crossed.start(one)
    crossed.lead.finish(one)
    crossed.sim.tick(5)
    burst = crossed.record(crossed.ran_on[one])
    assert [each for each, _ in burst.sums.recent] == [one]
    # Once: it is shown as ended for a minute.
    assert burst.sums.results == {"completed": 1}
    assert one not in crossed.record(crossed.made_for[one]).jobs


def after_a_job():
    """A burst on which a job has just ended."""
    sim = Sim(deadlines=PRICED)
    sim.tick(2)
    first = sim.run_job(whole(4))
    sim.lead.finish(first)
    return sim


def start(sim, job, nodes=4):
    """Flux starts a job by itself on the first nodes of the burst."""
    ranks = frozenset(sim.burst.lease.ranks[:nodes])
    sim.lead.change(job, state=JobState.RUN, t_start=sim.now, ranks=ranks, ran_on=ranks)


def test_a_job_that_flux_starts_on_an_idle_burst_by_itself_is_a_job_of_it():
    sim = after_a_job()
    other = sim.lead.submit(whole(2), queue="other")
    start(sim, other, nodes=2)
    sim.tick(3)
    assert sim.burst.jobs == {other}
    assert sim.burst.started == {other}
    (entry,) = sim.records.entries.values()
    assert other in {share.job for share in entry.shares}


def test_a_job_that_starts_as_its_burst_is_drained_is_a_job_of_it():
    sim = after_a_job()
    late = sim.lead.submit(whole(4), urgency=0)
    sim.until(sim.in_state(State.DRAIN), ticks=90)
    start(sim, late)
    sim.tick(3)
    assert sim.burst.state is State.DRAIN
    assert sim.burst.started == {late}
    sim.lead.finish(late)
    sim.until(sim.in_state(State.INACTIVE))
    assert sim.burst.sums.results == {"completed": 2}


def test_a_job_that_is_not_burstable_keeps_a_burst_from_being_idle():
    """The lead does not show it, but that its nodes are in use."""
    sim = after_a_job()
    sim.until(lambda: sim.burst.unused_since is not None)
    plain = sim.lead.submit(whole(4))
    sim.lead.unmarked.add(plain)
    start(sim, plain)
    sim.tick(60)
    assert sim.burst.state is State.ONLINE
    assert sim.burst.unused_since is None
    assert not sim.burst.jobs
