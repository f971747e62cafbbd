# SPDX-License-Identifier: MIT
"""`pod` of the settings, and the words for it, on a real API server."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from burst_kube.provider import KubeProvider

from burst.kits.kube.kinds import labels_of
from burst.kits.pods import OfferTable
from burst.kits.pods.names import OWNER
from burst.model.finding import Level
from burst.provider import Phase
from tests.kubernetes.bursts import Bursts, reap_all, wait_status
from tests.support.pod_words import CLAIM, SHM, pod_words

pytestmark = pytest.mark.kubernetes
ACCOUNT = "example.org/account"

SECRET = {"secretKeyRef": {"name": "app", "key": "token", "optional": True}}
POD: dict[str, Any] = {
    "metadata": {"labels": {"team": "physics"}, "annotations": {"note": "x"}},
    "spec": {
        "priorityClassName": "system-cluster-critical",
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "initContainers": [{"name": "fetch", "image": "local.test/fetch:1"}],
        "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
            }
        ],
        "containers": [
            {
                "name": "broker",
                "env": [{"name": "TOKEN", "valueFrom": SECRET}],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
            },
            {"name": "metrics", "image": "local.test/exporter:1"},
        ],
    },
}


def wrong(provider: KubeProvider) -> list[str]:
    return [f.what for f in provider.examine(None) if f.level is Level.WRONG]


def test_pods_have_what_the_settings_add(bursts: Bursts) -> None:
    """And each object has the labels that a site's policies may demand."""
    provider = bursts.provider(pod=POD, object_labels={ACCOUNT: "chem & {bank}"})
    assert wrong(provider) == []
    bursts.spec = msgspec.structs.replace(bursts.spec, banks=("bio",))
    provider.provision(bursts.spec)
    assert wait_status(provider, lambda s: s.phase is Phase.RUNNING).why == ""
    for pod in bursts.objects("pods"):
        spec = pod["spec"]
        assert pod["metadata"]["labels"]["team"] == "physics"
        assert pod["metadata"]["annotations"]["note"] == "x"
        assert spec["priorityClassName"] == "system-cluster-critical"
        assert "gpu" in [t.get("key") for t in spec["tolerations"]]
        assert [c["name"] for c in spec["initContainers"]] == ["fetch"]
        assert [c["name"] for c in spec["containers"]] == ["broker", "metrics"]
        broker = spec["containers"][0]
        assert {"name": "TOKEN", "valueFrom": SECRET} in broker["env"]
        assert "/data" in [mount["mountPath"] for mount in broker["volumeMounts"]]
        assert broker["command"] == ["/bin/sh", "/burst/config/start"]
    for kind in ("jobs", "pods", "configmaps", "secrets"):
        made = [o for o in bursts.objects(kind) if OWNER in labels_of(o)]
        assert {labels_of(thing)[ACCOUNT] for thing in made} == {"chem-bio"}
    reap_all(provider, bursts.spec)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "field": ({"schedulerNam": "x"}, 'unknown field "spec.template.spec.schedulerNam"'),
    "value": (
        {"tolerations": [{"key": "a", "operator": "Is"}]},
        "tolerations[0].operator",
    ),
    "image": (
        {"containers": [{"name": "more"}]},
        "containers[1].image: Required value",
    ),
    "priority": ({"priorityClassName": "none"}, "no PriorityClass with name none"),
    "runtime": ({"runtimeClassName": "none"}, 'RuntimeClass "none" not found'),
}
"""By offer: what its pods are to have, and what the API server says of that."""


def test_the_doctor_finds_what_the_api_server_does_not_accept(bursts: Bursts) -> None:
    offers = {
        name: OfferTable(cores=1, max_nodes=4, pod={"spec": spec})
        for name, (spec, _) in REFUSED.items()
    }
    provider = bursts.provider(offers={**bursts.settings.offers, **offers})
    found = dict(zip(sorted(REFUSED), sorted(wrong(provider)), strict=True))
    for name, why in found.items():
        assert f"offer {name}: " in why
        assert REFUSED[name][1] in why
    assert bursts.objects("jobs") == bursts.objects("pods") == []


@pytest.mark.usefixtures("miniclusters")
def test_a_minicluster_is_accepted_with_what_it_has_fields_for(bursts: Bursts) -> None:
    storage = pod_words(
        volumes={"/results": CLAIM, "/dev/shm": SHM},
        read_only={
            "/keys": {"secret": {"secretName": "app"}},
            "/bucket": {"csi": {"driver": "csi.example.org"}},
        },
    )["spec"]
    broker = {
        **storage["containers"][0],
        "env": [{"name": "TOKEN", "valueFrom": SECRET}, {"name": "A", "value": "1"}],
        "resources": {"limits": {"rdma/hca": 1}},
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        "workingDir": "/work",
    }
    spec = {
        **storage,
        "schedulerName": "volcano",
        "runtimeClassName": "nvidia",
        "dnsPolicy": "Default",
        "hostIPC": True,
        "hostPID": True,
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "containers": [broker],
    }
    words: dict[str, Any] = {"form": "operator", "queue": "batch"}
    pod = {"metadata": POD["metadata"], "spec": spec}
    found = bursts.provider(**words, pod=pod).examine(bursts.lead)
    said = [f.what for f in found if "MiniCluster of" in f.what]
    assert said == ["the API server accepts the MiniCluster of nodes"]
    wide = {"spec": {"containers": [{**broker, "resources": {"limits": {"a": "x"}}}]}}
    wide["spec"] = {**storage, **wide["spec"]}
    found = bursts.provider(**words, pod=wide).examine(bursts.lead)
    assert any("offer nodes: the API server does not" in f.what for f in found)
