# SPDX-License-Identifier: MIT
"""What objects of a cluster say of a burst, without a cluster."""

from typing import Any

import msgspec
import pytest

from burst.kits.kube.kinds import Manifest, name_of
from burst.kits.pods.names import HOSTS, ID, INDEX, SPEC, SPOT, STARTED
from burst.kits.pods.status.burst_objects import group_by_burst
from burst.kits.pods.status.describe import describe, followers
from burst.kits.pods.status.kept_object import kept
from burst.kits.pods.status.warnings import warnings_by_object, why_starting
from burst.provider import Failure, Phase
from tests.kits.seen_pods import (
    EARLIER,
    NOW,
    RUNNING,
    about,
    look,
    pod,
    thing,
    unschedulable,
    waiting,
)


def disruption(reason: str, message: str = "") -> dict[str, Any]:
    """Return the status of a pod that Kubernetes ended, and said why."""
    condition = {"type": "DisruptionTarget", "reason": reason, "message": message}
    return {"phase": "Failed", "conditions": [condition]}


def broker(phase: str = "", **status: Any) -> dict[str, Any]:
    """Return the status of a pod by that of its broker's container."""
    return {"containerStatuses": [status]} | ({"phase": phase} if phase else {})


def init(name: str = "view", **status: Any) -> dict[str, Any]:
    """Return the status of a pod whose broker waits for this init container."""
    known = {"initContainerStatuses": [{"name": name, **status}]}
    return known | broker(**waiting("PodInitializing"))


CRASHED = {"terminated": {"exitCode": 1, "reason": "Error"}}
CLEANLY = {"terminated": {"exitCode": 0}}
COMPLAINED = {"terminated": {"exitCode": 1, "message": "cp: no\n x"}}
UP: dict[str, Any] = {"state": {"running": {}}}
AGAIN = {**waiting("CrashLoopBackOff"), "lastState": CRASHED}
LATER = {"name": "gcsfuse", "started": False, "state": CRASHED}
BEGINS, RUNS, FAILS = Phase.PENDING, Phase.RUNNING, Phase.FAILED
PULL = waiting("ErrImagePull", "no such")
PREEMPTED = "was preempted by pods of a higher priority"
EVICTED = {"phase": "Failed", "reason": "Evicted", "message": "no memory"}
NO_SECRET = waiting("CreateContainerConfigError", "no secret")
ONCE: dict[str, Any] = {"restartCount": 1, "lastState": CRASHED, **UP}
NOT_PULLED = "cannot be pulled: ErrImagePull: no such"
INIT_ENDED = "its init container view ended with exit status 1"
WORDS: list[tuple[dict[str, Any], Phase, str]] = [
    (RUNNING, RUNS, ""),
    ({}, BEGINS, "is being started"),
    ({"phase": "Running"}, BEGINS, "is being started"),
    ({"phase": "Succeeded"}, FAILS, "its broker has ended"),
    (broker(state=CLEANLY), FAILS, "its broker has ended"),
    (EVICTED, BEGINS, "was evicted by its node: no memory"),
    (disruption("PreemptionByScheduler"), BEGINS, PREEMPTED),
    ({"phase": "Failed", "reason": "Odd"}, BEGINS, "ended: Odd"),
    ({"phase": "Failed"}, BEGINS, "is ending"),
    (broker(**PULL), BEGINS, f"image flux:1 {NOT_PULLED}"),
    (
        broker(**waiting("InvalidImageName")),
        FAILS,
        "image flux:1 cannot be pulled: InvalidImageName:",
    ),
    (broker(**NO_SECRET), BEGINS, "CreateContainerConfigError: no secret"),
    (broker("Running", **ONCE), RUNS, "was restarted once, last after exit status 1"),
    (
        broker("Running", restartCount=3, **AGAIN),
        RUNS,
        "ended with exit status 1; is started again",
    ),
    (init(image="view:1", **PULL), BEGINS, f"image view:1 {NOT_PULLED}"),
    (init(**UP), BEGINS, "waits for its init container view"),
    (init(state=CRASHED), BEGINS, INIT_ENDED),
    (init(state=COMPLAINED), BEGINS, f"{INIT_ENDED}: cp: no x"),
    (init(**AGAIN), BEGINS, INIT_ENDED),
    (init(state=CLEANLY), BEGINS, "is being started"),
    (init("gcsfuse", started=True, **UP), BEGINS, "is being started"),
    (init("fuse", started=False, **UP), BEGINS, "waits for its init container fuse"),
    # It failed later, and is started again beside the broker.
    (broker("Running", **UP) | {"initContainerStatuses": [LATER]}, RUNS, ""),
]


