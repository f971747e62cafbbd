# SPDX-License-Identifier: MIT
"""Files of manifests that are none, and what a cluster is asked for the others."""

from pathlib import Path

import pytest

from burst.errors import NotFound, Refused, Transient
from burst.kits.kube import Cluster, install
from burst.kits.kube.kinds import CONFIG_MAP, JOB, POD, SECRET, SERVICE
from burst.kits.pods import PodBursts
from tests.kits.kubeserver import ABSENT, Said
from tests.kits.pods import SETTINGS, TAGS, make_spec, replace

OTHERS = JOB, POD, CONFIG_MAP, SECRET, SERVICE
MANIFEST = """\
---
apiVersion: v1
kind: Namespace
metadata: {name: operator-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: operator}
"""


@pytest.fixture
def server(server: Said) -> Said:
    namespaces = {"name": "namespaces", "kind": "Namespace", "namespaced": False}
    server.answer("GET", "/api/v1", (200, {"resources": [namespaces]}))
    parts = {"name": "deployments/scale", "kind": "Deployment", "namespaced": True}
    deployments = {**parts, "name": "deployments"}
    server.answer("GET", "/apis/apps/v1", (200, {"resources": [parts, deployments]}))
    there = 200, {"metadata": {"name": "operator-system"}}
    server.answer("GET", "/api/v1/namespaces/operator-system", there)
    return server


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read as YAML"),
        ("a: [", "cannot be read as YAML"),
        ("", "has no object"),
        ("- a\n", "not a Kubernetes object"),
        ("apiVersion: v1\nkind: Secret\n", "not a Kubernetes object"),
    ],
)
def test_a_file_that_holds_no_manifests(
    cluster: Cluster, tmp_path: Path, text: str | None, words: str
) -> None:
    path = tmp_path / "operator.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(Refused, match=words):
        install(cluster, path)


def test_a_kind_that_the_cluster_does_not_know(
    cluster: Cluster, tmp_path: Path
) -> None:
    path = tmp_path / "operator.yaml"
    path.write_text("apiVersion: x.io/v1\nkind: Odd\nmetadata: {name: a}\n")
    with pytest.raises(Refused, match=r"has no kind Odd of x\.io/v1"):
        install(cluster, path)


def test_no_burst_is_made_before_its_operator_is_there(
    server: Said, cluster: Cluster, tmp_path: Path
) -> None:
    path = tmp_path / "operator.yaml"
    path.write_text(MANIFEST)
    settings = replace(SETTINGS, form="operator", operator_yaml=str(path))
    bursts = PodBursts(cluster, settings, TAGS)
    spec = make_spec(tmp_path)
    # Nothing can be of a kind that is yet to be installed, and all else is read.
    for kind in OTHERS:
        server.serve(kind.path("jobs"))
        named = kind.path("jobs", spec.burst_id)
        server.answer("GET", named, ABSENT)
        server.answer("GET", f"{named}-entrypoint", ABSENT)
    assert bursts.observe() == []
    with pytest.raises(NotFound):
        bursts.reap(spec.burst_id)
    where = "/apis/apps/v1/namespaces/default/deployments/operator"
    server.answer("GET", where, ABSENT)
    server.answer("PATCH", where, (201, {}))
    with pytest.raises(Transient, match="not ready yet: Deployment operator"):
        bursts.provision(spec)
    asked = [(method, path) for method, path, _ in server.asked if method == "PATCH"]
    assert [path.partition("?")[0] for _, path in asked] == [where]
    condition = {"type": "Available", "status": "True"}
    server.answer("GET", where, (200, {"status": {"conditions": [condition]}}))
    # It is there now: the burst's own objects come next, of which this server has none.
    with pytest.raises(Refused, match="its CRD is not installed"):
        bursts.provision(spec)
