# SPDX-License-Identifier: MIT
"""What each state of a job, and each reason of a pending one, is for its burst."""

from __future__ import annotations

import time

import pytest
from burst_slurm.states import SETTLES_S, reason_of

from burst.provider import Failure, Phase
from tests.plugins.slurm.fake_cluster import FakeCluster
from tests.support.reaping import reap_until_gone


@pytest.mark.parametrize(
    ("kind", "reasons"),
    [
        (
            None,
            "Resources Priority Dependency Licenses Reservation BeginTime Prolog"
            " Cleaning JobHeldUser JobHeldAdmin BurstBufferStageIn Anything"
            " job_requeued_in_held_state"
            " Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher",
        ),
        (
            Failure.OTHER,
            "launch_failed_requeued_held user_env_retrieval_failed_requeued_held"
            " JobHoldMaxRequeue",
        ),
        (
            Failure.CAPACITY,
            "ReqNodeNotAvail ReqNodeNotAvail,_UnavailableNodes:n[1-3] NodeDown"
            " PartitionNodeLimit"
            " ReqNodeNotAvail,_Reserved_for_maintenance PartitionDown PartitionInactive"
            " AssocGrpNodeLimit AssocGrpCPUMinutesLimit AssocMaxJobsLimit"
            " AssociationJobLimit AssociationResourceLimit QOSGrpCpuLimit QOSJobLimit"
            " QOSMaxJobsPerUserLimit QOSMaxNodePerUserLimit QOSMaxCpuPerUserLimit"
            " QOSMaxSubmitJobPerUserLimit QOSUsageThreshold MaxCpuPerAccount"
            " QOSMaxGRESPerUser",
        ),
        (
            Failure.REFUSED,
            "PartitionTimeLimit PartitionConfig BadConstraints"
            " AssocMaxNodePerJobLimit AssocMaxWallDurationPerJobLimit"
            " AssocMaxCpuPerJobLimit QOSMaxNodePerJobLimit QOSMaxCpuPerNode"
            " QOSMaxWallDurationPerJobLimit QOSMaxMemoryPerJob QOSMinCpuNotSatisfied"
            " QOSMinGRES QOSTimeLimit AssociationTimeLimit MaxMemPerLimit"
            " InvalidAccount InvalidQOS AccountNotAllowed QOSNotAllowed"
            " DependencyNeverSatisfied",
        ),
    ],
)
def test_a_reason_has_a_kind(kind: Failure | None, reasons: str) -> None:
    assert {reason: reason_of(reason).failure for reason in reasons.split()} == (
        dict.fromkeys(reasons.split(), kind)
    )


@pytest.mark.parametrize(
    ("reason", "lasted", "words", "failure"),
    [
        ("Resources", 9999, "waits for nodes that are in use (Resources)", None),
        ("JobHeldUser", 9999, "is held, and a person has to release it", None),
        ("ReqNodeNotAvail", SETTLES_S - 9, "waits for nodes that are down,", None),
        ("ReqNodeNotAvail", SETTLES_S + 9, "waits for nodes", Failure.CAPACITY),
        ("PartitionNodeLimit", SETTLES_S - 9, "needs more nodes than", None),
        ("PartitionNodeLimit", SETTLES_S, "needs more nodes than", Failure.CAPACITY),
        ("QOSMaxNodePerJobLimit", 0, "asks for more than", Failure.REFUSED),
        ("launch failed requeued held", 0, "could not be launched", Failure.OTHER),
    ],
)
def test_a_pending_job_is_told_with_its_reason_and_failed_if_it_will_not_start(
    cluster: FakeCluster,
    reason: str,
    lasted: float,
    words: str,
    failure: Failure | None,
) -> None:
    cluster.set("stalled")
    now = [time.time()]
    provider = cluster.provider(clock=lambda: now[0])
    provider.provision(cluster.spec())
    cluster.set("state", f"PENDING|{reason}")
    provider.observe()
    now[0] += lasted
    [status] = provider.observe()
    assert status.phase is (Phase.FAILED if failure else Phase.PENDING)
    assert status.failure is (failure or Failure.OTHER)
    assert status.why.startswith(f"Slurm job 11 {words}")
    assert reason in status.why


