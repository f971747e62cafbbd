# SPDX-License-Identifier: MIT
"""What the size of a pool needs of the pods: messages of an API server's shape."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from burst_gke.followers import (
    GKE_LEAVING,
    GKE_LEAVING_SINCE,
    GkePods,
    LeavingHosts,
    Members,
    Placement,
)

from burst.kits.pods import Tags
from burst.kits.pods.names import HOSTS, INDEX
from burst.model.burst import BurstId
from tests.kits.kubeserver import ABSENT, Said, api_server, cluster_of
from tests.plugins.gke.build import settings

BURST = BurstId("burst-0-aaaaaa")
TAGS = Tags("owner-a", "gke")
JOBS = "/apis/batch/v1/namespaces/flux-burst/jobs"
JOB = f"{JOBS}/{BURST}"
PODS = "/api/v1/namespaces/flux-burst/pods"


@pytest.fixture
def said() -> Iterator[Said]:
    with api_server() as found:
        yield found


@pytest.fixture
def pods(said: Said) -> Iterator[GkePods]:
    found = settings(cluster="shared", namespace="flux-burst")
    with closing(cluster_of(said)) as cluster:
        yield GkePods(cluster, found, TAGS)


def job(annotations: dict[str, str], **more: Any) -> dict[str, Any]:
    meta = {
        "name": BURST,
        "namespace": "flux-burst",
        "uid": "u-1",
        "labels": TAGS.labels(BURST),
        "annotations": annotations,
    }
    return {"metadata": {**meta, **more}, "spec": {}}


def pod(index: int, node: str, **more: Any) -> dict[str, Any]:
    meta = {
        "name": f"{BURST}-{index}-x",
        "labels": {**TAGS.labels(BURST), INDEX: str(index)},
        "annotations": {HOSTS: "b-[0-2]"},
    }
    return {
        "metadata": {**meta, **more},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": "Running"},
    }


def members_of(pods: GkePods) -> Members:
    found = pods.members(BURST)
    assert found is not None
    return found


def test_each_pod_is_told_with_its_host_and_its_node(said: Said, pods: GkePods) -> None:
    said.serve(JOBS, job({HOSTS: "b-[0-1]"}))
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    said.serve(PODS, pod(0, "n-0"), pod(1, ""), pod(2, "n-2", **ending))
    members = members_of(pods)
    assert members.hosts == ("b-0", "b-1")
    assert members.pods == (
        Placement("b-0", "n-0"),
        Placement("b-1", ""),
        Placement("b-2", "n-2"),
    )
    assert not members.ending
    said.serve(JOBS, job({HOSTS: "b-0"}, **ending))
    assert members_of(pods).ending


def test_a_pod_that_ended_has_no_node_any_more(said: Said, pods: GkePods) -> None:
    """A spot VM that is taken back leaves one, and then it would hold VMs for ever."""
    said.serve(JOBS, job({HOSTS: "b-0"}))
    ended = {**pod(0, "n-gone"), "status": {"phase": "Failed"}}
    said.serve(PODS, ended, pod(0, "n-0"), pod(1, "n-1"))
    assert members_of(pods).pods == (
        Placement("b-0", ""),
        Placement("b-0", "n-0"),
        Placement("b-1", "n-1"),
    )


OTHERS = {"labels": Tags("owner-b", "gke").labels(BURST)}


@pytest.mark.parametrize(
    "answer",
    [ABSENT, (200, job({GKE_LEAVING: "b-2"}, **OTHERS))],
    ids=["no Job", "another owner's"],
)
def test_without_its_job_there_are_no_members(
    said: Said, pods: GkePods, answer: Any
) -> None:
    said.serve(JOBS)
    said.serve(PODS, pod(0, "n-0"))
    said.answer("GET", JOB, answer)
    assert pods.members(BURST) is None
    assert pods.leaving(BURST) == LeavingHosts()
    pods.note(BURST, LeavingHosts(("b-1",), 5.0))
    assert {method for method, _, _ in said.asked} == {"GET"}


def test_a_job_that_was_made_for_a_minicluster_has_no_members(
    said: Said, pods: GkePods
) -> None:
    """Then the pods are asked to resize, and refuse a burst of the other form."""
    owner = {"kind": "MiniCluster", "name": BURST}
    said.serve(JOBS, job({HOSTS: "b-0"}, ownerReferences=[owner]))
    said.serve(PODS, pod(0, "n-0"))
    assert pods.members(BURST) is None


def test_what_is_given_back_is_noted_at_the_job(said: Said, pods: GkePods) -> None:
    said.answer("GET", JOB, (200, job({HOSTS: "b-[0-3]"})))
    said.answer("PATCH", JOB, (200, job({})))
    pods.note(BURST, LeavingHosts(("b-2", "b-3"), 1_800_000_000.4))
    pods.note(BURST, LeavingHosts())
    first, second = (each for each in said.bodies if each)
    assert first["metadata"]["annotations"] == {
        GKE_LEAVING: "b-[2-3]",
        GKE_LEAVING_SINCE: "1800000000",
    }
    assert first["metadata"]["uid"] == "u-1"
    assert second["metadata"]["annotations"] == {
        GKE_LEAVING: None,
        GKE_LEAVING_SINCE: None,
    }


@pytest.mark.parametrize(
    ("noted", "leaving"),
    [
        ({}, LeavingHosts()),
        (
            {GKE_LEAVING: "b-[2-3]", GKE_LEAVING_SINCE: "77"},
            LeavingHosts(("b-2", "b-3"), 77.0),
        ),
        ({GKE_LEAVING: "b-[2-", GKE_LEAVING_SINCE: "77"}, LeavingHosts((), 77.0)),
        ({GKE_LEAVING: "b-2", GKE_LEAVING_SINCE: "soon"}, LeavingHosts(("b-2",), 0.0)),
    ],
)
def test_what_is_noted_is_read_again(
    said: Said, pods: GkePods, noted: dict[str, str], leaving: LeavingHosts
) -> None:
    said.answer("GET", JOB, (200, job(noted)))
    assert pods.leaving(BURST) == leaving
