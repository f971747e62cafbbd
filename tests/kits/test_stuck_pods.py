# SPDX-License-Identifier: MIT
"""Pods that do not end: whose object is deleted without their kubelet."""

from typing import Any

import pytest

from burst.errors import Transient
from burst.kits.kube.kinds import Manifest
from burst.kits.pods.lifecycle.stuck_pods import delete_stuck
from burst.kits.pods.names import HOSTS, ID
from burst.kits.pods.status.burst_objects import group_by_burst
from burst.kits.pods.status.describe import describe
from burst.kits.pods.status.kept_object import kept
from burst.provider import Phase
from tests.kits.kubeserver import ABSENT, Said, cluster_of

NOW = 1000.0
LATE = "1970-01-01T00:15:39Z"  # 61 s before
SOON = "1970-01-01T00:15:41Z"

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/far/pods"


def pod(name: str, node: str = "n", ends: str = LATE) -> Manifest:
    meta: dict[str, Any] = {"name": name, "namespace": "far", "uid": name}
    if ends:
        meta["deletionTimestamp"] = ends
    return {"kind": "Pod", "metadata": meta, "spec": {"nodeName": node}}


def node(ready: str) -> tuple[int, Any]:
    conditions = [
        {"type": "MemoryPressure", "status": "Unknown"},
        {"type": "Ready", "status": ready},
    ]
    return 200, {"metadata": {"name": "n"}, "status": {"conditions": conditions}}


@pytest.fixture
def server(server: Said) -> Said:
    for name in ("a", "b"):
        server.answer("DELETE", f"{PODS}/{name}", (200, {}))
    return server


def deleted(server: Said, *pods: Manifest, force: bool = False) -> list[str]:
    """Return the pods that were deleted, in order."""
    delete_stuck(cluster_of(server), "far", map(kept, pods), NOW, force=force)
    asked = zip(server.asked, server.bodies, strict=True)
    found = [(path, body) for (how, path, _), body in asked if how == "DELETE"]
    for path, body in found:
        assert body["gracePeriodSeconds"] == 0
        assert body["preconditions"] == {"uid": path[-1]}
    return [path[-1] for path, _ in found]


@pytest.mark.parametrize("answer", [ABSENT, node("Unknown"), node("False"), (200, {})])
def test_pods_on_a_dead_node_are_not_waited_for(server: Said, answer: Any) -> None:
    server.answer("GET", f"{NODES}/n", answer)
    assert deleted(server, pod("a"), pod("b")) == ["a", "b"]
    assert [how for how, _, _ in server.asked].count("GET") == 1


@pytest.mark.parametrize("answer", [node("True"), (403, {"message": "cannot"})])
def test_others_are_waited_for(server: Said, answer: Any) -> None:
    """Also where the node cannot be read, as that right is optional."""
    server.answer("GET", f"{NODES}/n", answer)
    assert deleted(server, pod("a")) == []


@pytest.mark.parametrize(
    "young", [pod("a", ends=SOON), pod("a", ends=""), pod("a", node="")]
)
def test_a_pod_has_its_time_to_end(server: Said, young: Manifest) -> None:
    server.answer("GET", f"{NODES}/n", ABSENT)
    assert deleted(server, young, pod("b")) == ["b"]


def test_a_pod_has_its_time_by_the_clock_of_the_api_server(server: Said) -> None:
    server.answer("GET", "/version", (200, {}))
    server.answer("GET", f"{NODES}/n", ABSENT)
    server.ahead = -600.0
    cluster = cluster_of(server)
    cluster.version()
    delete_stuck(cluster, "far", [kept(pod("a"))], NOW)
    assert {how for how, _, _ in server.asked} == {"GET"}


def test_by_force_all_that_are_ending_are_deleted(server: Said) -> None:
    assert deleted(server, pod("a", ends=SOON), pod("b", ends=""), force=True) == ["a"]
    server.answer("DELETE", f"{PODS}/a", (500, {}))
    with pytest.raises(Transient):
        deleted(server, pod("a"), force=True)


MAY_BE_DEAD = "a should have ended, so its node n may be dead: `burst down --force b`"
KEPT = "a has ended, but its finalizers keep it (acme.io/hold)"


@pytest.mark.parametrize(
    ("ends", "phase", "told"),
    [
        (LATE, "Running", MAY_BE_DEAD),
        (SOON, "Running", ""),
        (LATE, "Failed", KEPT),
        (SOON, "Failed", ""),
    ],
)
def test_what_to_do_is_told(ends: str, phase: str, told: str) -> None:
    job: Manifest = {"kind": "Job", "metadata": {"deletionTimestamp": SOON}}
    job["metadata"] |= {"name": "b", "annotations": {HOSTS: "h"}}
    stuck = {**pod("a", ends=ends), "status": {"phase": phase}}
    stuck["metadata"]["finalizers"] = ["acme.io/hold"]
    for item in (job, stuck):
        item["metadata"]["labels"] = {ID: "b"}
    (found,) = group_by_burst(map(kept, [job, stuck]))
    status = describe(found, {}, {}, 300, NOW)
    assert status.phase is Phase.ENDING
    for words in (MAY_BE_DEAD, KEPT):
        assert (words in status.why) is (words == told)


@pytest.mark.parametrize("order", [1, -1])
def test_a_pod_on_a_dead_node_is_told_before_one_that_is_kept(order: int) -> None:
    """What a person can do by force is told."""
    stuck = {**pod("a"), "status": {"phase": "Running"}}
    held = {**pod("c"), "status": {"phase": "Failed"}}
    held["metadata"]["finalizers"] = ["acme.io/hold"]
    job: Manifest = {"kind": "Job", "metadata": {"deletionTimestamp": SOON}}
    job["metadata"] |= {"name": "b", "annotations": {HOSTS: "h"}}
    items = [job, *[stuck, held][::order]]
    for item in items:
        item["metadata"]["labels"] = {ID: "b"}
    (found,) = group_by_burst(map(kept, items))
    assert MAY_BE_DEAD in describe(found, {}, {}, 300, NOW).why
