# SPDX-License-Identifier: MIT
"""What events of an autoscaler say of followers that wait, without a cluster.

The messages are those of cluster-autoscaler 1.34 and Karpenter 1.8.
"""

from typing import Any

import pytest

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.status.warnings import warnings_by_object
from burst.model.decision import exact_moment
from burst.provider import BurstStatus, Failure, Phase
from tests.kits import seen_pods
from tests.kits.seen_pods import EARLIER, RUNNING, pod, thing, unschedulable

SINCE = exact_moment(900)
UNBOUND = "finds no node: 0/2 nodes are available"
GROUP = "[{gke-pool-1 1->3 (max: 4)}]"


def placed(node: str = "", name: str = "b-0-new", **status: Any) -> Manifest:
    """Return the pod of n-0."""
    made = pod(0, **status)
    made["metadata"]["name"] = name
    made["spec"]["nodeName"] = node
    return made


def waiting() -> Manifest:
    made = unschedulable(0)
    made["metadata"]["name"] = "b-0-new"
    return made


def event(
    reason: str, message: str, name: str = "b-0-new", at: str = EARLIER, of: str = ""
) -> Manifest:
    told = seen_pods.event("Pod", name, f"{reason}: {message}", at)
    return {**told, "type": of or "Normal"}


def look(*pods: Manifest, events: list[Manifest], schedule: float = 300) -> BurstStatus:
    """Look at a burst of which n-1 runs."""
    warnings = warnings_by_object(events)
    objects = thing("Job"), *pods, pod(1, **RUNNING)
    return seen_pods.look(*objects, warnings=warnings, schedule=schedule)


REFUSED = "pod didn't trigger scale-up: 2 max size reached"
BACKOFF = (
    "pod didn't trigger scale-up: 1 max node group size reached, 1 in backoff after"
    " failed scale-up"
)
ADVICE = (
    "; raise the largest size of a node group; it tries again after a few minutes, or"
    " up to half an hour; the cloud's log says why it failed before"
)
CHOSEN = "Karpenter has chosen a node for it, which may have to boot"
ADDS = [
    # The words of the event, what is said of it, and what is advised.
    (
        "TriggeredScaleUp",
        f"pod triggered scale-up: {GROUP}",
        "the autoscaler adds nodes",
        "",
    ),
    ("NotTriggerScaleUp", REFUSED, "the autoscaler adds no node", ""),
    ("NotTriggerScaleUp", BACKOFF, "the autoscaler adds no node", ADVICE),
    ("FailedScaleUp", "quota exceeded.", "the autoscaler could not add a node", ""),
    ("Nominated", "Pod should schedule on: nodeclaim/default-7xk2p", CHOSEN, ""),
    (
        "FailedScheduling",
        "Failed to schedule pod, no inst",
        "Karpenter adds no node",
        "",
    ),
]
WARNS = {"FailedScaleUp", "FailedScheduling"}


@pytest.mark.parametrize(("reason", "message", "who", "advice"), ADDS)
def test_what_is_done_for_a_pod_without_a_node(
    reason: str, message: str, who: str, advice: str
) -> None:
    said = event(reason, message, of="Warning" if reason in WARNS else "")
    words = f"{who} (since {SINCE}): {reason}: {message}{advice}"
    seen = look(waiting(), events=[said])
    assert seen.phase is Phase.PENDING
    assert seen.why == f"n-0 {UNBOUND}; {words}"
    assert seen.followers[0].why == f"{UNBOUND}; {words}"
    # Once it has a node nobody asks for one.
    seen = look(placed("node-1"), events=[said])
    assert seen.why == "n-0 is being started"
    assert look(placed("node-1", **RUNNING), events=[said]).why == ""


def test_the_last_word_counts_and_says_since_when() -> None:
    first = "1970-01-01T00:16:00Z"
    refused = event("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 in backoff")
    refused |= {"firstTimestamp": EARLIER, "lastTimestamp": first}
    added = event("TriggeredScaleUp", "pod triggered scale-up", at=first)
    added |= {"firstTimestamp": first, "lastTimestamp": "1970-01-01T00:16:10Z"}
    seen = look(waiting(), events=[added, refused])
    assert "adds no node" not in seen.why
    assert f"adds nodes (since {exact_moment(960)})" in seen.why


def test_it_is_told_why_a_burst_had_no_capacity() -> None:
    said = event("NotTriggerScaleUp", REFUSED)
    seen = look(waiting(), events=[said], schedule=99)
    assert (seen.phase, seen.failure) == (Phase.FAILED, Failure.CAPACITY)
    assert seen.why.startswith(f"for 100 s, n-0 {UNBOUND}; the autoscaler adds no node")


TAKES = [
    (event("ScaleDown", "deleting pod for node scale down"), "the autoscaler"),
    (event("Disrupted", "Deleting the pod to accommodate the node"), "Karpenter"),
    (event("Evicted", "Evicted pod: Underutilized"), "Karpenter"),
]


@pytest.mark.parametrize(("said", "who"), TAKES)
def test_a_node_that_is_taken_away_is_told(said: Manifest, who: str) -> None:
    old = {**said, "involvedObject": {"kind": "Pod", "name": "b-0-old"}}
    words = f"{who} took its node away (since {SINCE}): {said['reason']}: "
    # As the pod ends.
    going = placed("node-1", "b-0-old")
    going["metadata"]["deletionTimestamp"] = EARLIER
    assert look(going, events=[old]).why.startswith(f"n-0 is ending; {words}")
    # As its next one waits, or is not there yet.
    assert f"{UNBOUND}; {words}" in look(waiting(), events=[old]).why
    assert f"has no pod yet; {words}" in look(events=[old]).why
    # As its next one is started.
    started = placed("node-2")
    assert f"is being started; {words}" in look(started, events=[old]).why


def test_both_are_told() -> None:
    old = event("ScaleDown", "deleting pod for node scale down", name="b-0-old")
    new = event("TriggeredScaleUp", "pod triggered scale-up")
    why = look(waiting(), events=[old, new]).why
    assert why.index("took its node away") < why.index("adds nodes")


OTHERS = {
    "old": event("ScaleDown", "deleting", "b-0-x", "1970-01-01T00:13:00Z"),
    "another host's": event("ScaleDown", "deleting", "b-1-x"),
    "a kubelet's": event("Evicted", "The node was low on memory"),
    "the scheduler's": event("FailedScheduling", "0/2 nodes", of="Warning"),
    "of no interest": event("AddedInterface", "Add eth0"),
}


@pytest.mark.parametrize("said", OTHERS.values(), ids=OTHERS)
def test_other_events_say_nothing_of_it(said: Manifest) -> None:
    assert look(waiting(), events=[said]).why == f"n-0 {UNBOUND}"
    started = look(placed("node-1"), events=[said])
    assert started.why == "n-0 is being started"
