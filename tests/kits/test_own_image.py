# SPDX-License-Identifier: MIT
"""The image of the lead's own pod, as its API server tells it."""

from typing import Any

import pytest

from burst.errors import ConfigError, Refused
from burst.kits.kube import Cluster
from burst.kits.pods.diagnose.own_image import OwnImage, find_own_image, read_own_image
from tests.kits.kubeserver import Said

PODS = "/api/v1/namespaces/flux/pods"


def a_pod(*names: str, **more: Any) -> dict[str, Any]:
    containers = [{"name": name, "image": f"r.test/{name}:1"} for name in names]
    return {
        "metadata": {"name": "lead-0-x7k2p", **more.pop("metadata", {})},
        "spec": {"hostname": "lead-0", "containers": containers, **more},
    }


def read(
    cluster: Cluster, server: Said, *pods: dict[str, Any], host: str = "lead-0"
) -> OwnImage:
    server.answer("GET", PODS, (200, {"items": pods, "metadata": {}}))
    return read_own_image(cluster, "flux", host)


CHOSEN = {"kubectl.kubernetes.io/default-container": "a"}


@pytest.mark.parametrize(
    ("pod", "image"),
    [
        (a_pod("anything"), "anything"),
        (a_pod("istio-proxy", "broker"), "broker"),
        (a_pod("burst", "lead"), "lead"),
        (a_pod("a", "b", metadata={"labels": {"job-name": "b"}}), "b"),
        (a_pod("a", "broker", metadata={"annotations": CHOSEN}), "a"),
    ],
)
def test_the_brokers_container_is_known_by_its_name(
    cluster: Cluster, server: Said, pod: dict[str, Any], image: str
) -> None:
    assert read(cluster, server, pod) == OwnImage(f"r.test/{image}:1")


def test_a_view_is_told_too(cluster: Cluster, server: Said) -> None:
    inits = [
        {"name": "mount", "image": "r.test/mount"},
        {"name": "flux-view", "image": "r.test/view:2"},
    ]
    found = read(cluster, server, a_pod("lead", initContainers=inits))
    assert found == OwnImage("r.test/lead:1", "r.test/view:2")


DIGEST = f"sha256:{'0a' * 32}"


@pytest.mark.parametrize(
    ("image", "image_id", "found"),
    [
        ("r.test/a:1", f"r.test/a@{DIGEST}", f"r.test/a:1@{DIGEST}"),
        ("r.test:5000/a", f"r.test:5000/a@{DIGEST}", f"r.test:5000/a@{DIGEST}"),
        ("ubuntu:24", f"docker.io/library/ubuntu@{DIGEST}", f"ubuntu:24@{DIGEST}"),
        ("a/b:1", f"docker-pullable://a/b@{DIGEST}", f"a/b:1@{DIGEST}"),
        ("localhost/a:1", f"localhost/a@{DIGEST}", f"localhost/a:1@{DIGEST}"),
        # What was given by digest is that, and what no registry has has none.
        (f"r.test/a@{DIGEST}", f"r.test/a@sha256:{'1' * 64}", f"r.test/a@{DIGEST}"),
        ("r.test/a:1", DIGEST, "r.test/a:1"),
        ("r.test/a:1", f"docker.io/library/import-2026-11-22@{DIGEST}", "r.test/a:1"),
        ("r.test/a:1", "", "r.test/a:1"),
    ],
)
def test_followers_run_what_the_pod_runs_not_what_its_tag_is_now(
    cluster: Cluster, server: Said, image: str, image_id: str, found: str
) -> None:
    pod = a_pod("lead")
    pod["spec"]["containers"][0]["image"] = image
    inits = [{"name": "flux-view", "image": image}]
    pod["spec"]["initContainers"] = inits
    pod["status"] = {
        "containerStatuses": [{"name": "lead", "image": image, "imageID": image_id}],
        "initContainerStatuses": [{"name": "flux-view", "imageID": image_id}],
    }
    assert read(cluster, server, pod) == OwnImage(found, found)


def test_of_two_pods_of_one_host_it_is_the_younger(
    cluster: Cluster, server: Said
) -> None:
    old = a_pod("old", metadata={"creationTimestamp": "2026-11-01T00:00:00Z"})
    new = a_pod("new", metadata={"creationTimestamp": "2026-11-02T00:00:00Z"})
    assert read(cluster, server, new, old).image == "r.test/new:1"


def test_a_pod_of_its_own_has_its_name_as_host_name(
    cluster: Cluster, server: Said
) -> None:
    pod = a_pod("lead")
    del pod["spec"]["hostname"]
    found = read(cluster, server, pod, host="lead-0-x7k2p.flux.svc")
    assert found.image == "r.test/lead:1"


def test_what_cannot_be_told_is_an_error(cluster: Cluster, server: Said) -> None:
    with pytest.raises(ConfigError, match="containers a, b, and their names do"):
        read(cluster, server, a_pod("a", "b"))
    with pytest.raises(ConfigError, match="flux has no pod of host lead-1"):
        read(cluster, server, a_pod("a"), host="lead-1")
    server.answer("GET", PODS, (403, {"message": "it is a test"}))
    with pytest.raises(Refused, match="forbids it: list pods in namespace flux"):
        read_own_image(cluster, "flux", "lead-0")
    with pytest.raises(ConfigError, match="--image: is missing"):
        find_own_image()
