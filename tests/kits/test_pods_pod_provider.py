# SPDX-License-Identifier: MIT
"""A provider of pods but for its cluster, and a cluster that is new."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from burst.errors import NotFound, Refused
from burst.kits.kube import Cluster, Endpoint
from burst.kits.pods import (
    Bursts,
    PodBursts,
    PodProvider,
    check_burst,
    known_directories,
)
from burst.kits.pods.names import HOSTS, ID, INDEX
from burst.model.burst import BurstId
from burst.model.shape import Shape
from burst.provider import (
    Examined,
    Furnished,
    Phase,
    Probed,
    Provider,
    Resizable,
)
from tests.kits.kubeserver import Said, api_server
from tests.kits.pods import SETTINGS, TAGS, make_spec, replace

NAMESPACE = "/api/v1/namespaces/jobs"


class OnePod(PodProvider):
    """For the cluster at an address."""

    server: Said

    def bursts(self) -> Bursts:
        cluster = Cluster(Endpoint(self.server.url, "", lambda: "t"))
        return PodBursts(cluster, SETTINGS, self.tags)


def test_what_is_left_to_write_is_the_way_to_the_cluster(tmp_path: Path) -> None:
    provider = OnePod("far", SETTINGS, "owner")
    assert isinstance(provider, Provider)
    assert isinstance(provider, Examined)
    assert isinstance(provider, Probed)
    (offer,) = provider.offers()
    assert (offer.name, offer.max_nodes) == ("nodes", 4)
    assert isinstance(provider, Furnished)
    assert provider.directories() == known_directories(SETTINGS)
    with api_server() as provider.server:
        empty: tuple[int, Any] = 200, {"items": []}
        for kind in ("pods", "configmaps", "secrets", "services"):
            provider.server.answer("GET", f"{NAMESPACE}/{kind}", empty)
        provider.server.answer("GET", "/apis/batch/v1/namespaces/jobs/jobs", empty)
        assert provider.observe() == []
        with pytest.raises(NotFound):
            provider.reap(BurstId("No Name"))
        assert provider.examine(None)


def test_only_bursts_without_a_queue_can_be_resized() -> None:
    """Kueue would stop a Job whose size changes, with the followers that stay."""
    for form in ("job", "operator"):
        settings = replace(SETTINGS, form=form)
        assert isinstance(OnePod("far", settings, "owner"), Resizable)
        queued = replace(settings, queue="batch")
        assert not isinstance(OnePod("far", queued, "owner"), Resizable)


def test_without_that_it_says_what_is_missing() -> None:
    with pytest.raises(TypeError, match="abstract method"):
        PodProvider("far", SETTINGS, "owner")  # type: ignore[abstract]


def test_in_a_cluster_of_their_own_bursts_have_their_namespace_made(
    tmp_path: Path,
) -> None:
    absent = 404, {"kind": "Status", "details": {"name": "x", "kind": "namespaces"}}
    with api_server() as server:
        server.answer("GET", NAMESPACE, absent)
        server.answer("PATCH", NAMESPACE, (201, {}))
        cluster = Cluster(Endpoint(server.url, "", lambda: "t"))
        bursts = PodBursts(cluster, SETTINGS, TAGS, own_cluster=True)
        for _ in range(2):  # what follows is answered 404, as by no API server
            with pytest.raises(Refused, match="has no such resource"):
                bursts.provision(make_spec(tmp_path))
        asked = [method for method, path, _ in server.asked if "jobs?" in path]
        assert asked.count("PATCH") == 1


def test_what_no_cluster_could_run_is_refused_before_there_is_one(
    tmp_path: Path,
) -> None:
    spec = make_spec(tmp_path)
    check_burst(spec, SETTINGS, TAGS)
    with pytest.raises(Refused, match="fewer cores"):
        check_burst(replace(spec, shape=Shape(64)), SETTINGS, TAGS)
    absent = replace(SETTINGS, operator_yaml=str(tmp_path / "none.yaml"))
    with pytest.raises(Refused, match=r"none\.yaml"):
        check_burst(spec, absent, TAGS)


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("connect delayed/closed", "burst-0-0 it cannot connect to tcp://h:1: nothing"),
        ("connected/handshake failed: Broken pipe", "burst-0-0 the lead does not"),
        ("connected/handshake succeeded", ""),
    ],
)
def test_why_a_pod_that_runs_does_not_join_is_in_its_log(log: str, words: str) -> None:
    said = "".join(f"<7>x: parent sockevent tcp://h:1 {e}\n" for e in log.split("/"))
    labels = {ID: "burst-0-1a2b3c", INDEX: "0"}
    meta = {"uid": "u", "labels": labels, "annotations": {HOSTS: "burst-0-0"}}
    running = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    pod = {
        "metadata": {**meta, "name": "p0"},
        "spec": {"nodeName": "n", "containers": [{"name": "broker"}]},
        "status": {"containerStatuses": [{"name": "broker", "state": running}]},
    }
    with api_server() as server:
        for kind in ("configmaps", "secrets", "services", "events"):
            server.answer("GET", f"{NAMESPACE}/{kind}", (200, {"items": []}))
        job = {"metadata": {**meta, "name": "j"}}
        jobs = "/apis/batch/v1/namespaces/jobs/jobs"
        server.answer("GET", jobs, (200, {"items": [job]}))
        server.answer("GET", f"{NAMESPACE}/pods", (200, {"items": [pod]}))
        server.answer("GET", f"{NAMESPACE}/pods/p0/log", (200, said))
        cluster = Cluster(Endpoint(server.url, "", lambda: "t"))
        (status,) = PodBursts(cluster, SETTINGS, TAGS).observe()
    assert status.phase is Phase.RUNNING
    assert status.why.startswith(words)
    assert bool(status.why) == bool(words)