def test_a_burst_of_the_same_name_waits_as_long_for_nodes_as_the_one_before(
    cluster: FakeCluster,
) -> None:
    cluster.set("stalled")
    now = [time.time()]
    provider, spec = cluster.provider(clock=lambda: now[0]), cluster.spec()
    for _ in range(2):
        cluster.set("state", "PENDING|NodeDown")
        provider.provision(spec)
        [status] = provider.observe()
        assert status.phase is Phase.PENDING
        now[0] += SETTLES_S
        [status] = provider.observe()
        assert status.phase is Phase.FAILED
        cluster.unset("state")
        reap_until_gone(provider, spec.burst_id)


def test_a_reason_of_a_moment_ends_no_burst_that_has_waited_for_long(
    cluster: FakeCluster,
) -> None:
    """squeue shows one of several reasons, now this one, now that one."""
    cluster.set("stalled")
    now = [time.time()]
    provider = cluster.provider(clock=lambda: now[0])
    provider.provision(cluster.spec())
    looks = [
        (3600, "Resources", Phase.PENDING),
        (1, "ReqNodeNotAvail", Phase.PENDING),
        (SETTLES_S - 1, "AssocGrpNodeLimit", Phase.PENDING),
        (1, "Priority", Phase.PENDING),
        (1, "ReqNodeNotAvail", Phase.PENDING),
        (SETTLES_S - 1, "ReqNodeNotAvail", Phase.PENDING),
        (1, "AssocGrpNodeLimit", Phase.FAILED),
    ]
    seen = []
    for later, reason, _ in looks:
        now[0] += later
        cluster.set("state", f"PENDING|{reason}")
        [status] = provider.observe()
        seen.append((later, reason, status.phase))
    assert seen == looks


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("SUSPENDED", "is suspended, so that its followers do nothing (SUSPENDED)"),
        ("SPECIAL_EXIT", "was put into the queue again, and held there (SPECIAL_EXIT)"),
        ("NODE_FAIL|NodeDown", "has lost a node (NODE_FAIL: NodeDown)"),
        ("NEW_ONE", "is in a state that is not known here (NEW_ONE)"),
    ],
)
def test_what_a_job_is_in_is_told_and_it_is_taken_down(
    cluster: FakeCluster, state: str, why: str
) -> None:
    cluster.set("stalled")
    provider, spec = cluster.provider(), cluster.spec()
    provider.provision(spec)
    cluster.set("state", state)
    [status] = provider.observe()
    assert status.why == f"Slurm job 11 {why}"
    reap_until_gone(provider, spec.burst_id)
    assert provider.observe() == []


def test_nodes_taken_for_others_are_told_as_that(cluster: FakeCluster) -> None:
    cluster.set("stalled")
    cluster.provider().provision(cluster.spec())
    cluster.set("state", "COMPLETING")
    [status] = cluster.provider().observe()
    assert status.phase is Phase.PENDING, "the burst does not end before it is told why"
    assert status.why.startswith("Slurm job 11 is ending")
    assert not any(follower.lost for follower in status.followers)
    cluster.set("state", "PREEMPTED")
    [status] = cluster.provider().observe()
    assert status.failure is Failure.RECLAIMED
    assert all(follower.reclaimed for follower in status.followers)


def test_why_a_follower_does_not_join_is_told_some_time_after_the_job_began(
    cluster: FakeCluster,
) -> None:
    cluster.set("stalled")
    spec = cluster.spec()
    cluster.provider().provision(spec)
    cluster.set("state", "RUNNING")
    said = "1: <3>client (0.87.0) version mismatched with server (0.88.0)"
    log = cluster.dir / f"owner-a.slurm/{spec.burst_id}/log"
    log.write_text(f"0: <6>all is well\n{said}\n")
    [job] = cluster.world.jobs.iterdir()
    began = float((job / "submitted").read_text())
    [early] = cluster.provider(clock=lambda: began).observe()
    assert (early.phase, early.why) == (Phase.RUNNING, "")
    [late] = cluster.later(30).observe()
    assert late.phase is Phase.RUNNING
    told = "burst-0-1 it runs Flux 0.87.0, and the lead runs 0.88.0"
    assert late.why.startswith(told)
