# SPDX-License-Identifier: MIT
"""`pod` of a provider or an offer: what it makes of a pod, and what is refused."""

from typing import Any

import pytest

from burst.errors import ConfigError
from burst.kits.pods.diagnose.probe_job import render_probe
from burst.kits.pods.template.overlay import merge_pod
from burst.provider import BurstSpec, Program
from tests.kits.pods import SETTINGS, TAGS, by_kind, pod_spec, read_settings, replace

EXAMPLE = """
[pod.metadata]
labels = { team = "physics" }
annotations = { "sidecar.istio.io/inject" = "false" }

[pod.spec]
priorityClassName = "high"
schedulerName = "volcano"
runtimeClassName = "nvidia"
hostNetwork = true
tolerations = [{ key = "gpu", operator = "Exists" }]
initContainers = [{ name = "fetch", image = "busybox", command = ["true"] }]
volumes = [{ name = "data", persistentVolumeClaim = { claimName = "data" } }]

[[pod.spec.topologySpreadConstraints]]
maxSkew = 1
topologyKey = "topology.kubernetes.io/zone"
whenUnsatisfiable = "DoNotSchedule"

[[pod.spec.containers]]
name = "broker"
env = [
    { name = "TOKEN", valueFrom = { secretKeyRef = { name = "app", key = "token" } } },
    { name = "A", value = "2" },
]
volumeMounts = [{ name = "data", mountPath = "/data" }]
resources = { limits = { "rdma/hca" = 1 }, requests = { "rdma/hca" = 1 } }
securityContext.readOnlyRootFilesystem = false
securityContext.capabilities.add = ["IPC_LOCK"]

[[pod.spec.containers]]
name = "metrics"
image = "exporter:1"

[offers.nodes.pod.spec]
priorityClassName = "low"
tolerations = [{ key = "spot", operator = "Exists" }]
"""
MINICLUSTER = """
form = "operator"
[pod.metadata]
labels = { team = "physics" }
annotations = { "sidecar.istio.io/inject" = "false" }

[pod.spec]
schedulerName = "volcano"
runtimeClassName = "nvidia"
tolerations = [{ key = "gpu", operator = "Exists" }]

[[pod.spec.containers]]
name = "broker"
env = [
    { name = "TOKEN", valueFrom = { secretKeyRef = { name = "app", key = "token" } } },
    { name = "A", value = "2" },
]
resources = { limits = { "rdma/hca" = 1 } }
securityContext = { capabilities = { add = ["IPC_LOCK"] } }
workingDir = "/work"

[offers.nodes.pod.spec]
schedulerName = "other"
tolerations = [{ key = "spot", operator = "Exists" }]
"""


def broker_of(pod: Any) -> Any:
    return next(c for c in pod["containers"] if c["name"] == "broker")


def test_a_pod_has_what_the_site_adds(spec: BurstSpec) -> None:
    settings, plain = read_settings(EXAMPLE), SETTINGS
    template = by_kind(spec, settings)["Job"]["spec"]["template"]
    meta, pod = template["metadata"], template["spec"]
    before = pod_spec(spec, plain)
    assert meta["labels"] == {**TAGS.labels(spec.burst_id), "team": "physics"}
    assert meta["annotations"]["sidecar.istio.io/inject"] == "false"
    assert "karpenter.sh/do-not-disrupt" in meta["annotations"]
    assert pod["priorityClassName"] == "low"
    assert pod["schedulerName"] == "volcano"
    assert pod["runtimeClassName"] == "nvidia"
    assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert [t["key"] for t in pod["tolerations"]] == ["gpu", "spot"]
    assert [c["name"] for c in pod["initContainers"]] == ["fetch"]
    assert [c["name"] for c in pod["containers"]] == ["broker", "metrics"]
    assert pod["volumes"][:-1] == before["volumes"]
    assert pod["volumes"][-1]["name"] == "data"
    (zone,) = pod["topologySpreadConstraints"]
    assert zone["topologyKey"] == "topology.kubernetes.io/zone"
    broker, old = broker_of(pod), broker_of(before)
    secret = {"secretKeyRef": {"name": "app", "key": "token"}}
    assert broker["env"] == [
        {"name": "TOKEN", "valueFrom": secret},
        {"name": "A", "value": "2"},
    ]
    assert broker["volumeMounts"][:-1] == old["volumeMounts"]
    assert broker["resources"] == {
        "requests": {"cpu": "4", "memory": "2048Mi", "rdma/hca": 1},
        "limits": {"memory": "32Gi", "rdma/hca": 1},
    }
    assert broker["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": False,
        "capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK"]},
    }
    changed = ("env", "volumeMounts", "resources", "securityContext")
    for key in changed:
        del broker[key], old[key]
    assert broker == old
    # Labels of the objects are those by which they are found.
    assert "team" not in by_kind(spec, settings)["Job"]["metadata"]["labels"]


