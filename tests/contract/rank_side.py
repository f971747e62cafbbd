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

    def test_what_happens_to_ranks_wakes(
        self, instance: Instance, watch: Watch
    ) -> None:
        with watch.woken_by("online"):
            instance.start_follower("burst-0-0")
        watch.online(RANK)
        with watch.woken_by("drain"):
            watch.lead.drain(frozenset({RANK}), "burst: idle")
        with watch.woken_by("undrain"):
            watch.lead.undrain(frozenset({RANK}))
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
        # It counts as allocated until the scheduler is known to have heard of it.
        view = watch.until(lambda view: not view.allocated, "the drain heard")
        assert view.jobs[job].state is JobState.SCHED
        watch.lead.undrain(frozenset({RANK}))
        assert not watch.lead.observe().drained
        assert watch.state(job, JobState.INACTIVE).result == "completed"

    def test_drains_of_others_are_kept_and_what_is_not_drained_is_passed_over(
        self, instance: Instance, watch: Watch
    ) -> None:
        instance.drain("burst-0-1", "bad memory")
        watch.lead.drain(frozenset(), "burst: none")
        watch.lead.drain(frozenset({RANK, RANK + 1}), "burst: idle")
        drained = {RANK: "burst: idle", RANK + 1: "bad memory"}
        assert watch.lead.observe().drained == drained
        watch.lead.drain(frozenset({RANK}), "burst: again")
        watch.lead.undrain(frozenset())
        for order in (
            lambda ranks: watch.lead.drain(ranks, "burst: idle"),
            watch.lead.undrain,
        ):
            with pytest.raises(LeadError):
                order(frozenset({len(HOSTS)}))  # there is no such rank
        assert watch.lead.observe().drained == drained
        for ranks in ({RANK, RANK + 1, RANK + 2}, {RANK}):
            watch.lead.undrain(frozenset(ranks))
            assert not watch.lead.observe().drained

    def test_a_drain_without_a_reason_gets_one(
        self, instance: Instance, watch: Watch
    ) -> None:
        instance.drain("burst-0-0", "")
        assert watch.lead.observe().drained == {RANK: ""}
        watch.lead.drain(frozenset({RANK}), "burst: idle")
        assert watch.lead.observe().drained == {RANK: "burst: idle"}

    def test_a_drain_is_seen_by_each_client_and_survives_the_follower(
        self, instance: Instance, watch: Watch, follower: str
    ) -> None:
        watch.lead.drain(frozenset({RANK}), "burst: idle")
        with closing(instance.lead()) as second:
            assert Watch(second).online(RANK).drained == {RANK: "burst: idle"}
        instance.stop_follower(follower)
        watch.until(lambda view: RANK not in view.online, "offline")
        instance.start_follower(follower)
        assert watch.online(RANK).drained == {RANK: "burst: idle"}

    def test_a_running_job_allocates_and_frees_also_where_it_is_drained(
        self, instance: Instance, watch: Watch, follower: str
    ) -> None:
        job = instance.submit(slots=1, cores=3, gpus=1, command=SLEEP)
        runs = watch.job(job, lambda view: view.t_start > 0, "started")
        assert runs.ranks == {RANK}
        view = watch.lead.observe()
        assert view.allocated == {RANK}
        assert view.free[RANK] == Shape(1, 0)
        assert view.free[RANK + 1] == BURST_SHAPE
        watch.lead.drain(frozenset({RANK}), "burst: idle")
        watch.settle()
        view = watch.lead.observe()
        assert view.drained == {RANK: "burst: idle"}
        assert view.allocated == {RANK}
        assert view.jobs[job].state is JobState.RUN
        instance.cancel(job)
        watch.until(lambda view: not view.allocated, "free again")
        watch.lead.undrain(frozenset({RANK}))
        view = watch.until(lambda view: not view.drained, "undrained")
        assert view.free[RANK] == BURST_SHAPE
        # Jobs that may not burst allocate, too.
        job = instance.submit(slots=1, cores=4, burstable=False, command=SLEEP)
        watch.until(lambda view: view.allocated == {RANK}, "allocated")
        instance.cancel(job)

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
        ended = watch.state(lost, JobState.INACTIVE)
        assert ended.result == "failed"
        # By this a job is known that is to run again. Flux 0.88 may lose the exception
        # where the broker's connector ends before the shell has raised it.
        _, note = instance.exception(lost)
        assert ended.lost_node or (end == "stop" and not note), note
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
