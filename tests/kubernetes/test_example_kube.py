# SPDX-License-Identifier: MIT
"""A real API server accepts the pods of examples, in a restricted namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from burst_kube.provider import KubeSettings

from burst.config import Seconds, convert, load
from burst.kits.pods.names import KUEUE_QUEUE
from burst.model.finding import Level
from burst.model.shape import Shape
from tests.kubernetes.bursts import Bursts, reap_all
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kubernetes
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
APPLICATION = "kube/application.toml"


def settings_of(bursts: Bursts, name: str) -> dict[str, Any]:
    """Return the example's settings, in the test's namespace, for any user but root."""
    table = load(EXAMPLES / name).providers["far"]
    settings = convert(KubeSettings, table.options, "providers.far")
    here = {"kubeconfig": str(bursts.lab.kubeconfig), "context": ""}
    return {
        **{key: getattr(settings, key) for key in settings.__struct_fields__},
        **here,
        "timeout": Seconds(120),
        "namespace": bursts.namespace,
        "user": 1000,
        "one_per_node": False,  # other tests' pods are on the same nodes
    }


@pytest.mark.parametrize("name", ["kube/burst.toml", APPLICATION, "service/burst.toml"])
def test_its_pods_are_accepted(bursts: Bursts, name: str) -> None:
    standard = {"pod-security.kubernetes.io/enforce": "restricted"}
    path = f"/api/v1/namespaces/{bursts.namespace}"
    bursts.api.patch(path, {"metadata": {"labels": standard}})
    provider = bursts.provider(**settings_of(bursts, name))
    found = provider.examine(None)
    assert [f.what for f in found if f.level is Level.WRONG] == []
    assert any("accepts the Job and the pods of" in f.what for f in found)


def test_an_applications_pods_have_all_of_it_once_the_queue_starts_it(
    bursts: Bursts,
) -> None:
    """The queue is played: Kueue starts a Job by ending its suspension."""
    provider = bursts.provider(**settings_of(bursts, APPLICATION))
    spec = msgspec.structs.replace(bursts.spec, offer="gpu", shape=Shape(8, 2))
    provider.provision(spec)
    (job,) = bursts.objects("jobs")
    assert job["metadata"]["labels"][KUEUE_QUEUE] == "batch"
    path = f"/apis/batch/v1/namespaces/{bursts.namespace}/jobs"
    name = job["metadata"]["name"]
    bursts.api.patch(f"{path}/{name}", {"spec": {"suspend": False}})
    count = len(spec.hosts)
    wait_until(lambda: len(bursts.objects("pods")) == count, provider.observe)
    for pod in bursts.objects("pods"):
        assert KUEUE_QUEUE not in pod["metadata"]["labels"]
        assert pod["metadata"]["labels"]["team"] == "physics"
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        claim = volumes["results"]["persistentVolumeClaim"]
        assert claim == {"claimName": "results"}
        (sidecar,) = pod["spec"]["initContainers"]
        assert (sidecar["name"], sidecar["restartPolicy"]) == ("metrics", "Always")
        (broker,) = pod["spec"]["containers"]
        assert broker["resources"]["requests"]["nvidia.com/gpu"] == "2"
        mounted = {mount["mountPath"] for mount in broker["volumeMounts"]}
        assert {"/results", "/dev/shm", "/scratch", "/home/ann/run"} <= mounted
        given = {variable["name"] for variable in broker["env"]}
        assert given == {"TOKEN", "JOB_COMPLETION_INDEX"}, "the latter by Kubernetes"
        tolerated = [each.get("key") for each in pod["spec"]["tolerations"]]
        assert "nvidia.com/gpu" in tolerated
    reap_all(provider, spec)


def test_a_service_is_in_the_pods_beside_the_broker(bursts: Bursts) -> None:
    provider = bursts.provider(**settings_of(bursts, "service/burst.toml"))
    spec = msgspec.structs.replace(bursts.spec, offer="std")
    provider.provision(spec)
    count = len(spec.hosts)
    wait_until(lambda: len(bursts.objects("pods")) == count, provider.observe)
    for pod in bursts.objects("pods"):
        (service,) = pod["spec"]["initContainers"]
        (broker,) = pod["spec"]["containers"]
        mounted = [
            [m["mountPath"] for m in each["volumeMounts"] if m["name"] == "socket"]
            for each in (service, broker)
        ]
        assert mounted == [["/burst/socket"], ["/burst/socket"]]
        secrets = {m["name"] for m in service["volumeMounts"]}
        assert secrets == {"socket", "service"}
    reap_all(provider, spec)
