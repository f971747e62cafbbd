# SPDX-License-Identifier: MIT
"""A real API server accepts the pods of examples/kube, in a restricted namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from burst_kube import KubeSettings

from burst.config import convert, load
from burst.kits.pods.names import KUEUE_QUEUE
from burst.model.finding import Level
from burst.model.shape import Shape
from burst.provider import Phase
from tests.kubernetes.bursts import Bursts, wait_status

pytestmark = pytest.mark.kubernetes
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "kube"


def settings_of(bursts: Bursts, name: str) -> dict[str, Any]:
    """Return the example's settings, in the test's namespace, for any user but root."""
    table = load(EXAMPLE / name).providers["far"]
    settings = convert(KubeSettings, table.options, "providers.far")
    here = {"kubeconfig": str(bursts.lab.kubeconfig), "context": ""}
    return {
        **{key: getattr(settings, key) for key in settings.__struct_fields__},
        **here,
        "namespace": bursts.namespace,
        "user": 1000,
    }


@pytest.mark.parametrize("name", ["burst.toml", "application.toml"])
def test_its_pods_are_accepted(bursts: Bursts, name: str) -> None:
    standard = {"pod-security.kubernetes.io/enforce": "restricted"}
    path = f"/api/v1/namespaces/{bursts.namespace}"
    bursts.api.patch(path, {"metadata": {"labels": standard}})
    provider = bursts.provider(**settings_of(bursts, name))
    found = provider.examine(None)
    assert [f.what for f in found if f.level is Level.WRONG] == []
    assert any("accepts the Job and the pods of" in f.what for f in found)


def test_an_applications_job_waits_in_its_queue(bursts: Bursts) -> None:
    provider = bursts.provider(**settings_of(bursts, "application.toml"))
    spec = msgspec.structs.replace(bursts.spec, offer="gpu", shape=Shape(8, 2))
    provider.provision(spec)
    status = wait_status(provider, lambda seen: "is queued" in seen.why)
    assert status.phase is Phase.PENDING
    (job,) = bursts.objects("jobs")
    assert job["metadata"]["labels"][KUEUE_QUEUE] == "batch"
    pod = job["spec"]["template"]["spec"]
    assert [init["name"] for init in pod["initContainers"]] == ["metrics"]
    (broker,) = pod["containers"]
    assert broker["resources"]["limits"]["nvidia.com/gpu"] == "2"
    mounted = {mount["mountPath"] for mount in broker["volumeMounts"]}
    assert {"/results", "/dev/shm", "/scratch", "/home/ann/run"} <= mounted
    assert [variable["name"] for variable in broker["env"]] == ["TOKEN"]