def test_an_isolated_burst_has_it_too(spec: BurstSpec) -> None:
    alone = replace(spec, program=Program(kind="interactive"))
    pod = pod_spec(alone, read_settings(EXAMPLE))
    assert "readinessProbe" in broker_of(pod)
    others = [c for c in pod["containers"] if c["name"] != "broker"]
    assert others == [{"name": "metrics", "image": "exporter:1"}]


def test_entries_of_lists_are_found_by_their_keys() -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    template: dict[str, Any] = {
        "metadata": {"labels": {}},
        "spec": {
            "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}],
            "containers": [{"name": "broker", "args": ["1", "2"], "env": []}],
            "affinity": {"podAntiAffinity": {required: [{"ours": 1}]}},
        },
    }
    first: dict[str, Any] = {
        "spec": {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["b"]}],
            "affinity": {"podAntiAffinity": {required: [{"theirs": 1}]}},
        }
    }
    second = {
        "spec": {
            "volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}],
            "containers": [{"name": "broker", "args": ["3"]}],
            "dnsPolicy": "Default",
            "hostNetwork": True,
        }
    }
    spec = merge_pod(template, first, second)["spec"]
    # A volume has one source: that of the first is not left beside the other.
    assert spec["volumes"] == [{"name": "v", "nfs": {"server": "s", "path": "/"}}]
    assert spec["hostAliases"] == [{"ip": "10.0.0.1", "hostnames": ["b"]}]
    assert spec["containers"] == [{"name": "broker", "args": ["3"], "env": []}]
    (terms,) = spec["affinity"]["podAntiAffinity"].values()
    assert terms == [{"ours": 1}, {"theirs": 1}]
    assert spec["dnsPolicy"] == "Default"
    # The template is as it was.
    assert template["spec"]["containers"] == [
        {"name": "broker", "args": ["1", "2"], "env": []}
    ]


def test_a_probe_goes_where_followers_go(spec: BurstSpec) -> None:
    job = render_probe("burst-probe-1", spec.lead, read_settings(EXAMPLE), TAGS)
    template = job["spec"]["template"]
    assert template["metadata"]["labels"]["team"] == "physics"
    pod = template["spec"]
    assert (pod["schedulerName"], pod["hostNetwork"]) == ("volcano", True)
    assert pod["priorityClassName"] == "low"
    assert [c["name"] for c in pod["containers"]] == ["probe"]
    assert "initContainers" not in pod
    assert pod["volumes"] == []


