# SPDX-License-Identifier: MIT
"""Contract of ranks: online, drained, allocated, free, and the death of a follower."""

from __future__ import annotations

from contextlib import closing

import pytest

from burst.errors import LeadError
from burst.model.lead import JobState
from burst.model.shape import Shape
from tests.contract.base import WithInstance
from tests.contract.instance import (
    BURST_SHAPE,
    HOSTS,
    OWN_SHAPE,
    SLEEP,
    SLOT_0,
    Instance,
    rank_of,
)
from tests.contract.watching import Watch

RANK = rank_of("burst-0-0")


class RanksContract(WithInstance):
    @pytest.fixture
    def follower(self, instance: Instance, watch: Watch) -> str:
        instance.start_follower("burst-0-0")
        watch.online(RANK)
        return "burst-0-0"

    def test_at_first_only_the_lead_is_online(self, watch: Watch) -> None:
        view = watch.lead.observe()
        assert view.online == {0}
        assert not view.torpid
        assert not view.drained
        assert not view.excluded
        assert not view.allocated
        shapes = (OWN_SHAPE,) * 2 + (BURST_SHAPE,) * 8
        assert view.free == dict(enumerate(shapes))

    def test_followers_come_and_go(self, instance: Instance, watch: Watch) -> None:
        for host in ("lead-1", *SLOT_0):
            instance.start_follower(host)
        assert watch.online(1, 2, 3, 4, 5).online == {0, 1, 2, 3, 4, 5}
        instance.stop_follower("burst-0-1")
        instance.kill_follower("burst-0-2")
        watch.until(lambda view: view.online == {0, 1, 2, 5}, "two gone")
        instance.start_follower("burst-0-1")
        watch.online(3)

    def test_online_and_offline_wake(self, instance: Instance, watch: Watch) -> None:
        with watch.woken_by("online"):
            instance.start_follower("burst-0-0")
        watch.online(RANK)
        with watch.woken_by("offline"):
            instance.kill_follower("burst-0-0")

    def test_drain_keeps_new_jobs_away(
        self, instance: Instance, watch: Watch, follower: str
    ) -> None:
        watch.lead.drain(frozenset({RANK}), "burst: idle")
        assert watch.lead.observe().drained == {RANK: "burst: idle"}
        job = instance.submit(slots=1, cores=4)
        watch.state(job, JobState.SCHED)
        watch.settle()
        view = watch.lead.observe()
        assert view.jobs[job].state is JobState.SCHED
        assert not view.allocated
        watch.lead.undrain(frozenset({RANK}))
        assert not watch.lead.observe().drained
        assert watch.state(job, JobState.INACTIVE).result == "completed"

    def test_drain_wakes(self, watch: Watch, follower: str) -> None:
        with watch.woken_by("drain"):
            watch.lead.drain(frozenset({RANK}), "burst: idle")
        with watch.woken_by("undrain"):
            watch.lead.undrain(frozenset({RANK}))

    def test_drain_keeps_the_reason_of_others(
        self, instance: Instance, watch: Watch
    ) -> None:
        instance.drain("burst-0-1", "bad memory")
        watch.lead.drain(frozenset({RANK, RANK + 1}), "burst: idle")
        drained = {RANK: "burst: idle", RANK + 1: "bad memory"}
        assert watch.lead.observe().drained == drained
        watch.lead.drain(frozenset({RANK}), "burst: again")
        assert watch.lead.observe().drained == drained

    def test_undrain_passes_over_what_is_not_drained(self, watch: Watch) -> None:
        watch.lead.drain(frozenset({RANK}), "burst: idle")
        watch.lead.undrain(frozenset({RANK, RANK + 1}))
        watch.lead.undrain(frozenset({RANK}))
        assert not watch.lead.observe().drained

    def test_no_ranks_is_nothing_to_do(self, watch: Watch) -> None:
        watch.lead.drain(frozenset(), "burst: idle")
        watch.lead.undrain(frozenset())
        assert not watch.lead.observe().drained

    def test_ranks_that_do_not_exist_are_refused(self, watch: Watch) -> None:
        for order in (
            lambda ranks: watch.lead.drain(ranks, "burst: idle"),
            watch.lead.undrain,
        ):
            with pytest.raises(LeadError):
                order(frozenset({len(HOSTS)}))

    def test_drain_survives_a_restart_of_the_follower(
        self, instance: Instance, watch: Watch, follower: str
    ) -> None:
        watch.lead.drain(frozenset({RANK}), "burst: idle")
        instance.stop_follower(follower)
        watch.until(lambda view: RANK not in view.online, "offline")
        instance.start_follower(follower)
        assert watch.online(RANK).drained == {RANK: "burst: idle"}

    def test_a_running_job_allocates_and_frees(
        self, instance: Instance, watch: Watch, follower: str
    ) -> None:
        job = instance.submit(slots=1, cores=3, gpus=1, command=SLEEP)
        assert watch.state(job, JobState.RUN).ranks == {RANK}
        view = watch.lead.observe()
        assert view.allocated == {RANK}
        assert view.free[RANK] == Shape(1, 0)
        assert view.free[RANK + 1] == BURST_SHAPE
        instance.cancel(job)
        view = watch.until(lambda view: not view.allocated, "free again")
        assert view.free[RANK] == BURST_SHAPE

    def test_jobs_that_may_not_burst_allocate_too(
        self, instance: Instance, watch: Watch, follower: str
    ) -> None:
        job = instance.submit(slots=1, cores=4, burstable=False, command=SLEEP)
        watch.until(lambda view: view.allocated == {RANK}, "allocated")
        instance.cancel(job)

    def test_a_job_on_a_drained_rank_goes_on(
        self, instance: Instance, watch: Watch, follower: str
    ) -> None:
        job = instance.submit(slots=1, cores=4, command=SLEEP)
        watch.job(job, lambda view: view.t_start > 0, "started")
        watch.lead.drain(frozenset({RANK}), "burst: idle")
        watch.settle()
        view = watch.lead.observe()
        assert view.drained == {RANK: "burst: idle"}
        assert view.allocated == {RANK}
        assert view.jobs[job].state is JobState.RUN
        instance.cancel(job)
        watch.until(lambda view: not view.allocated, "drained")

    @pytest.mark.parametrize("end", ["stop", "kill"])
    def test_a_follower_that_ends_fails_its_job_and_no_other(
        self, end: str, instance: Instance, watch: Watch, follower: str
    ) -> None:
        """In order too, as where its pod is evicted: it waits for no job."""
        instance.start_follower("burst-0-1")
        watch.online(RANK + 1)
        jobs = [instance.submit(slots=1, cores=4, command=SLEEP) for _ in range(2)]
        began = [watch.job(j, lambda v: v.t_start > 0, "started") for j in jobs]
        (lost,) = (view.id for view in began if RANK in view.ranks)
        (other,) = (job for job in jobs if job != lost)
        ends = instance.stop_follower if end == "stop" else instance.kill_follower
        ends(follower)
        assert watch.state(lost, JobState.INACTIVE).result == "failed"
        view = watch.until(
            lambda view: RANK not in view.online and view.allocated == {RANK + 1},
            "offline and without an allocation",
        )
        assert view.jobs[other].state is JobState.RUN

    def test_a_job_over_several_followers(
        self, instance: Instance, watch: Watch
    ) -> None:
        job = instance.submit(nodes=2, slots=2, cores=4, command=("echo", "joined"))
        watch.state(job, JobState.SCHED)
        for host in SLOT_0[:2]:
            instance.start_follower(host)
        assert watch.state(job, JobState.INACTIVE).result == "completed"
        assert instance.output(job).split() == ["joined", "joined"]

    def test_a_second_client_sees_the_same_ranks(
        self, instance: Instance, watch: Watch, follower: str
    ) -> None:
        watch.lead.drain(frozenset({RANK}), "burst: idle")
        with closing(instance.lead()) as lead:
            second = Watch(lead)
            view = second.online(RANK)
            assert view.drained == {RANK: "burst: idle"}