@pytest.mark.parametrize(("status", "phase", "why"), WORDS)
def test_a_pods_word(status: dict[str, Any], phase: Phase, why: str) -> None:
    seen = look(thing("Job"), pod(0, **RUNNING), pod(1, **status))
    assert seen.phase is phase
    follower = seen.followers[1]
    assert (follower.host, follower.phase, follower.why) == ("n-1", phase, why)
    assert seen.why == (f"n-1 {why}" if why else "")


def test_a_pod_that_is_not_bound_waits_and_one_that_is_ending_does_not_run() -> None:
    unbound, going = pod(1), pod(1, **RUNNING)
    del unbound["spec"]["nodeName"]
    seen = look(thing("Job"), pod(0, **RUNNING), unbound)
    assert seen.why == "n-1 waits for a node"
    assert [each.has_node for each in seen.followers] == [True, False]
    going["metadata"]["deletionTimestamp"] = EARLIER
    seen = look(thing("Job"), pod(0, **RUNNING), going)
    assert (seen.phase, seen.why) == (Phase.PENDING, "n-1 is ending")


def test_a_node_costs_once_its_pod_is_bound_until_the_pod_has_ended() -> None:
    seen = look(thing("Job"), pod(0, **broker(**PULL)), pod(1, **EVICTED))
    assert [each.phase for each in seen.followers] == [BEGINS] * 2
    assert [each.has_node for each in seen.followers] == [True, False]


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
    first = named("a", EARLIER, phase="Failed", reason="Evicted")
    second = named("b", "1970-01-01T00:16:00Z", **RUNNING)
    third = named("c", "1970-01-01T00:16:20Z", phase="Failed", reason="Evicted")
    seen = look(thing("Job"), pod(0, **RUNNING), first, third, second)
    assert seen.phase is Phase.RUNNING


SHUTDOWN = "Pod was terminated in response to imminent node shutdown."
NO_MEMORY = "The node was low on resource: memory."
TAKEN: list[tuple[dict[str, Any], bool, bool]] = [
    # What happened to the pod, and whether it was reclaimed: on spot nodes, on others.
    (disruption("PreemptionByScheduler"), True, True),
    (disruption("DeletionByTaintManager"), True, False),
    (disruption("EvictionByEvictionAPI"), True, False),
    (disruption("DeletionByPodGC"), True, False),
    (disruption("TerminationByKubelet", SHUTDOWN), True, False),
    (disruption("TerminationByKubelet", NO_MEMORY), False, False),
    ({"phase": "Failed", "reason": "Terminated", "message": SHUTDOWN}, True, False),
    ({"phase": "Failed", "reason": "Evicted", "message": NO_MEMORY}, False, False),
    ({"phase": "Failed", "reason": "NodeLost"}, True, False),
    ({"phase": "Failed"}, False, False),
]


@pytest.mark.parametrize("on_spot", [True, False])
@pytest.mark.parametrize(("status", "spot", "other"), TAKEN)
def test_a_node_that_is_taken_back_is_told_from_a_failure(
    status: dict[str, Any], spot: bool, other: bool, on_spot: bool
) -> None:
    taken = pod(1, **status)
    if on_spot:
        taken["metadata"]["annotations"] = {HOSTS: "n-[0-1]", SPOT: "true"}
    reclaimed = spot if on_spot else other
    seen = look(thing("Job"), pod(0, **RUNNING), taken)
    assert [f.reclaimed for f in seen.followers] == [False, reclaimed]
    assert (seen.phase, seen.failure) == (Phase.PENDING, Failure.OTHER)

    # Its next pod waits for a node; then it runs.
    later = "1970-01-01T00:16:00Z"
    waits, runs = pod(1, phase="Pending"), pod(1, **RUNNING)
    for after in (waits, runs):
        after["metadata"]["creationTimestamp"] = later
    seen = look(thing("Job"), pod(0, **RUNNING), taken, waits)
    assert seen.followers[1].reclaimed is reclaimed
    assert "its next pod is being started" in seen.why
    # What keeps that one is told as of a first pod.
    mount = 'MountVolume.SetUp failed for volume "secret" : secret "b" not found'
    found = about("Pod", name_of(waits), f"FailedMount: {mount}", later)
    seen = look(thing("Job"), pod(0, **RUNNING), taken, waits, warnings=found)
    assert f"; its next pod cannot be started: FailedMount: {mount}" in seen.why
    seen = look(thing("Job"), pod(0, **RUNNING), taken, runs)
    assert (seen.phase, seen.followers[1].reclaimed) == (Phase.RUNNING, False)

    # No Job makes another.
    over = [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]
    seen = look(thing("Job", status={"conditions": over}), pod(0, **RUNNING), taken)
    assert seen.phase is Phase.FAILED
    failure = Failure.RECLAIMED if reclaimed else Failure.OTHER
    assert seen.failure is failure