def test_a_minicluster_has_what_it_has_fields_for(spec: BurstSpec) -> None:
    made = by_kind(spec, read_settings(MINICLUSTER))["MiniCluster"]["spec"]
    pod, (container,) = made["pod"], made["containers"]
    assert pod["labels"] == {**TAGS.labels(spec.burst_id), "team": "physics"}
    assert made["jobLabels"] == TAGS.labels(spec.burst_id)
    assert pod["annotations"]["sidecar.istio.io/inject"] == "false"
    assert (pod["schedulerName"], pod["runtimeClassName"]) == ("other", "nvidia")
    assert [t["key"] for t in pod["tolerations"]] == ["gpu", "spot"]
    assert container["environment"] == {"A": "2"}
    assert container["secrets"] == {"TOKEN": {"name": "app", "key": "token"}}
    assert container["resources"] == {
        "requests": {"cpu": "4", "memory": "2048Mi"},
        "limits": {"memory": "32Gi", "rdma/hca": 1},
    }
    assert container["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
    assert container["securityContext"]["runAsUser"] == 1000
    assert container["workingDir"] == "/work"
    assert " -Slog-stderr-level=7 &\n" in container["commands"]["pre"]


BROKER = "[[pod.spec.containers]]\nname = 'broker'\n"
REFUSED = [
    ("[pod.spc]", "pod.spc: a pod's template has metadata and spec"),
    ("pod = { spec = 1 }", "pod.spec: expected a table"),
    ("[pod.metadata]\nname = 'x'", "pod.metadata.name: only labels and annotations"),
    ("[pod.metadata]\nlabels = 1", "pod.metadata.labels: expected a table"),
    (
        "[pod.metadata.labels]\n'burst.flux-framework.org/owner' = 'x'",
        "pod.metadata.labels.burst.flux-framework.org/owner: is reserved",
    ),
    (
        "[pod.metadata.labels]\n'kueue.x-k8s.io/queue-name' = 'x'",
        "pod.metadata.labels.kueue.x-k8s.io/queue-name: use queue",
    ),
    (
        "[pod.metadata.annotations]\n'burst.flux-framework.org/hosts' = 'x'",
        "pod.metadata.annotations.burst.flux-framework.org/hosts: is reserved",
    ),
    ("[pod.spec]\nrestartPolicy = 'Always'", "pod.spec.restartPolicy: a Job's way"),
    ("[pod.spec]\nsubdomain = 'x'", "pod.spec.subdomain: names of followers"),
    ("[pod.spec]\nhostname = 'x'", "pod.spec.hostname: the Job gives each"),
    ("[pod.spec]\nnodeSelector = []", "pod.spec.nodeSelector: expected a table"),
    ("[pod.spec]\nserviceAccount = 'x'", "use serviceAccountName"),
    ("[pod.spec]\nimagePullSecrets = ['x']", "imagePullSecrets: expected a list of t"),
    ("[pod.spec]\nautomountServiceAccountToken = true", "mount a projected volume"),
    ("pod.spec.securityContext.runAsUser = 0", "spec.securityContext.runAsUser: use"),
    ("[pod.spec]\nvolumes = 1", "pod.spec.volumes: expected a list of tables"),
    ("[[pod.spec.volumes]]\nemptyDir = {}", r"pod.spec.volumes\[0\]: has no name"),
    ("[[pod.spec.volumes]]\nname = 'secret'", "pod.spec.volumes.secret: has the cert"),
    ("[[pod.spec.volumes]]\nname = 'host-3'", "volumes.host-3: is one of host_paths"),
    (f"{BROKER}command = ['x']", "pod.spec.containers.broker.command: starts the"),
    (f"{BROKER}args = ['x']", "pod.spec.containers.broker.args: starts the broker"),
    (f"{BROKER}image = 'x'", "pod.spec.containers.broker.image: use image"),
    (f"{BROKER}readinessProbe = {{}}", "broker.readinessProbe: tells whether"),
    (f"{BROKER}env = 1", "broker.env: expected a list of tables"),
    (f"{BROKER}env = [{{ name = 'FLUX_URI' }}]", "broker.env.FLUX_URI: is the address"),
    (f"{BROKER}resources.requests.cpu = 1", "resources.requests.cpu: use cores and"),
    (f"{BROKER}resources.limits.memory = '1Gi'", "resources.limits.memory: use memory"),
    (f"{BROKER}resources.limits.'nvidia.com/gpu' = 1", "nvidia.com/gpu: use gpus"),
    (f"{BROKER}securityContext.runAsUser = 0", "Context.runAsUser: use user"),
    *(
        (
            f"{BROKER}volumeMounts = [{{ name = 'x', mountPath = '{path}' }}]",
            f"broker.volumeMounts.{path}: certificate and settings are below /burst",
        )
        for path in (
            *("/", "/burst", "/burst/secret", "/burst/config/", "//"),
            *("/run/munge", "/run/munge/", "/run/munge/x"),
            *("/./burst", "/tmp/../burst/secret", "/burst/../burst/run", "/burst/x/.."),
        )
    ),
    ("[pod.spec]\ntolerations = 1", "pod.spec.tolerations: expected a list of tables"),
    ("[pod.spec]\nsecurityContext = 1", "pod.spec.securityContext: expected a table"),
    ("[pod.spec]\nshareProcessNamespace = true", "could read the certificate"),
    ("[pod.spec.resources.requests]\ncpu = 1", "pod.spec.resources: use cores, cpu"),
    (f"{BROKER}env = [{{ value = 'x' }}]", r"broker.env\[0\]: has no name"),
    (f"{BROKER}env = [{{ name = '' }}]", r"broker.env\[0\]: has no name"),
    (f"{BROKER}env = [{{ name = 7 }}]", r"broker.env\[0\]: has no name"),
    (f"{BROKER}resources = 1", "broker.resources: expected a table"),
    (f"{BROKER}resources = {{ limits = 1 }}", "resources.limits: expected a table"),
    (
        f"{BROKER}env = [{{ name = 'JOB_COMPLETION_INDEX', value = '0' }}]",
        "JOB_COMPLETION_INDEX: the Job sets it",
    ),
    (
        "[[pod.spec.initContainers]]\nname = 'broker'",
        "pod.spec.initContainers.broker: is the name of the container",
    ),
    (
        "[[pod.spec.containers]]\nname = 'x'\n"
        "volumeMounts = [{ name = 'secret', mountPath = '/x' }]",
        "pod.spec.containers.x.volumeMounts./x: volume secret is only for the broker",
    ),
    (
        "[[pod.spec.initContainers]]\nname = 'x'\nvolumeMounts = 1",
        "pod.spec.initContainers.x.volumeMounts: expected a list of tables",
    ),
    ("[offers.nodes.pod.spec]\nhostname = 'x'", "offers.nodes.pod.spec.hostname: "),
]


@pytest.mark.parametrize(("table", "words"), REFUSED)
def test_what_may_not_be_set_is_refused_by_its_key(table: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"providers.far: .*{words}"):
        read_settings(table)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("[pod.spec]\npriorityClassName = 'x'", "pod.spec.priorityClassName: a Mini"),
        ("[pod.spec]\nhostNetwork = true", "spec.hostNetwork: a MiniCluster has no"),
        ("[[pod.spec.containers]]\nname = 'x'", "pod.spec.containers.x: a MiniCluster"),
        (f"{BROKER}ports = []", "pod.spec.containers.broker.ports: a MiniCluster has"),
        (
            f"{BROKER}env = [{{ name = 'X', valueFrom.fieldRef = {{}} }}]",
            "broker.env.X.valueFrom: a MiniCluster has no",
        ),
        (f"{BROKER}resources.claims = []", "resources.claims: a MiniCluster has no su"),
        (
            "[offers.nodes.pod.spec]\npriorityClassName = 'x'",
            "offers.nodes.pod.spec.priorityClassName: a",
        ),
        (
            "[pod.spec]\nimagePullSecrets = [{ name = 'a' }, { name = 'b' }]",
            "pod.spec.imagePullSecrets: a MiniCluster has only one",
        ),
        ("[offers.nodes.pod.spec]\nhostname = 'x'", "offers.nodes.pod.spec.hostname: "),
    ],
)
def test_what_a_minicluster_lacks_is_refused_by_its_key(table: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"providers.far: .*{words}"):
        read_settings(f"form = 'operator'\n{table}")


def test_settings_made_in_python_are_checked_too() -> None:
    with pytest.raises(ValueError, match=r"pod\.spec\.hostname"):
        replace(SETTINGS, pod={"spec": {"hostname": "x"}})
