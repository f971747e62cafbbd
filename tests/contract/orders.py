# SPDX-License-Identifier: MIT
"""Contract of what the engine does to jobs: hold, release, tell, fail."""

from __future__ import annotations

from contextlib import closing
from functools import partial

import pytest

from burst.errors import LeadError
from burst.lead import Lead, NewJob
from burst.model.job_end import JobEnd, end_of
from burst.model.jobid import JobId
from burst.model.lead import JobState, LeadView
from tests.contract.base import WithInstance
from tests.contract.instance import SLEEP, SLOT_0, SLOT_1, Instance
from tests.contract.submitting import ids, jobspec, submitter
from tests.contract.watching import Watch

UNKNOWN = JobId(12345)
FOUR = frozenset({2, 3, 4, 5})
SIXTH = frozenset({6})


class OrdersContract(WithInstance):
    @pytest.fixture
    def ended(self, instance: Instance, watch: Watch) -> JobId:
        job = instance.submit(slots=1)
        watch.state(job, JobState.INACTIVE)
        return job

    def test_hold_and_release_are_seen_at_once(
        self, instance: Instance, watch: Watch
    ) -> None:
        jobs = [instance.submit(nodes=4) for _ in range(3)]
        for job in jobs:
            watch.state(job, JobState.SCHED)
        assert not watch.lead.hold(jobs)
        for job in jobs:
            view = watch.job(job, lambda view: view.urgency == 0, "held")
            assert view.state is JobState.SCHED
        assert not watch.lead.release({jobs[0]: 16, jobs[1]: 31})
        watch.job(jobs[0], lambda view: view.urgency == 16, "released with 16")
        watch.job(jobs[1], lambda view: view.urgency == 31, "released with 31")
        assert watch.lead.observe().jobs[jobs[2]].urgency == 0
        for urgency in (9, 0, 16, 0):
            if urgency:
                watch.lead.release({jobs[2]: urgency})
            else:
                watch.lead.hold([jobs[2]])
            view = watch.lead.observe().jobs[jobs[2]]
            assert (view.urgency, view.priority) == (urgency, urgency)
            assert view.state is JobState.SCHED

    def test_a_jobspec_is_told_whole(self, instance: Instance, watch: Watch) -> None:
        environment = {"COLOR": "red", "PATH": "/usr/bin:/bin"}
        command = ("echo", "one")
        job = instance.submit(
            nodes=4, command=command, attributes={"environment": environment}
        )
        watch.state(job, JobState.SCHED)
        spec = watch.lead.jobspec(job)
        assert spec["attributes"]["system"]["environment"] == environment
        (task,) = spec["tasks"]
        assert tuple(task["command"]) == command
        with pytest.raises(LeadError):
            watch.lead.jobspec(UNKNOWN)

    def test_what_happened_to_a_job_is_told_after_its_end(
        self, instance: Instance, watch: Watch
    ) -> None:
        well = instance.submit(slots=1)
        failed = instance.submit(slots=1, urgency=0)
        watch.state(failed, JobState.SCHED)
        watch.lead.fail_job(failed, "no offer has them")
        for job in (well, failed):
            watch.until(partial(_has_ended, watch.lead, job), "the end of a job")
        names = [event.name for event in watch.lead.events(well)]
        assert names[0] == "submit"
        assert names[-1] == "clean"
        assert end_of(watch.lead.events(well)) == JobEnd("completed")
        assert end_of(watch.lead.events(failed)) == JobEnd(
            "failed", "burst", "no offer has them"
        )
        with pytest.raises(LeadError):
            watch.lead.events(UNKNOWN)

    def test_a_held_job_blocks_no_other_and_starts_once_it_is_released(
        self, instance: Instance, watch: Watch
    ) -> None:
        large = instance.submit(nodes=4)
        watch.state(large, JobState.SCHED)
        watch.lead.hold([large])
        held = instance.submit(slots=1, urgency=0)
        watch.state(held, JobState.SCHED)
        assert instance.output(instance.submit(command=("echo", "free"))) == "free\n"
        assert watch.lead.observe().jobs[held].state is JobState.SCHED
        assert not watch.lead.release({held: 16})
        assert watch.state(held, JobState.INACTIVE).result == "completed"

    def test_a_confined_job_starts_on_own_nodes_and_those_that_it_may_have(
        self, instance: Instance, watch: Watch
    ) -> None:
        """Not on other lent nodes that are up and free, whatever it asks for itself."""
        on = {"constraints": {"properties": ["burst"]}}
        job = instance.submit(nodes=1, urgency=0, attributes=on)
        asked = watch.state(job, JobState.SCHED).request
        assert not watch.lead.confine({job: SIXTH})
        for host in SLOT_0[0], SLOT_1[0]:
            instance.start_follower(host)
        watch.until(lambda view: {2, 6} <= view.online, "two followers")
        assert not watch.lead.confine({job: frozenset({3, 4})})
        view = watch.lead.observe().jobs[job]
        assert (view.confined_to, view.request) == (frozenset({3, 4}), asked)
        assert view.state is JobState.SCHED
        watch.lead.release({job: 16})
        # So does the scheduler know of it, which would have started it.
        instance.output(instance.submit(slots=1, urgency=31))
        assert watch.lead.observe().jobs[job].state is JobState.SCHED
        assert not watch.lead.confine({job: SIXTH})
        done = watch.state(job, JobState.INACTIVE)
        assert (done.result, done.confined_to) == ("completed", SIXTH)
        assert watch.lead.events(job)[0].name == "submit"
        assert done.ran_on == SIXTH

    def test_a_job_that_is_confined_to_none_runs_on_own_nodes(
        self, instance: Instance, watch: Watch
    ) -> None:
        job = instance.submit(slots=1, urgency=0)
        watch.state(job, JobState.SCHED)
        assert watch.lead.observe().jobs[job].confined_to is None
        assert not watch.lead.confine({job: frozenset()})
        watch.lead.release({job: 16})
        done = watch.state(job, JobState.INACTIVE)
        assert (done.result, done.confined_to) == ("completed", frozenset())

    def test_a_job_that_has_started_can_be_confined_and_keeps_its_nodes(
        self, instance: Instance, watch: Watch
    ) -> None:
        job = instance.submit(slots=1, command=SLEEP)
        ranks = watch.state(job, JobState.RUN).ranks
        assert not watch.lead.confine({job: SIXTH})
        view = watch.job(job, lambda view: view.confined_to == SIXTH, "confined")
        assert (view.state, view.ranks) == (JobState.RUN, ranks)
        instance.cancel(job)

    def test_what_is_gone_is_a_failure_of_that_job_alone(
        self, instance: Instance, watch: Watch, ended: JobId
    ) -> None:
        job = instance.submit(nodes=4)
        watch.state(job, JobState.SCHED)
        failures = watch.lead.hold([ended, job, UNKNOWN])
        assert set(failures) == {ended, UNKNOWN}
        assert all(failures.values())
        watch.job(job, lambda view: view.urgency == 0, "held")
        failures = watch.lead.confine(dict.fromkeys((ended, job, UNKNOWN), FOUR))
        assert set(failures) == {ended, UNKNOWN}
        assert watch.lead.observe().jobs[job].confined_to == FOUR
        failures = watch.lead.release({ended: 16, job: 16, UNKNOWN: 16})
        assert set(failures) == {ended, UNKNOWN}
        failures = watch.lead.write_memos(
            {ended: {"a": 1}, job: {"a": 1}, UNKNOWN: {"a": 1}}
        )
        assert set(failures) == {ended, UNKNOWN}
        assert instance.memo(job) == {"a": 1}

    def test_tell_merges_and_none_deletes(
        self, instance: Instance, watch: Watch
    ) -> None:
        job = instance.submit(nodes=4)
        watch.state(job, JobState.SCHED)
        assert not watch.lead.write_memos({job: {"state": "held", "urgency": 16}})
        assert instance.memo(job) == {"state": "held", "urgency": 16}
        assert not watch.lead.write_memos(
            {job: {"state": "released", "burst": "burst-0-1"}}
        )
        assert not watch.lead.write_memos({job: {"urgency": None}})
        assert instance.memo(job) == {"state": "released", "burst": "burst-0-1"}

    def test_hundreds_at_once(self, instance: Instance, watch: Watch) -> None:
        held = NewJob(jobspec("held", "true"), urgency=0)
        jobs = ids(submitter(watch.lead).submit_jobs([held] * 300))
        view = watch.until(lambda view: set(jobs) <= set(view.jobs), "300 jobs")
        assert {view.jobs[job].urgency for job in jobs} == {0}
        assert not watch.lead.release(dict.fromkeys(jobs, 5))
        assert not watch.lead.hold(jobs)
        assert not watch.lead.write_memos({job: {"state": "held"} for job in jobs})
        watch.until(
            lambda view: all(view.jobs[job].urgency == 0 for job in jobs), "all held"
        )
        assert instance.memo(jobs[-1]) == {"state": "held"}

    def test_fail_ends_a_job_that_waits_or_runs_with_the_reason(
        self, instance: Instance, watch: Watch
    ) -> None:
        runs = instance.submit(slots=1, command=SLEEP)
        watch.job(runs, lambda view: view.t_start > 0, "started")
        waits = instance.submit(nodes=4)
        watch.state(waits, JobState.SCHED)
        for job in (waits, runs):
            watch.lead.fail_job(job, "no offer could ever serve it")
            assert watch.state(job, JobState.INACTIVE).result == "failed"
            assert instance.exception(job) == ("burst", "no offer could ever serve it")

    def test_cancel_ends_a_held_job_with_the_reason(
        self, instance: Instance, watch: Watch
    ) -> None:
        waits = instance.submit(nodes=4, urgency=0)
        watch.state(waits, JobState.SCHED)
        watch.lead.cancel_job(waits, "night has ended")
        assert watch.state(waits, JobState.INACTIVE).result == "canceled"
        assert instance.exception(waits) == ("cancel", "night has ended")

    def test_what_is_gone_can_be_neither_failed_nor_finished(
        self, watch: Watch, ended: JobId
    ) -> None:
        for job in (ended, UNKNOWN):
            with pytest.raises(LeadError):
                watch.lead.fail_job(job, "too late")
            with pytest.raises(LeadError):
                watch.lead.cancel_job(job, "too late")
            with pytest.raises(LeadError):
                watch.lead.finish_job(job, 0, "")

    def test_finish_gives_held_jobs_the_result_of_a_run_elsewhere(
        self, instance: Instance, watch: Watch
    ) -> None:
        for status, result, note in (
            (0, "completed", ""),
            (3, "failed", "exit status 3"),
        ):
            job = instance.submit(nodes=4)
            watch.state(job, JobState.SCHED)
            watch.lead.hold([job])
            assert watch.lead.finish_job(job, status, "some\nwords\n")
            assert watch.state(job, JobState.INACTIVE).result == result
            assert instance.output(job) == "some\nwords\n"
            watch.until(partial(_has_ended, watch.lead, job), "its last event")
            assert end_of(watch.lead.events(job)) == JobEnd(result, note=note)

    def test_finish_of_a_job_that_may_start_here_changes_nothing(
        self, instance: Instance, watch: Watch
    ) -> None:
        waits = instance.submit(nodes=4)
        watch.state(waits, JobState.SCHED)
        runs = instance.submit(slots=1, command=SLEEP, urgency=31)
        watch.job(runs, lambda view: view.t_start > 0, "started")
        for job, state in ((waits, JobState.SCHED), (runs, JobState.RUN)):
            assert not watch.lead.finish_job(job, 0, "")
            assert watch.lead.observe().jobs[job].state is state
            watch.lead.fail_job(job, "ran elsewhere")
            assert watch.state(job, JobState.INACTIVE).result == "failed"

    def test_orders_need_no_listening_and_may_be_none(self, instance: Instance) -> None:
        job = instance.submit(nodes=4)
        with closing(instance.lead()) as second:
            assert not second.hold([])
            assert not second.release({})
            assert not second.write_memos({})
            assert not second.confine({})
            assert not second.hold([job])
            assert not second.write_memos({job: {"state": "held"}})
        assert instance.memo(job) == {"state": "held"}


def _has_ended(lead: Lead, job: JobId, _: LeadView) -> bool:
    return end_of(lead.events(job)) is not None