def test_a_preempted_pod_that_is_gone_is_known_by_its_event() -> None:
    found = about("Pod", "b-1-xyz", "Preempted")
    for pods in ((), (pod(0, **RUNNING), pod(1))):
        seen = look(thing("Job"), *pods, warnings=found)
        assert [follower.reclaimed for follower in seen.followers] == [False, True]
        assert "was preempted by pods of a higher priority; " in seen.followers[1].why
    # It runs again, or another pod has run since.
    old = about("Pod", "b-1-xyz", "Preempted", "1970-01-01T00:10:00Z")
    for last, events in ((RUNNING, found), ({}, old)):
        pods = pod(0, **RUNNING), pod(1, **last)
        seen = look(thing("Job"), *pods, warnings=events)
        assert not any(follower.reclaimed for follower in seen.followers)


def named(name: str, made: str, **status: Any) -> dict[str, Any]:
    """Return a pod of the second follower, as a Job names it."""
    found = pod(1, **status)
    found["metadata"] |= {"name": name, "creationTimestamp": made}
    return found


def test_an_old_preemption_is_not_what_took_a_later_pod_away() -> None:
    """The event of the first pod is there for an hour, and its next pod was back."""
    event = about("Pod", "b-1-first", "Preempted", "1970-01-01T00:10:00Z")
    made = "1970-01-01T00:10:05Z"
    back = named("b-1-next", made, **RUNNING)
    gone = named("b-1-next", made, **RUNNING)
    gone["metadata"]["deletionTimestamp"] = EARLIER
    (burst,) = group_by_burst(map(kept, [thing("Job"), pod(0, **RUNNING)]))
    taken = msgspec.structs.replace(burst, former=(kept(gone),))
    for status in (
        look(thing("Job"), pod(0, **RUNNING), back, warnings=event),
        look(thing("Job"), pod(0, **RUNNING), gone, warnings=event),
        describe(taken, event, {}, 300, NOW),
    ):
        assert not any(follower.reclaimed for follower in status.followers)
        assert "preempted" not in status.why
    assert "was deleted, and not by burst" in status.followers[1].lost

    # Its broker ends where it is.
    failed = named("b-1-next", made, **broker(state=CRASHED))
    first = named("b-1-first", "1970-01-01T00:05:00Z", **RUNNING)
    seen = msgspec.structs.replace(burst, objects=(*burst.objects, kept(failed)))
    seen = msgspec.structs.replace(seen, former=(kept(first),))
    assert not describe(seen, event, {}, 300, NOW).followers[1].reclaimed
    # This one it was, of which nobody saw more than that it is gone.
    seen = msgspec.structs.replace(burst, former=(kept(first),))
    assert describe(seen, event, {}, 300, NOW).followers[1].reclaimed


def test_an_index_is_found_in_the_annotation_too() -> None:
    old = pod(0, **RUNNING)
    old["metadata"]["labels"] = {ID: "b"}
    old["metadata"]["annotations"] = {HOSTS: "n-[0-1]", INDEX: "1"}
    stray = pod(0, **RUNNING)
    stray["metadata"]["labels"] = {ID: "b"}
    (found,) = group_by_burst(map(kept, [thing("Job"), old, stray]))
    assert {host: name for host, (_, name) in followers(found).items()} == {
        "n-0": "",
        "n-1": "p0",
    }


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ('Pulling: Pulling image "flux:1"', "waits for its image: {}"),
        ('FailedMount: secret "b" not found', "cannot be started: {}"),
        # Of before it had a node.
        ("FailedScheduling: 0/2 nodes are available", "is being started"),
    ],
)
def test_an_event_says_why_a_container_does_not_start(words: str, why: str) -> None:
    events = about("Pod", "p1", words)
    seen = look(thing("Job"), pod(0, **RUNNING), pod(1), warnings=events)
    assert seen.why == f"n-1 {why.format(words)}"


