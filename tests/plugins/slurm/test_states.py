# SPDX-License-Identifier: MIT
"""What each state of a job, and each reason of a pending one, is for its burst."""

from __future__ import annotations

import pytest
from burst_slurm.states import SETTLES_S, reason_of

from burst.provider import BurstStatus, Failure, Phase
from tests.plugins.slurm.fake_cluster import FakeCluster
from tests.support.reaping import reap_until_gone


@pytest.mark.parametrize(
    ("kind", "reasons"),
    [
        (
            None,
            "Resources Priority Dependency Licenses Reservation BeginTime Prolog"
            " Cleaning JobHeldUser JobHeldAdmin JobHoldMaxRequeue BurstBufferStageIn"
            " launch_failed_requeued_held Anything"
            " Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher",
        ),
        (
            Failure.CAPACITY,
            "ReqNodeNotAvail ReqNodeNotAvail,_UnavailableNodes:n[1-3] NodeDown"
            " ReqNodeNotAvail,_Reserved_for_maintenance PartitionDown PartitionInactive"
            " AssocGrpNodeLimit AssocGrpCPUMinutesLimit AssocMaxJobsLimit"
            " AssociationJobLimit AssociationResourceLimit QOSGrpCpuLimit QOSJobLimit"
            " QOSMaxJobsPerUserLimit QOSMaxNodePerUserLimit QOSMaxCpuPerUserLimit"
            " QOSMaxSubmitJobPerUserLimit QOSUsageThreshold MaxCpuPerAccount"
            " QOSMaxGRESPerUser",
        ),
        (
            Failure.REFUSED,
            "PartitionNodeLimit PartitionTimeLimit PartitionConfig BadConstraints"
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
    ("reason", "age", "status"),
    [
        ("None", 0, "waits"),
        ("Resources", 9999, "waits for nodes that are in use (Resources)"),
        ("JobHeldUser", 9999, "is held, and a person has to release it"),
        ("ReqNodeNotAvail", SETTLES_S - 9, "waits for nodes that are down, drained or"),
    ],
)
def test_what_a_pending_job_waits_for_is_told(
    cluster: FakeCluster, reason: str, age: float, status: str
) -> None:
    found = pending(cluster, reason, age)
    assert found.why.startswith(f"Slurm job 11 {status}")
    assert {f.phase for f in found.followers} == {Phase.PENDING}


@pytest.mark.parametrize(
    ("reason", "age", "failure"),
    [
        ("QOSMaxNodePerJobLimit", 0, Failure.REFUSED),
        ("ReqNodeNotAvail", SETTLES_S + 9, Failure.CAPACITY),
    ],
)
def test_what_will_not_start_is_failed(
    cluster: FakeCluster, reason: str, age: float, failure: Failure
) -> None:
    found = pending(cluster, reason, age)
    assert (found.phase, found.failure) == (Phase.FAILED, failure)
    assert found.why.endswith(f" ({reason})")


def pending(cluster: FakeCluster, reason: str, age: float) -> BurstStatus:
    cluster.set("stalled")
    cluster.provider().provision(cluster.spec())
    cluster.set("state", f"PENDING|{reason}")
    [status] = cluster.later(age).observe()
    return status


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
    cluster.set("state", "PREEMPTED")
    [status] = cluster.provider().observe()
    assert status.failure is Failure.RECLAIMED
    assert all(follower.reclaimed for follower in status.followers)
