# SPDX-License-Identifier: MIT
"""`pod` of the settings, and the words for it, on a real API server."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from burst_kube.provider import KubeProvider

from burst.errors import SpecRefused
from burst.kits.pods import CommandsTable, OfferTable
from burst.model.burst import BurstId
from burst.model.finding import Level
from burst.provider import Phase
from tests.kubernetes.bursts import Bursts, attempt, bring_up, reap_all, wait_status
from tests.kubernetes.rights import grant
from tests.support.pod_words import CLAIM, SHM, pod_words

pytestmark = pytest.mark.kubernetes

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
    provider = bursts.provider(pod=POD)
    assert wrong(provider) == []
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


def test_the_doctor_needs_no_right_more(bursts: Bursts, account: KubeProvider) -> None:
    grant(bursts, account)
    (said,) = (f.what for f in account.examine(None) if "accepts" in f.what)
    assert said == "the API server accepts the Job of nodes"
    unknown = {"spec": {"schedulerNam": "x"}}
    (why,) = wrong(bursts.provider(pod=unknown))
    assert "offer nodes: " in why


@pytest.mark.usefixtures("miniclusters")
def test_a_minicluster_is_accepted_with_what_it_has_fields_for(bursts: Bursts) -> None:
    broker = {
        "name": "broker",
        "env": [{"name": "TOKEN", "valueFrom": SECRET}, {"name": "A", "value": "1"}],
        "resources": {"limits": {"rdma/hca": 1}},
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        "workingDir": "/work",
    }
    spec = {
        "schedulerName": "volcano",
        "runtimeClassName": "nvidia",
        "dnsPolicy": "Default",
        "hostIPC": True,
        "hostPID": True,
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "containers": [broker],
    }
    pod = {"metadata": POD["metadata"], "spec": spec}
    provider = bursts.provider(form="operator", pod=pod)
    found = provider.examine(bursts.lead)
    said = [f.what for f in found if "MiniCluster of" in f.what]
    assert said == ["the API server accepts the MiniCluster of nodes"]
    wide = {"spec": {"containers": [{**broker, "resources": {"limits": {"a": "x"}}}]}}
    found = bursts.provider(form="operator", pod=wide).examine(bursts.lead)
    assert any("offer nodes: the API server does not" in f.what for f in found)


def make_claim(bursts: Bursts) -> None:
    """Make a claim and its volume, which no kubelet is to mount."""
    name = f"results-{bursts.namespace}"
    modes = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    claim = {"name": "results", "namespace": bursts.namespace}
    volume = {
        **modes,
        "capacity": {"storage": "1Gi"},
        "nfs": {"server": "192.0.2.9", "path": "/"},
        "claimRef": claim,
    }
    made = {"metadata": {"name": name}, "spec": volume}
    bursts.api.create("/api/v1/persistentvolumes", made)
    wanted = {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": name}
    path = f"/api/v1/namespaces/{bursts.namespace}/persistentvolumeclaims"
    bursts.api.create(path, {"metadata": claim, "spec": {**modes, **wanted}})


KEYS = {"secret": {"secretName": "app"}}
BUCKET = {"csi": {"driver": "csi.example.org"}}
READ_ONLY = {
    "/home": {"nfs": {"server": "192.0.2.9", "path": "/home"}},
    "/bucket": BUCKET,
    "/keys": KEYS,
    "/conf": {"configMap": {"name": "app"}},
}


def test_storage_by_its_own_words(bursts: Bursts) -> None:
    make_claim(bursts)
    scratch = {"emptyDir": {"sizeLimit": "2Gi"}}
    storage = pod_words(
        volumes={"/results": CLAIM, "/dev/shm": SHM, "/scratch": scratch},
        read_only=READ_ONLY,
    )
    provider = bursts.provider(pod=storage, cwd=("/work/ann",))
    assert wrong(provider) == []
    bring_up(provider, bursts.spec)
    for pod in bursts.objects("pods"):
        (container,) = pod["spec"]["containers"]
        writable = {
            mount["mountPath"]
            for mount in container["volumeMounts"]
            if not mount.get("readOnly")
        }
        assert writable >= {"/results", "/dev/shm", "/scratch", "/work/ann"}
        assert not {"/home", "/bucket", "/keys", "/conf"} & writable
        claims = [v for v in pod["spec"]["volumes"] if "persistentVolumeClaim" in v]
        assert claims[0]["persistentVolumeClaim"] == {"claimName": "results"}
    reap_all(provider, bursts.spec)


def test_a_node_without_the_disk_gets_no_follower(bursts: Bursts) -> None:
    wanted = {"requests": {"ephemeral-storage": "10Ti"}}
    broker = {"name": "broker", "resources": wanted}
    provider = bursts.provider(pod={"spec": {"containers": [broker]}})
    provider.provision(bursts.spec)
    words = "Insufficient ephemeral-storage"
    status = wait_status(provider, lambda seen: words in seen.why)
    assert status.phase is Phase.PENDING
    reap_all(provider, bursts.spec)


@pytest.mark.usefixtures("miniclusters")
def test_a_minicluster_is_accepted_with_its_storage(bursts: Bursts) -> None:
    storage = pod_words(
        volumes={"/results": CLAIM, "/dev/shm": SHM},
        read_only={"/keys": KEYS, "/bucket": BUCKET},
    )
    words: dict[str, Any] = {"queue": "batch", "pod": storage}
    words["commands"] = CommandsTable(pre="true", post="true")
    found = bursts.provider(form="operator", **words).examine(bursts.lead)
    said = [f.what for f in found if "MiniCluster of" in f.what]
    assert said == ["the API server accepts the MiniCluster of nodes"]


def test_two_leads_cannot_have_the_same_names_in_a_namespace(bursts: Bursts) -> None:
    provider = bursts.provider(names=True)
    provider.provision(bursts.spec)
    settings = msgspec.structs.replace(bursts.settings, names=True)
    other = KubeProvider("here", settings, "another")
    theirs = msgspec.structs.replace(
        bursts.spec, burst_id=BurstId("burst-0-ffffff"), owner="another"
    )
    error = attempt(lambda: other.provision(theirs))
    assert isinstance(error, SpecRefused)
    assert "Service burst-0-0 in namespace" in error.what
    assert "give each its own namespace" in error.advice
    assert len(bursts.objects("jobs")) == 1
    reap_all(provider, bursts.spec)
