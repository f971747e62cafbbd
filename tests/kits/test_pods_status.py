# SPDX-License-Identifier: MIT
"""What objects of a cluster say of a burst, without a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.names import HOSTS, ID, INDEX
from burst.kits.pods.status import (
    Warnings,
    describe,
    followers,
    group_by_burst,
    latest_warnings,
)
from burst.provider import BurstStatus, Failure, Phase

NOW = 1000.0
EARLIER = "1970-01-01T00:15:00Z"  # 100 s before


def thing(kind: str, name: str = "b", **more: Any) -> Manifest:
    meta: Manifest = {
        "name": name,
        "creationTimestamp": EARLIER,
        "labels": {ID: "b"},
        "annotations": {HOSTS: "n-[0-1]"},
    }
    meta |= more.pop("metadata", {})
    return {"kind": kind, "metadata": meta, **more}


def pod(index: int, **status: Any) -> Manifest:
    """Return a pod that is bound, with this status."""
    made = thing("Pod", f"p{index}", status=status)
    made["metadata"]["labels"] = {ID: "b", INDEX: str(index)}
    container = {"name": "broker", "image": "flux:1"}
    return {**made, "spec": {"nodeName": "node", "containers": [container]}}


def waiting(reason: str, message: str = "") -> Manifest:
    return {"state": {"waiting": {"reason": reason, "message": message}}}


def look(
    *objects: Manifest,
    warnings: Warnings | None = None,
    logs: dict[str, str] | None = None,
    schedule: float = 300,
) -> BurstStatus:
    (found,) = group_by_burst(objects)
    return describe(found, warnings or {}, logs or {}, schedule, NOW)


RUNNING = {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}
CRASHED = {"terminated": {"exitCode": 1, "reason": "Error"}}
WORDS: list[tuple[dict[str, Any], Phase, str]] = [
    (RUNNING, Phase.RUNNING, ""),
    ({}, Phase.PENDING, "is being started"),
    ({"phase": "Succeeded"}, Phase.FAILED, "its broker has ended"),
    (
        {"containerStatuses": [{"state": {"terminated": {"exitCode": 0}}}]},
        Phase.FAILED,
        "its broker has ended",
    ),
    (
        {"phase": "Failed", "reason": "Evicted", "message": "no memory"},
        Phase.PENDING,
        "was evicted by its node: no memory",
    ),
    (
        {
            "phase": "Failed",
            "conditions": [
                {"type": "DisruptionTarget", "reason": "PreemptionByScheduler"}
            ],
        },
        Phase.PENDING,
        "was preempted",
    ),
    ({"phase": "Failed", "reason": "Odd"}, Phase.PENDING, "ended: Odd"),
    ({"phase": "Failed"}, Phase.PENDING, "is ending"),
    (
        {"containerStatuses": [waiting("ErrImagePull", "no such")]},
        Phase.PENDING,
        "image flux:1 cannot be pulled: ErrImagePull: no such",
    ),
    (
        {"containerStatuses": [waiting("InvalidImageName")]},
        Phase.FAILED,
        "image flux:1 cannot be pulled: InvalidImageName:",
    ),
    (
        {"containerStatuses": [waiting("CreateContainerConfigError", "no secret")]},
        Phase.PENDING,
        "CreateContainerConfigError: no secret",
    ),
    (
        {
            "phase": "Running",
            "containerStatuses": [
                {"restartCount": 1, "state": {"running": {}}, "lastState": CRASHED}
            ],
        },
        Phase.RUNNING,
        "was restarted once, last after exit status 1",
    ),
    (
        {
            "phase": "Running",
            "containerStatuses": [
                {
                    "restartCount": 3,
                    **waiting("CrashLoopBackOff"),
                    "lastState": CRASHED,
                }
            ],
        },
        Phase.RUNNING,
        "ended with exit status 1, is started again",
    ),
    (
        {
            "initContainerStatuses": [
                {"image": "view:1", **waiting("ErrImagePull", "no such")}
            ],
            "containerStatuses": [waiting("PodInitializing")],
        },
        Phase.PENDING,
        "image view:1 cannot be pulled: ErrImagePull: no such",
    ),
    (
        {
            "initContainerStatuses": [{"state": {"running": {}}}],
            "containerStatuses": [waiting("PodInitializing")],
        },
        Phase.PENDING,
        "is being started",
    ),
    (
        {"initContainerStatuses": [{"name": "view", "state": CRASHED}]},
        Phase.PENDING,
        "its init container view ended with exit status 1",
    ),
    (
        {
            "initContainerStatuses": [
                {
                    "name": "view",
                    **waiting("CrashLoopBackOff"),
                    "lastState": CRASHED,
                }
            ]
        },
        Phase.PENDING,
        "its init container view ended with exit status 1",
    ),
    (
        {
            "initContainerStatuses": [{"state": {"terminated": {"exitCode": 0}}}],
            "containerStatuses": [waiting("PodInitializing")],
        },
        Phase.PENDING,
        "is being started",
    ),
]


@pytest.mark.parametrize(("status", "phase", "why"), WORDS)
def test_a_pods_word(status: dict[str, Any], phase: Phase, why: str) -> None:
    seen = look(thing("Job"), pod(0, **RUNNING), pod(1, **status))
    assert seen.phase is phase
    follower = seen.followers[1]
    assert (follower.host, follower.phase, follower.why) == ("n-1", phase, why)
    assert seen.why == (f"n-1 {why}" if why else "")


def test_a_pod_that_is_not_bound_waits_for_a_node() -> None:
    unbound = pod(1)
    del unbound["spec"]["nodeName"]
    seen = look(thing("Job"), pod(0, **RUNNING), unbound)
    assert seen.why == "n-1 waits for a node"


def unschedulable(index: int) -> Manifest:
    message = "0/2 nodes are available"
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    condition["lastTransitionTime"] = EARLIER
    return pod(index, conditions=[condition])


@pytest.mark.parametrize(
    ("schedule", "phase", "failure"),
    [(101, Phase.PENDING, Failure.OTHER), (99, Phase.FAILED, Failure.CAPACITY)],
)
def test_a_pod_may_find_no_node_for_so_long(
    schedule: float, phase: Phase, failure: Failure
) -> None:
    objects = thing("Job"), pod(0, **RUNNING), unschedulable(1)
    seen = look(*objects, schedule=schedule)
    assert (seen.phase, seen.failure) == (phase, failure)
    assert "n-1 finds no node: 0/2 nodes are available" in seen.why


def test_of_pods_of_one_index_the_last_that_lives_counts() -> None:
    first = pod(1, phase="Failed", reason="Evicted")
    second = pod(1, **RUNNING)
    second["metadata"]["creationTimestamp"] = "1970-01-01T00:16:00Z"
    third = pod(1, phase="Failed", reason="Evicted")
    third["metadata"]["creationTimestamp"] = "1970-01-01T00:16:20Z"
    seen = look(thing("Job"), pod(0, **RUNNING), first, third, second)
    assert seen.phase is Phase.RUNNING


def test_a_pod_that_is_ending_is_not_running() -> None:
    going = pod(1, **RUNNING)
    going["metadata"]["deletionTimestamp"] = EARLIER
    seen = look(thing("Job"), pod(0, **RUNNING), going)
    assert (seen.phase, seen.why) == (Phase.PENDING, "n-1 is ending")


def test_an_index_is_found_in_the_annotation_too() -> None:
    old = pod(0, **RUNNING)
    old["metadata"]["labels"] = {ID: "b"}
    old["metadata"]["annotations"] = {HOSTS: "n-[0-1]", INDEX: "1"}
    stray = pod(0, **RUNNING)
    stray["metadata"]["labels"] = {ID: "b"}
    (found,) = group_by_burst([thing("Job"), old, stray])
    assert {host: name for host, (_, name) in followers(found).items()} == {
        "n-0": "",
        "n-1": "p0",
    }


def test_an_event_says_why_a_container_does_not_start() -> None:
    words = 'FailedMount: secret "b" not found'
    seen = look(
        thing("Job"), pod(0, **RUNNING), pod(1), warnings={("Pod", "p1"): words}
    )
    assert seen.why == f"n-1 cannot be started: {words}"


def test_a_log_says_why_a_broker_ended() -> None:
    ended = {"phase": "Running", "containerStatuses": [{"state": CRASHED}]}
    seen = look(
        thing("Job"),
        pod(0, **RUNNING),
        pod(1, **ended),
        logs={"p1": "<3>bad key\n\n<2>the end\n"},
    )
    assert seen.why.endswith("is started again: bad key / the end")


def test_an_event_says_why_there_are_no_pods() -> None:
    words = "FailedCreate: exceeded quota: small"
    warnings = {("Job", "b"): words}
    seen = look(thing("Job"), warnings=warnings)
    assert (seen.phase, seen.why) == (Phase.PENDING, f"pods cannot be made: {words}")
    late = look(thing("Job"), warnings=warnings, schedule=10)
    assert (late.phase, late.failure) == (Phase.FAILED, Failure.CAPACITY)


def test_an_operator_that_does_nothing_is_named() -> None:
    seen = look(thing("MiniCluster"))
    assert seen.phase is Phase.PENDING
    assert "check that it runs" in seen.why


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ({"type": "Failed", "reason": "DeadlineExceeded"}, "its lease is over"),
        (
            {"type": "Failed", "reason": "PodFailurePolicy", "message": "x"},
            "its Job has failed: PodFailurePolicy: x",
        ),
        ({"type": "Complete"}, "all its brokers have ended"),
    ],
)
def test_a_job_that_is_over_fails_the_burst(
    condition: dict[str, Any], why: str
) -> None:
    other = {"type": "Suspended", "status": "False"}
    status = {"conditions": [other, {"status": "True", **condition}]}
    seen = look(thing("Job", status=status), pod(0, **RUNNING))
    assert seen.phase is Phase.FAILED
    assert seen.why.startswith(why)


def test_a_condition_that_means_nothing_is_passed_over() -> None:
    status = {"conditions": [{"type": "Suspended", "status": "True"}]}
    job = thing("Job", status=status)
    assert look(job, pod(0, **RUNNING), pod(1, **RUNNING)).phase is Phase.RUNNING


def test_half_built_it_waits_for_the_rest() -> None:
    seen = look(thing("ConfigMap"), thing("Secret"))
    assert seen.phase is Phase.PENDING
    assert "provision or reap it again" in seen.why
    assert [f.host for f in seen.followers] == ["n-0", "n-1"]


def test_what_says_no_hosts_is_listed_all_the_same() -> None:
    bare = thing("Secret")
    bare["metadata"]["annotations"] = {HOSTS: "n-[0-"}
    seen = look(bare)
    assert (seen.burst_id, seen.followers) == ("b", ())


def test_what_is_being_deleted_is_ending() -> None:
    job = thing("Job", metadata={"deletionTimestamp": EARLIER})
    seen = look(job, pod(1, **RUNNING), thing("Secret"))
    assert seen.phase is Phase.ENDING
    assert [f.host for f in seen.followers] == ["n-1"]
    assert "1 pods, and of kind Job, Pod, Secret" in seen.why
    # One part that goes does not make the whole go, and without a Job it does.
    secret = thing("Secret", metadata={"deletionTimestamp": EARLIER})
    assert look(secret).phase is Phase.ENDING
    whole = look(thing("Job"), pod(0, **RUNNING), pod(1, **RUNNING), secret)
    assert whole.phase is Phase.RUNNING


def test_what_bears_no_bursts_id_is_nobodys() -> None:
    stray = thing("Secret")
    stray["metadata"]["labels"] = {}
    assert group_by_burst([stray]) == []


def test_the_last_warning_counts() -> None:
    about = {"kind": "Pod", "name": "p"}
    events: list[Manifest] = [
        {"metadata": {}, "involvedObject": about, "eventTime": "2", "reason": "B"},
        {"metadata": {"creationTimestamp": "1"}, "involvedObject": about},
        {"metadata": {}, "lastTimestamp": "3", "reason": "C", "message": "x" * 999},
    ]
    found = latest_warnings(events)
    assert found["Pod", "p"] == "B:"
    assert len(found["", ""]) < 400