@pytest.mark.parametrize(
    ("limits", "words"),
    [({"memory": "28Gi"}, "its limit of 28Gi"), ({}, "its node had left")],
)
def test_a_broker_without_memory_is_told_of(limits: Any, words: str) -> None:
    killed = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    starved = pod(1, **broker("Running", lastState=killed, restartCount=1, **UP))
    starved["spec"]["containers"][-1]["resources"] = {"limits": limits}
    seen = look(thing("Job"), pod(0, **RUNNING), starved)
    assert seen.phase is Phase.RUNNING
    assert seen.why == (
        "n-1 was restarted once, last after exit status 137, OOMKilled:"
        f" it used more memory than {words}"
    )


def test_a_log_says_why_a_broker_ended() -> None:
    crashed = pod(1, **broker("Running", state=CRASHED))
    objects = thing("Job"), pod(0, **RUNNING), crashed
    seen = look(*objects, logs={"p1": "<3>bad key\n\n<2>the end\n"})
    assert seen.why.endswith("is started again: bad key / the end")


def test_an_event_says_why_there_are_no_pods() -> None:
    words = "FailedCreate: exceeded quota: small"
    warnings = about("Job", "b", words)
    seen = look(thing("Job"), warnings=warnings)
    assert (seen.phase, seen.why) == (Phase.PENDING, f"pods cannot be made: {words}")
    late = look(thing("Job"), warnings=warnings, schedule=10)
    assert (late.phase, late.failure) == (Phase.FAILED, Failure.CAPACITY)


def test_an_operator_that_does_nothing_is_named() -> None:
    seen = look(thing("MiniCluster"))
    assert seen.phase is Phase.PENDING
    assert "check that it runs" in seen.why


POLICY = {"type": "Failed", "reason": "PodFailurePolicy", "message": "x"}


@pytest.mark.parametrize(
    ("condition", "phase", "why"),
    [
        ({"type": "Failed", "reason": "DeadlineExceeded"}, FAILS, "its lease is over"),
        (POLICY, FAILS, "its Job has failed: PodFailurePolicy: x"),
        ({"type": "Complete"}, FAILS, "all brokers of Job b have ended"),
        ({"type": "Odd"}, RUNS, ""),
    ],
)
def test_a_job_that_is_over_fails_the_burst(
    condition: dict[str, Any], phase: Phase, why: str
) -> None:
    other = {"type": "Suspended", "status": "False"}
    status = {"conditions": [other, {"status": "True", **condition}]}
    pods = pod(0, **RUNNING), pod(1, **RUNNING)
    seen = look(thing("Job", status=status), *pods)
    assert seen.phase is phase
    assert seen.why.startswith(why)


def test_half_built_it_waits_for_the_rest() -> None:
    seen = look(thing("ConfigMap"), thing("Secret"))
    assert seen.phase is Phase.PENDING
    assert "provision or reap it again" in seen.why
    assert [f.host for f in seen.followers] == ["n-0", "n-1"]
    # What says no hosts is listed all the same, and what bears no id is nobody's.
    bare = thing("Secret")
    bare["metadata"]["annotations"] = {HOSTS: "n-[0-"}
    seen = look(bare)
    assert (seen.burst_id, seen.followers) == ("b", ())
    bare["metadata"]["labels"] = {}
    assert group_by_burst(map(kept, [bare])) == []


def test_what_is_being_deleted_is_ending() -> None:
    job = thing("Job", metadata={"deletionTimestamp": EARLIER})
    seen = look(job, pod(1, **RUNNING), thing("Secret"))
    assert seen.phase is Phase.ENDING
    assert [f.host for f in seen.followers] == ["n-1"]
    assert "1 pods; objects of kind Job, Pod, Secret" in seen.why
    # One part that goes does not make the whole go, and without a Job it does.
    secret = thing("Secret", metadata={"deletionTimestamp": EARLIER})
    assert look(secret).phase is Phase.ENDING
    whole = look(thing("Job"), pod(0, **RUNNING), pod(1, **RUNNING), secret)
    assert whole.phase is Phase.RUNNING


