# SPDX-License-Identifier: MIT
"""Pods that do not end, and when a burst counts as deleted."""

from typing import Any

import pytest

from burst.errors import Transient
from burst.kits.kube.kinds import Manifest
from burst.kits.pods.lifecycle.reaper import Reaper
from burst.kits.pods.lifecycle.stuck_pods import delete_stuck
from burst.kits.pods.names import ALONE_SINCE, HOSTS, ID
from burst.kits.pods.status.burst_objects import group_by_burst
from burst.kits.pods.status.describe import describe
from burst.model.burst import BurstId
from burst.provider import Phase
from tests.kits.kubeserver import ABSENT, Said, cluster_of
from tests.kits.pods import SETTINGS, TAGS, replace

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
    delete_stuck(cluster_of(server), pods, NOW, force=force)
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


def test_by_force_all_that_are_ending_are_deleted(server: Said) -> None:
    assert deleted(server, pod("a", ends=SOON), pod("b", ends=""), force=True) == ["a"]
    server.answer("DELETE", f"{PODS}/a", (500, {}))
    with pytest.raises(Transient):
        deleted(server, pod("a"), force=True)


@pytest.mark.parametrize(("ends", "told"), [(LATE, True), (SOON, False)])
def test_what_to_do_is_told(ends: str, told: bool) -> None:
    job: Manifest = {"kind": "Job", "metadata": {"deletionTimestamp": SOON}}
    job["metadata"] |= {"name": "b", "annotations": {HOSTS: "h"}}
    stuck = pod("a", ends=ends)
    for item in (job, stuck):
        item["metadata"]["labels"] = {ID: "b"}
    (found,) = group_by_burst([job, stuck])
    status = describe(found, {}, {}, 300, NOW)
    assert status.phase is Phase.ENDING
    words = "a should have ended, so its node n may be dead: `burst down --force b`"
    assert (words in status.why) is told


BURST = BurstId("burst-0-aaaaaa")
CORE = "/api/v1/namespaces/jobs"
JOBS = "/apis/batch/v1/namespaces/jobs/jobs"
MINICLUSTERS = "/apis/flux-framework.org/v1alpha2/namespaces/jobs/miniclusters"
MARKER = f"{CORE}/configmaps/{BURST}"
TAKEN = 409, {"kind": "Status", "reason": "AlreadyExists"}
FORBIDDEN = 403, {"kind": "Status", "reason": "Forbidden"}


@pytest.mark.parametrize(
    ("answers", "looks"),
    [([TAKEN, TAKEN, (201, {})], 3), ([FORBIDDEN], 1)],
    ids=["it goes later", "it cannot be known"],
)
def test_a_minicluster_is_not_gone_before_its_secret(
    server: Said, answers: list[tuple[int, Any]], looks: int
) -> None:
    """All that can be listed is gone for long, but for the marker."""
    server.serve_nothing()
    server.serve(MINICLUSTERS)
    meta: dict[str, Any] = {"name": BURST, "namespace": "jobs", "uid": "u"}
    meta["labels"] = TAGS.labels(BURST)
    marker = {"metadata": {**meta, "annotations": {ALONE_SINCE: "100"}}}
    server.serve(f"{CORE}/configmaps", marker)
    for kind in (MINICLUSTERS, JOBS, f"{CORE}/services"):
        server.answer("GET", f"{kind}/{BURST}", ABSENT)
    server.answer("GET", f"{MARKER}-entrypoint", ABSENT)
    server.answer("POST", f"{CORE}/secrets", *answers)
    server.answer("DELETE", MARKER, (200, {}))
    reaper = Reaper(cluster_of(server), replace(SETTINGS, form="operator"), TAGS)

    def deletions() -> list[str]:
        return [path for method, path, _ in server.asked if method == "DELETE"]

    for _ in range(looks):
        assert not deletions()
        reaper.reap(BURST, 200.0)
    assert deletions() == [MARKER]
    asked = [path for method, path, _ in server.asked if method == "POST"]
    assert all("dryRun=All" in path for path in asked)
