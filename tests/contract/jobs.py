# SPDX-License-Identifier: MIT
"""Contract of the job side of `Lead.listen` and `Lead.observe`."""

from __future__ import annotations

import os
import time
from contextlib import closing

from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.request import BurstPreferences, ResourceRequest
from tests.contract.base import WithInstance
from tests.contract.instance import SLEEP, Instance
from tests.contract.watching import Watch


class JobsContract(WithInstance):
    def test_a_pending_job_is_told_in_full(
        self, instance: Instance, watch: Watch
    ) -> None:
        before = time.time()
        job = instance.submit(
            nodes=2,
            slots=2,
            cores=3,
            gpus=1,
            urgency=20,
            provider="local",
            attributes={"duration": 90.0},
        )
        view = watch.state(job, JobState.SCHED)
        assert view.id == job
        assert view.userid == os.getuid()
        assert view.urgency == 20
        assert view.priority == 20
        assert view.request == ResourceRequest(
            nodes=2, slots=2, cores_per_slot=3, gpus_per_slot=1
        )
        assert view.unreadable == ""
        assert view.preferences == BurstPreferences(provider="local")
        assert view.duration == 90.0
        assert view.queue == ""
        assert view.ranks == frozenset()
        assert before - 1 <= view.t_submit <= time.time() + 1
        assert (view.t_start, view.t_finish, view.result) == (0.0, 0.0, "")

    def test_burstable_jobs_alone_are_told_and_one_that_cannot_be_read_with_why(
        self, instance: Instance, watch: Watch
    ) -> None:
        others = {
            instance.submit(nodes=4, burstable=False),
            instance.submit(nodes=4, burstable=False, attributes={"burstable": False}),
        }
        odd = instance.submit(nodes=4, attributes={"burst": "nonsense"})
        # Slots without nodes stay without nodes.
        job = instance.submit(slots=9)
        request = watch.state(job, JobState.SCHED).request
        assert request == ResourceRequest(nodes=0, slots=9, cores_per_slot=1)
        view = watch.state(odd, JobState.SCHED)
        assert view.request is None
        assert "burst" in view.unreadable
        assert not others & set(watch.lead.observe().jobs)

    def test_jobs_on_record_are_told_though_they_are_not_burstable(
        self, instance: Instance
    ) -> None:
        known = instance.submit(nodes=4, burstable=False, urgency=0)
        other = instance.submit(nodes=4, burstable=False)
        burstable = instance.submit(nodes=4)
        with closing(instance.lead()) as lead:
            watch = Watch(lead, [known, burstable, JobId(12345)])
            assert lead.observe().jobs.keys() == {known, burstable}, "at once"
            view = watch.state(known, JobState.SCHED)
            assert (view.burstable, view.urgency) == (False, 0)
            assert watch.state(burstable, JobState.SCHED).burstable
            assert not lead.release({known: 7})
            watch.job(known, lambda view: view.urgency == 7, "released")
            assert lead.observe().jobs.keys() == {known, burstable}
            instance.cancel(known)
            watch.state(known, JobState.INACTIVE)
            assert other not in lead.observe().jobs

    def test_a_job_on_record_that_ended_before_is_told_with_its_times(
        self, instance: Instance, watch: Watch
    ) -> None:
        jobs = [instance.submit(slots=1, command=SLEEP), instance.submit(nodes=4)]
        watch.job(jobs[0], lambda view: view.t_start > 0, "started")
        watch.state(jobs[1], JobState.SCHED)
        with instance.store_late(), closing(instance.lead()) as lead:
            for job in jobs:
                instance.cancel(job)
            before = {job: watch.state(job, JobState.INACTIVE) for job in jobs}
            lead.listen(lambda: None, lambda: [*jobs, JobId(12345)])
            assert lead.observe().jobs == before
        assert before[jobs[0]].t_start > 0

    def test_where_and_when_jobs_run_and_how_they_end_is_told(
        self, instance: Instance, watch: Watch
    ) -> None:
        waits = instance.submit(nodes=4)
        watch.state(waits, JobState.SCHED)
        instance.cancel(waits)
        view = watch.state(waits, JobState.INACTIVE)
        assert (view.result, view.t_start) == ("canceled", 0.0)

        runs = instance.submit(slots=1, command=SLEEP)
        late = instance.submit(slots=1, command=SLEEP, attributes={"duration": 0.5})
        view = watch.job(runs, lambda view: view.t_start > 0, "started")
        assert view.state is JobState.RUN
        assert view.ranks == {0}
        assert view.t_submit <= view.t_start <= time.time() + 1
        assert watch.state(late, JobState.INACTIVE).result == "timeout"
        instance.cancel(runs)
        assert watch.state(runs, JobState.INACTIVE).result == "canceled"

        fails = instance.submit(slots=1, command=("false",))
        assert watch.state(fails, JobState.INACTIVE).result == "failed"
        job = instance.submit(slots=2, command=("echo", "here"))
        view = watch.state(job, JobState.INACTIVE)
        assert view.result == "completed"
        assert view.ranks == frozenset()
        assert view.ran_on == {0}
        assert 0 < view.t_submit <= view.t_start <= view.t_finish
        assert instance.output(job).split() == ["here", "here"]

    def test_submit_cancel_and_urgency_wake_and_are_seen(
        self, instance: Instance, watch: Watch
    ) -> None:
        job = JobId(0)
        with watch.woken_by("submit"):
            job = instance.submit(nodes=4)
        watch.state(job, JobState.SCHED)
        with watch.woken_by("urgency"):
            instance.set_urgency(job, 7)
        view = watch.job(job, lambda view: view.urgency == 7, "with urgency 7")
        watch.job(job, lambda view: view.priority == 7, "with priority 7")
        assert view.state is JobState.SCHED
        with watch.woken_by("cancel"):
            instance.cancel(job)