def test_the_last_warning_counts() -> None:
    about_p: Manifest = {"involvedObject": {"kind": "Pod", "name": "p"}}
    second = {"eventTime": "1970-01-01T00:00:02.000001Z", "reason": "B"}
    first = {"metadata": {"creationTimestamp": "1970-01-01T00:00:01Z"}}
    lasts = {
        "firstTimestamp": "1970-01-01T00:00:01Z",
        "lastTimestamp": "1970-01-01T00:00:03Z",
    }
    events: list[Manifest] = [
        {"metadata": {}, **about_p, **second},
        {**about_p, **first},
        {"metadata": {}, **lasts, "reason": "C", "message": "x" * 999},
    ]
    found = warnings_by_object(events)
    assert why_starting(found, "p") == "cannot be started: B:"
    assert why_starting(found, "q") == ""
    (long,) = found["", ""]
    assert len(long.text) < 400
    assert (long.first, long.last) == (1, 3)


def test_a_cluster_that_does_not_work_denies_nobody() -> None:
    words = (
        "FailedCreate: Error creating: Internal error occurred: failed calling webhook"
        ' "validate.kyverno.svc-fail": failed to call webhook: Post'
        ' "https://kyverno-svc.kyverno.svc:443/validate/fail?timeout=10s": context'
        " deadline exceeded"
    )
    seen = look(thing("Job"), warnings=about("Job", "b", words))
    assert (seen.phase, seen.why) == (Phase.PENDING, f"pods cannot be made: {words}")


def test_a_denial_from_before_the_newest_pod_is_over() -> None:
    """Such as of the moment before the namespace had its service account."""
    later = pod(0, **RUNNING)
    later["metadata"]["creationTimestamp"] = "1970-01-01T00:16:00Z"
    denied = about("Job", "b", "FailedCreate: no service account")
    seen = look(thing("Job"), later, warnings=denied)
    assert (seen.phase, seen.why) == (Phase.PENDING, "n-1 has no pod yet")


def suspended(since: str = EARLIER, **noted: str) -> Manifest:
    condition = {"type": "Suspended", "status": "True", "lastTransitionTime": since}
    job = thing("Job", spec={"suspend": True}, status={"conditions": [condition]})
    job["metadata"]["annotations"] = {**job["metadata"]["annotations"], **noted}
    return job


def test_a_job_that_is_suspended_is_queued() -> None:
    queued = suspended(**{SPEC: "x", STARTED: "true"})
    seen = look(queued)
    assert seen.phase is Phase.PENDING
    assert seen.why.startswith("is queued: its Job is suspended until Kueue")
    late = look(queued, schedule=99)
    assert (late.phase, late.failure) == (Phase.FAILED, Failure.CAPACITY)
    assert late.why.startswith("for 100 s, is queued")
    # The operator's Job has no annotations of ours.
    assert look(suspended(), thing("MiniCluster")).why.startswith("is queued")
    bare = thing("Job", spec={"suspend": True})
    assert look(bare, schedule=0).phase is Phase.PENDING


def test_a_job_that_somebody_suspends_is_what_its_followers_were_lost_by() -> None:
    stopped = suspended(**{SPEC: "x", STARTED: "true"})
    ends = [pod(0, **RUNNING), pod(1, **RUNNING)]
    for each in ends:
        each["metadata"]["deletionTimestamp"] = EARLIER
    (burst,) = group_by_burst(map(kept, [stopped]))
    gone = msgspec.structs.replace(burst, former=tuple(map(kept, ends)))
    for seen in (look(stopped, *ends), describe(gone, {}, {}, 300, NOW)):
        for follower in seen.followers:
            why = "lost its pod, as its Job was suspended, and not by burst"
            assert (follower.lost, follower.reclaimed) == (why, False)
        assert "its Job is suspended" in seen.why
    # The Job of a growth is suspended until it owns what its pods mount.
    grown = suspended(**{SPEC: "x", HOSTS: "n-2"})
    grown["metadata"]["name"] = "b-g2"
    seen = look(thing("Job"), grown, *ends)
    assert "deleted, and not by burst" in seen.followers[0].lost


def test_a_job_that_was_not_started_is_not_complete() -> None:
    seen = look(suspended(**{SPEC: "x"}))
    assert seen.phase is Phase.PENDING
    assert seen.why == "is not complete; provision or reap it again"
