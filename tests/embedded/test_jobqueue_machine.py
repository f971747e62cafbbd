# SPDX-License-Identifier: MIT
"""Whatever is done to the queue in whatever order, these things hold."""

from __future__ import annotations

from burst_embedded.job import Job
from burst_embedded.jobqueue import JobQueue
from burst_embedded.pool import ResourcePool
from burst_embedded.wire import Ended
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from burst.model.lead import JobState
from burst.model.shape import Shape
from tests.embedded.jobspecs import Wanted, build_jobspec
from tests.embedded.nodes import resources

RANKS = range(4)
ranks = st.sampled_from(RANKS)
urgencies = st.sampled_from([0, 1, 16, 31])
wanted = st.one_of(
    st.builds(Wanted, slots=st.integers(1, 9), cores=st.integers(1, 3)),
    st.builds(Wanted, nodes=st.integers(1, 5)),
)


class QueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1_800_000_000.0
        self.queue = JobQueue(
            ResourcePool(resources(*[(Shape(3), [])] * len(RANKS))),
            lambda: self.now,
        )
        self.queue.rank_online(0)

    def pick(self, data: st.DataObject, *states: JobState) -> Job | None:
        jobs = [job for job in self.queue.jobs.values() if job.state in states]
        return data.draw(st.sampled_from(jobs)) if jobs else None

    @rule(wanted=wanted, urgency=urgencies, limit=st.sampled_from([0.0, 3.0]))
    def submit(self, wanted: Wanted, urgency: int, limit: float) -> None:
        jobspec = build_jobspec(["true"], wanted, {"duration": limit})
        self.queue.submit(jobspec, urgency)

    @rule()
    def schedule(self) -> None:
        self.queue.schedule()

    @rule(seconds=st.sampled_from([0.5, 2.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.queue.expire()

    @rule(data=st.data(), urgency=urgencies)
    def urge(self, data: st.DataObject, urgency: int) -> None:
        job = self.pick(data, JobState.SCHED)
        if job:
            self.queue.set_urgency(job.id, urgency)

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        job = self.pick(data, JobState.SCHED, JobState.RUN, JobState.CLEANUP)
        if job:
            self.queue.raise_exception(job.id, "cancel", "")

    @rule(data=st.data(), status=st.sampled_from([0, 256, 9]))
    def end_task(self, data: st.DataObject, status: int) -> None:
        job = self.pick(data, JobState.RUN, JobState.CLEANUP)
        if job:
            task = data.draw(st.sampled_from(sorted(job.running)))
            self.queue.take(Ended(job.id, task, status))

    @rule(rank=ranks)
    def join(self, rank: int) -> None:
        self.queue.rank_online(rank)

    @rule(rank=ranks)
    def lose(self, rank: int) -> None:
        self.queue.rank_lost(rank)

    @rule(rank=ranks)
    def drain(self, rank: int) -> None:
        self.queue.drain(str(rank), "why")

    @rule(rank=ranks)
    def undrain(self, rank: int) -> None:
        self.queue.undrain(str(rank))

    @invariant()
    def nothing_is_allocated_twice(self) -> None:
        taken: set[tuple[int, int]] = set()
        for job in self.queue.jobs.values():
            if not job.running or not job.R:
                continue
            for group in job.R.groups:
                mine = {(int(group.rank), core) for core in group.ids("core")}
                assert not taken & mine
                taken |= mine
        assert {rank for rank, _ in taken} == self.queue.pool.allocated()

    @invariant()
    def allocation_tasks_and_state_agree(self) -> None:
        for job in self.queue.jobs.values():
            active = job.state in (JobState.RUN, JobState.CLEANUP)
            assert bool(job.running) is active
            assert job.R or not active
            assert bool(job.result) is (job.state is JobState.INACTIVE)

    @invariant()
    def tasks_are_only_on_ranks_that_are_online(self) -> None:
        for job in self.queue.jobs.values():
            assert set(job.running.values()) <= self.queue.pool.online

    @invariant()
    def the_line_is_the_waiting_jobs_in_order(self) -> None:
        waiting = [
            job
            for job in self.queue.jobs.values()
            if job.state is JobState.SCHED and job.urgency
        ]
        waiting.sort(key=lambda job: (-job.priority, job.id))
        assert [job_id for _, job_id in self.queue._line] == [j.id for j in waiting]

    @rule()
    def after_scheduling_the_first_cannot_start(self) -> None:
        self.queue.schedule()
        if self.queue._line:
            job = self.queue.jobs[self.queue._line[0][1]]
            assert self.queue.pool.allocate(job.request) is None

    @invariant()
    def events_tell_a_life_that_flux_could_have_told(self) -> None:
        for job in self.queue.jobs.values():
            names = [event.name for event in job.events]
            assert names[:4] == ["submit", "validate", "depend", "priority"]
            assert names.count("alloc") == names.count("start") <= 1
            assert ("clean" in names) is (job.state is JobState.INACTIVE)
            assert ("alloc" in names) == bool(job.time_of("start"))
            if job.state is JobState.INACTIVE and job.time_of("start"):
                last = ["finish", "release", "free", "clean"]
                assert names[-4:] == last

    def teardown(self) -> None:
        """Whatever happened, everything can be ended and all is free again."""
        for job in list(self.queue.jobs.values()):
            if job.state is not JobState.INACTIVE:
                self.queue.raise_exception(job.id, "cancel", "")
            for task in list(job.running):
                self.queue.take(Ended(job.id, task, 15))
        assert not self.queue.pool.allocated()
        assert self.queue.next_deadline() == float("inf")


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(
    max_examples=50, stateful_step_count=40, deadline=None
)
