# SPDX-License-Identifier: MIT
"""What Kueue, Volcano and the scheduler say of followers that wait, in words.

The texts are those of Kueue and Volcano as their users have reported them.
"""

from typing import Any

import pytest

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.names import SPEC, STARTED
from burst.kits.pods.status.warnings import Warnings, warnings_by_object
from burst.model.decision import exact_moment
from burst.provider import BurstStatus, Failure, Phase
from tests.kits import seen_pods
from tests.kits.played_namespace import BURSTS, JOBS, NOW, PODS, Namespace, job, meta
from tests.kits.pods import bursts_in
from tests.kits.seen_pods import RUNNING, look, pod, thing, unschedulable
from tests.support.set_clock import SetClock

PREEMPTED = (
    "Preempted to accommodate a workload (UID: 16739dd5, JobUID: 60a0290d) due to"
    " prioritization in the ClusterQueue"
)
NO_QUOTA = (
    "couldn't assign flavors to pod set main: insufficient unused quota for cpu in"
    " flavor default-flavor, 4 more needed"
)
MINUTES = {n: f"1970-01-01T00:{n:02}:00Z" for n in range(10, 17)}
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta1/namespaces/jobs/workloads"


def event(words: str, minute: int, kind: str = "Workload", name: str = "") -> Manifest:
    told = seen_pods.event(kind, name or "job-b-238f2", words, MINUTES[minute])
    told["metadata"]["name"] = f"e{minute}"
    return {**told, "type": "Normal"}


def suspended(*pods: Manifest, warnings: Warnings) -> BurstStatus:
    condition = {"type": "Suspended", "status": "True"}
    condition["lastTransitionTime"] = MINUTES[15]
    stopped = thing("Job", spec={"suspend": True}, status={"conditions": [condition]})
    stopped["metadata"]["annotations"] |= {SPEC: "x", STARTED: "true"}
    return look(stopped, *pods, warnings=warnings)


def test_why_kueue_does_not_admit_it_is_told_with_its_words() -> None:
    seen = suspended(warnings=warnings_by_object([event(f"Pending: {NO_QUOTA}", 15)]))
    assert seen.phase is Phase.PENDING
    assert seen.why.startswith("is queued: its Job is suspended")
    words = (
        f"Kueue has no quota for it (since {exact_moment(900)}): Pending: {NO_QUOTA}"
    )
    assert words in seen.why
    assert seen.followers[0].why == f"has no pod yet; {words}"


def test_a_running_job_that_kueue_evicts_is_told_of_and_no_failure() -> None:
    events = [
        event("QuotaReserved: Quota reserved in ClusterQueue cq", 10),
        event("Admitted: Admitted by ClusterQueue cq", 11),
        event(f"EvictedDueToPreempted: {PREEMPTED}", 15),
        event(f"Preempted: {PREEMPTED}", 15),
        event(f"Pending: {NO_QUOTA}", 16),
    ]
    ends = pod(0, **RUNNING)
    ends["metadata"]["deletionTimestamp"] = MINUTES[15]
    for pods in ((), (ends,)):
        seen = suspended(*pods, warnings=warnings_by_object(events))
        assert seen.phase is Phase.PENDING
        assert f"Kueue has evicted it (since {exact_moment(900)}): " in seen.why
        assert PREEMPTED in seen.why
        assert "Quota reserved" not in seen.why
        assert all(PREEMPTED in follower.why for follower in seen.followers)
        # Others have their place: as with a node that is taken back, nobody failed.
        assert all(follower.reclaimed for follower in seen.followers)
    again = [*events, event("Admitted: Admitted by ClusterQueue cq", 16)]
    assert "evicted" not in suspended(warnings=warnings_by_object(again)).why


def test_an_eviction_that_makes_no_room_for_others_is_none_of_the_cloud() -> None:
    late = event("EvictedDueToPodsReadyTimeout: Exceeded the PodsReady timeout", 15)
    seen = suspended(warnings=warnings_by_object([late]))
    assert "Kueue has evicted it" in seen.why
    assert not any(follower.reclaimed for follower in seen.followers)
    # Of another job nothing is told.
    other = event(f"Pending: {NO_QUOTA}", 15, name="job-c-238f2")
    note = event("Updated: whatever", 15)
    seen = suspended(warnings=warnings_by_object([other, note]))
    assert "Kueue has" not in seen.why


def condition(kind: str, status: str, reason: str, message: str) -> dict[str, str]:
    at = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"type": kind, "status": status, "reason": reason, "message": message, **at}


