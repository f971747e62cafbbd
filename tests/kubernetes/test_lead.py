# SPDX-License-Identifier: MIT
"""The lead of manifests/ on a real API server: evicted, and given a new image."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubernetes.access import AnyCluster
from tests.kubernetes.kustomize import MANIFESTS, apply_all, build
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kubernetes
IMAGE = f"r.example/burst@sha256:{'0a' * 32}"
KEPT = ("service/burst-lead", "persistentvolumeclaim/burst-state")
"""What the lead's owner tag and its records rest on."""
PAUSE_S = 0.5
"""Between two looks, which are programs."""
CLUSTER_WIDE = ("ClusterRole", "ClusterRoleBinding")
# No volumes are provisioned here, and a pod would wait for one.
NO_DISK = {
    "target": {"kind": "Job", "name": "lead"},
    "patch": """
- op: test
  path: /spec/template/spec/volumes/3/name
  value: state
- op: replace
  path: /spec/template/spec/volumes/3
  value: {name: state, emptyDir: {}}
""",
}


class Lead:
    """`overlays/plain` in a namespace, without what is in none."""

    def __init__(self, cluster: AnyCluster, namespace: str, folder: Path) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self._folder = folder

    def apply(self, **fields: Any) -> str:
        """Apply it as `kubectl apply -k` does; `fields` are of the kustomization."""
        given = {"namespace": self.namespace, "patches": [NO_DISK], **fields}
        built = build(self.cluster, self._folder, "overlays/plain", **given)
        items = [
            thing
            for thing in yaml.safe_load_all(built.read_text())
            if thing["kind"] not in CLUSTER_WIDE
        ]
        for item in items:
            for port in item["spec"]["ports"] if item["kind"] == "Service" else ():
                port.pop("nodePort", None)  # another test may have it
        return apply_all(self.cluster, items)

    def get(self, *what: str) -> dict[str, Any]:
        found = self.cluster.kubectl("get", *what, "-n", self.namespace, "-o", "json")
        return dict(json.loads(found))

    def pods(self) -> list[dict[str, Any]]:
        """Return the lead's pods that are not being deleted."""
        found = self.get("pods", "-l", "job-name=lead")["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def wait_for_pod(self) -> dict[str, Any]:
        """Return its pod, once the budget counts it as healthy.

        A Job's controller waits for ten seconds and longer before it replaces a pod,
        also for the next Job of the name.
        """

        def counted() -> bool:
            status = self.get("poddisruptionbudget", "burst-lead").get("status", {})
            return bool(self.pods()) and status.get("currentHealthy") == 1

        wait_until(counted, self.look, pause=PAUSE_S)
        return self.pods()[0]

    def look(self) -> str:
        """Return what there is, and what was said of it."""
        kinds = "job,pod,poddisruptionbudget,event"
        wide = ("-n", self.namespace, "-o", "wide")
        return self.cluster.kubectl("get", kinds, *wide)

    def images(self) -> set[str]:
        """Return those of its pod's containers."""
        spec = self.wait_for_pod()["spec"]
        return {each["image"] for each in spec["initContainers"] + spec["containers"]}


@pytest.fixture
def lead(cluster: AnyCluster, namespace: str, tmp_path: Path) -> Iterator[Lead]:
    yield Lead(cluster, namespace, tmp_path)
    # Its port on the nodes is free for the next.
    cluster.kubectl("delete", "service", "--all", "-n", namespace)


def test_the_leads_pod_is_not_evicted_and_can_be_deleted(lead: Lead) -> None:
    lead.apply()
    name = lead.wait_for_pod()["metadata"]["name"]
    path = f"/api/v1/namespaces/{lead.namespace}/pods/{name}/eviction"
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": lead.namespace},
    }
    ask = ("create", "--raw", path, "-f", "-")
    with pytest.raises(RuntimeError, match="disruption budget"):
        lead.cluster.kubectl(*ask, manifest=eviction)
    assert [pod["metadata"]["name"] for pod in lead.pods()] == [name]
    quick = ("--grace-period=0", "--force")
    lead.cluster.kubectl("delete", "pod", name, "-n", lead.namespace, *quick)

    def has_next() -> bool:
        return any(pod["metadata"]["name"] != name for pod in lead.pods())

    wait_until(has_next, lead.look, pause=PAUSE_S)


def test_a_new_image_is_applied_once_the_job_is_deleted(lead: Lead) -> None:
    """README.md says so: a Job's template cannot be changed."""
    image = {"name": "flux-burst-orchestrator", "newName": IMAGE.partition("@")[0]}
    new = {"images": [{**image, "digest": IMAGE.partition("@")[2]}]}
    lead.apply()
    assert IMAGE not in lead.images()
    before = [lead.get(what)["metadata"]["uid"] for what in KEPT]
    with pytest.raises(RuntimeError, match="field is immutable"):
        lead.apply(**new)
    delete = ("delete", "job/lead", "-n", lead.namespace, "--cascade=foreground")
    lead.cluster.kubectl(*delete)
    lead.apply(**new)
    assert IMAGE in lead.images()
    assert [lead.get(what)["metadata"]["uid"] for what in KEPT] == before
    # Nothing else has changed since, so it can be applied again.
    assert "job.batch/lead" in lead.apply(**new)


def test_the_lead_has_the_priority_of_the_sites_class(
    lead: Lead, tmp_path: Path
) -> None:
    name = f"burst-lead-{lead.namespace}"
    made = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": 4711,
    }
    copy = tmp_path / "priority"
    copy.mkdir()
    text = (MANIFESTS / "parts/priority/kustomization.yaml").read_text()
    named = text.replace("value: burst-lead", f"value: {name}")
    assert named != text
    (copy / "kustomization.yaml").write_text(named)
    part = os.path.relpath(copy, tmp_path.resolve())
    lead.cluster.kubectl("create", "-f", "-", manifest=made)
    try:
        lead.apply(components=[part])
        assert lead.wait_for_pod()["spec"]["priority"] == 4711
    finally:
        lead.cluster.kubectl("delete", "priorityclass", name)