STATES = [
    (
        [
            condition("QuotaReserved", "False", "Pending", NO_QUOTA),
            condition("Evicted", "True", "Preempted", PREEMPTED),
        ],
        ["Kueue has no quota for it", NO_QUOTA, "Kueue has evicted it", PREEMPTED],
    ),
    (
        [condition("QuotaReserved", "False", "Inadmissible", "lq doesn't exist")],
        ["Kueue cannot admit it", "lq doesn't exist"],
    ),
    (
        [condition("QuotaReserved", "True", "QuotaReserved", "in cq")],
        ["has quota for it, and waits for admission checks"],
    ),
    ([condition("PodsReady", "False", "PodsReady", "no")], []),
]


@pytest.mark.parametrize(("conditions", "words"), STATES)
@pytest.mark.parametrize("allowed", [True, False])
def test_the_state_of_its_workload_is_read_where_that_is_allowed(
    namespace: Namespace,
    conditions: list[dict[str, str]],
    words: list[str],
    *,
    allowed: bool,
) -> None:
    burst = BURSTS[0]
    held = job(burst)
    held["spec"]["suspend"] = True
    workload = {"metadata": meta(f"job-{burst}-5f2c1", burst)}
    namespace.serve(JOBS, held, job(BURSTS[1]))
    namespace.serve(PODS)
    if allowed:
        status = {"status": {"conditions": conditions}}
        namespace.serve(WORKLOADS, {**workload, **status})
    else:
        namespace.server.answer("GET", WORKLOADS, (403, {"message": "no"}))
    clock = SetClock(NOW)
    bursts = bursts_in(namespace.server, clock)
    bursts.observe()
    clock.now += 10
    found = bursts.observe()
    assert namespace.asked("/workloads") == 1
    assert found[0].phase is Phase.PENDING
    for each in words:
        assert (each in found[0].why) == allowed
    assert "Kueue" not in found[1].why
    asked = [path for _, path, _ in namespace.server.asked]
    assert any("involvedObject.kind%3DWorkload" in path for path in asked)


GANG = "pod group is not ready, 6 Pending, 6 minAvailable; Pending: 1 Unschedulable"
TAINTED = "0/3 nodes are available: 3 node(s) had untolerated taint {dedicated: gpu}."
FITS = "Pod ns1/task-3 can possibly be assigned to node1"
ROOM = "waits until there is room for its whole gang"
SHORT = "0/2 nodes are available: 2 Insufficient cpu."
NOMINATED = (
    f"is nominated for node node-7 (since {exact_moment(900)}), and waits for room"
)
GATED = "is not scheduled before its scheduling gates are removed: blocked"
SCHEDULED = [
    (
        "Schedulable",
        FITS,
        {},
        f"fits a node, and waits for the rest of its gang: {FITS}",
    ),
    (
        "Unschedulable",
        f"3/6 tasks in gang unschedulable: {GANG}",
        {},
        f"{ROOM}: 3/6 tas",
    ),
    ("Unschedulable", GANG, {}, ROOM),
    ("Undetermined", "", {}, "waits for the rest of its gang: Undetermined"),
    ("SchedulingGated", "blocked", {}, GATED),
    ("SchedulerError", "no", {}, "as the scheduler has failed: no"),
    ("Unschedulable", SHORT, {"nominatedNodeName": "node-7"}, NOMINATED),
    ("Unschedulable", TAINTED, {}, "`tolerations` in `pod` let followers"),
    ("Unschedulable", "2 Insufficient cpu.", {}, "finds no node: 2 Insufficient cpu."),
]


@pytest.mark.parametrize(("reason", "message", "status", "words"), SCHEDULED)
def test_a_pod_that_has_no_node_says_what_it_waits_for(
    reason: str, message: str, status: dict[str, Any], words: str
) -> None:
    seen = look(thing("Job"), unschedulable(0, message, reason, **status))
    assert seen.phase is Phase.PENDING
    assert words in seen.followers[0].why
    late = look(thing("Job"), unschedulable(0, message, reason, **status), schedule=10)
    assert (late.phase, late.failure) == (Phase.FAILED, Failure.CAPACITY)


def test_a_gang_that_volcanos_queue_does_not_admit_is_told() -> None:
    made = thing("Job")
    made["metadata"]["uid"] = "1234"
    waits = pod(0)
    waits["spec"].pop("nodeName", None)
    words = "Unschedulable: resource in cluster is overused"
    told = event(words, 15, "PodGroup", "podgroup-1234")
    seen = look(made, waits, warnings=warnings_by_object([told]))
    assert seen.followers[0].why == (
        "waits for a node; Volcano keeps its pods waiting: Unschedulable: resource in"
        " cluster is overused"
    )
