# SPDX-License-Identifier: MIT
"""Words of a provider's table for storage, working directories and Kueue's queue."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from burst.errors import ConfigError
from burst.kits.pods.diagnose.admission import advise, standard_of
from burst.kits.pods.template.storage import known_directories
from burst.provider import BurstSpec, Program
from tests.kits.pods import TAGS, by_kind, pod_spec, read_settings, replace, run

VOLUMES = """
[volumes.results]
path = "/results"
claim = "results"
writable = true

[volumes.home]
path = "/home"
nfs = "files.example.org:/export/home"

[volumes.bucket]
path = "/bucket"
csi = { driver = "gcsfuse.csi.storage.gke.io", volumeAttributes = { bucketName = "b" } }

[volumes.keys]
path = "/etc/app/keys"
secret = "app"

[volumes.conf]
path = "/etc/app/conf"
config_map = "app"
"""


def mounted(pod: Any) -> dict[str, tuple[dict[str, Any], bool]]:
    """Return the source of what is mounted, and whether it is read-only, by path."""
    (container,) = pod["containers"]
    sources = {
        volume["name"]: {k: v for k, v in volume.items() if k != "name"}
        for volume in pod["volumes"]
    }
    return {
        mount["mountPath"]: (sources[mount["name"]], mount.get("readOnly", False))
        for mount in container["volumeMounts"]
    }


def test_volumes_are_mounted_where_they_say(spec: BurstSpec) -> None:
    before = mounted(pod_spec(spec, read_settings("")))
    found = mounted(pod_spec(spec, read_settings(VOLUMES)))
    attributes = {"volumeAttributes": {"bucketName": "b"}}
    csi = {"driver": "gcsfuse.csi.storage.gke.io", **attributes}
    nfs = {"server": "files.example.org", "path": "/export/home"}
    assert found == {
        **before,
        "/results": ({"persistentVolumeClaim": {"claimName": "results"}}, False),
        "/home": ({"nfs": nfs}, True),
        "/bucket": ({"csi": csi}, True),
        "/etc/app/keys": ({"secret": {"secretName": "app"}}, True),
        "/etc/app/conf": ({"configMap": {"name": "app"}}, True),
    }


def test_an_isolated_burst_has_them_too(spec: BurstSpec) -> None:
    alone = replace(spec, program=Program(kind="interactive"))
    assert "/results" in mounted(pod_spec(alone, read_settings(VOLUMES)))


def test_memory_and_scratch_are_empty_directories(spec: BurstSpec) -> None:
    pod = pod_spec(spec, read_settings('shm = "8Gi"\nscratch = "50Gi"'))
    found = mounted(pod)
    memory = {"emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}
    assert found["/dev/shm"] == (memory, False)
    assert found["/scratch"] == ({"emptyDir": {"sizeLimit": "50Gi"}}, False)
    # A node without so much disk does not get the pod.
    requests = pod["containers"][0]["resources"]["requests"]
    assert requests["ephemeral-storage"] == "50Gi"
    elsewhere = read_settings('scratch = "1Gi"\nscratch_path = "/local"')
    assert "/local" in mounted(pod_spec(spec, elsewhere))


def test_directories_of_jobs_are_made_where_nothing_is_mounted(
    spec: BurstSpec,
) -> None:
    cwd = ("/h/run/a", "/h/run", "/work", "/results/x", "/tmp/y", "/scratch/z")
    settings = replace(read_settings(f'scratch = "1Gi"\n{VOLUMES}'), cwd=cwd)
    before = mounted(pod_spec(spec, replace(settings, cwd=())))
    found = mounted(pod_spec(spec, settings))
    empty: tuple[dict[str, Any], bool] = ({"emptyDir": {}}, False)
    # What is within another of them, or within what is mounted, is made there.
    assert found == {**before, "/h/run": empty, "/work": empty}
    start = by_kind(spec, settings)["ConfigMap"]["data"]["start"]
    assert f"mkdir -p {' '.join(cwd)}\n" in start


def test_directories_are_there_before_the_broker_starts(
    spec: BurstSpec, tmp_path: Path
) -> None:
    """Run as it is, but for where things are mounted."""
    work = tmp_path / "ann's" / "run"
    settings = replace(read_settings(""), cwd=(str(work),), flux="ls")
    start = by_kind(spec, settings)["ConfigMap"]["data"]["start"]
    for name in ("config", "secret", "run"):
        (tmp_path / name).mkdir()
    (tmp_path / "config/hosts").write_text("burst-0-0\n")
    (tmp_path / "secret/curve.cert").write_text("key")
    before, _, _ = start.replace("/burst/", f"{tmp_path}/").partition("ls broker")
    script = tmp_path / "start"
    script.write_text(f"{before}ls -d {tmp_path}/ann*/run\n")
    environ = {"PATH": os.environ["PATH"], "JOB_COMPLETION_INDEX": "0"}
    assert run(["/bin/sh", script], environ).strip() == str(work)


def test_directories_that_followers_have_are_known() -> None:
    settings = read_settings(
        f'cwd = ["/work/"]\nshm = "1Gi"\nhost_paths = ["/opt"]\n{VOLUMES}'
    )
    listed = known_directories(settings)
    known = set(listed)
    assert len(known) == len(listed)
    assert known >= {"/tmp", "/var/tmp", "/results", "/home", "/work", "/opt"}


def test_a_queue_has_the_job_and_not_its_pods(spec: BurstSpec) -> None:
    label = {"kueue.x-k8s.io/queue-name": "batch"}
    job = by_kind(spec, read_settings('queue = "batch"'))["Job"]
    assert job["metadata"]["labels"] == {**TAGS.labels(spec.burst_id), **label}
    template = job["spec"]["template"]["metadata"]
    assert template["labels"] == TAGS.labels(spec.burst_id)
    assert job["spec"]["suspend"] is True
    operator = by_kind(spec, read_settings('queue = "batch"\nform = "operator"'))
    made = operator["MiniCluster"]
    assert made["spec"]["jobLabels"] == {**TAGS.labels(spec.burst_id), **label}
    assert made["metadata"]["labels"] == TAGS.labels(spec.burst_id)


def test_a_minicluster_has_what_the_operator_mounts(spec: BurstSpec) -> None:
    table = """
form = "operator"
shm = "8Gi"
[volumes.results]
path = "/results"
claim = "results"
writable = true
[volumes.keys]
path = "/keys"
secret = "app"
[volumes.bucket]
path = "/bucket"
csi = { driver = "d", volumeAttributes = { a = "b" } }
[volumes.disk]
path = "/disk"
csi = { driver = "d" }
"""
    (container,) = by_kind(spec, read_settings(table))["MiniCluster"]["spec"][
        "containers"
    ]
    volumes = container["volumes"]
    del volumes["burst-key"]
    assert volumes == {
        "volume-results": {
            "claimName": "results",
            "path": "/results",
            "readOnly": False,
        },
        "volume-keys": {"secretName": "app", "path": "/keys", "readOnly": True},
        "volume-bucket": {
            "csiDriver": "d",
            "csiDriverAttributes": {"a": "b"},
            "path": "/bucket",
            "readOnly": True,
        },
        "volume-disk": {"csiDriver": "d", "path": "/disk", "readOnly": True},
        "shm": {
            "emptyDir": True,
            "emptyDirMedium": "memory",
            "emptyDirSizeLimit": "8Gi",
            "path": "/dev/shm",
        },
    }


def test_a_namespace_that_is_restricted_denies_nfs() -> None:
    settings = read_settings(VOLUMES)
    assert standard_of(settings) == "baseline"
    assert "do without nfs in volumes" in advise(settings)
    claim = {"results": settings.volumes["results"]}
    assert standard_of(replace(settings, volumes=claim)) == "restricted"


V = "[volumes.v]\npath = '/v'\n"
REFUSED = [
    ("[volumes.v]\nclaim = 'x'", "volumes.v: path is missing; set path"),
    (f"{V}clam = 'x'", "volumes.*unknown field"),
    (V, "volumes.v: set one of claim, nfs, csi, secret, config_map$"),
    (f"{V}claim = 'a'\nsecret = 'b'", "volumes.v: set one of .*, not claim and secret"),
    (f"{V}secret = 'x'\nwritable = true", "volumes.v.writable: secret is never"),
    (f"{V}config_map = 'x'\nwritable = true", "volumes.v.writable: config_map is"),
    (f"{V}nfs = 'server'", "volumes.v.nfs: 'server' is not SERVER:/DIRECTORY"),
    (f"{V}nfs = ':/x'", "volumes.v.nfs: ':/x' is not SERVER:/DIRECTORY"),
    (f"{V}csi = {{ fsType = 'x' }}", "volumes.v.csi: has no driver"),
    ("[volumes.V_1]\npath = '/v'\nclaim = 'x'", "volumes.V_1: a volume's name has"),
    ("[volumes.v]\npath = 'v'\nclaim = 'x'", "volumes.v.path: 'v' is no absolute"),
    ("[volumes.v]\npath = '/'\nclaim = 'x'", "volumes.v.path: '/' is no absolute"),
    ("[volumes.v]\npath = '/a/../b'\nclaim = 'x'", "volumes.v.path: .* is no absolute"),
    ("[volumes.v]\npath = '/burst/x'\nclaim = 'x'", "v.path: certificate, keys and"),
    ("[volumes.v]\npath = '/run/munge'\nclaim = 'x'", "v.path: certificate, keys and"),
    ("[volumes.v]\npath = '/tmp/'\nclaim = 'x'", "volumes.v.path: followers have a /t"),
    (f"scratch = '1Gi'\nscratch_path = '/v'\n{V}claim = 'x'", "scratch_path: /v is al"),
    ("shm = '8GB'", "shm: '8GB' is not a size such as \"8Gi\""),
    ("scratch = 'all'", "scratch: 'all' is not a size"),
    ("cwd = ['work']", r"cwd\[0\]: 'work' is no absolute path below /"),
    ("cwd = ['/a', '/burst/run']", r"cwd\[1\]: certificate, keys and settings"),
    ("cwd = ['/a', '/etc/']", r"cwd\[1\]: an empty /etc/ would hide what the image"),
    ("cwd = ['/usr']", r"cwd\[0\]: an empty /usr would hide what the image has there"),
    ("cwd = ['/usr/bin']", r"cwd\[0\]: an empty /usr/bin would hide what the image"),
    ("cwd = ['/proc']", r"cwd\[0\]: /proc is the kernel's; name a directory of your"),
    ("cwd = ['/dev/shm']", r"cwd\[0\]: /dev/shm is the kernel's"),
    ("scratch = '1Gi'\nscratch_path = '/etc'", "path: an empty /etc would hide"),
    ("queue = 'a b'", "queue: 'a b' is no name of a queue"),
    ("host_paths = ['opt']", "host_paths: 'opt' is no absolute path below /"),
    ("host_paths = ['/']", "host_paths: '/' is no absolute path below /"),
    ("host_paths = ['/a/../b']", "host_paths: '/a/../b' is no absolute path below /"),
    ("host_paths = ['/tmp']", "host_paths: followers have a /tmp of their own"),
    ("host_paths = ['/a', '/a/']", "host_paths: /a/ is also host_paths"),
    (f"host_paths = ['/v']\n{V}claim = 'x'", "host_paths: /v is also volumes.v.path"),
    ("host_paths = ['/run/munge']\nmunge_key = '/k'", "host_paths: /run/munge is also"),
]


@pytest.mark.parametrize(
    ("table", "cwd"),
    [
        ("", "/usr/local/work"),
        ("host_paths = ['/usr']", "/usr"),
        ("[volumes.v]\npath = '/usr/local'\nclaim = 'x'", "/usr/local"),
    ],
)
def test_a_directory_of_jobs_may_be_where_it_hides_nothing(
    table: str, cwd: str
) -> None:
    assert read_settings(f"cwd = ['{cwd}']\n{table}").cwd == (cwd,)


def test_a_munge_of_the_node_is_mounted_where_there_is_no_other() -> None:
    found = read_settings("host_paths = ['/run/munge']").host_paths
    assert found == ("/run/munge",)


@pytest.mark.parametrize(("table", "words"), REFUSED)
def test_what_is_wrong_is_refused_by_its_key(table: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"providers.far: .*{words}"):
        read_settings(table)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (f"{V}nfs = 's:/x'", "volumes.v.nfs: a MiniCluster cannot have it"),
        (f"{V}config_map = 'x'", "volumes.v.config_map: a MiniCluster cannot"),
        (f"{V}csi = {{ driver = 'd', fsType = 'x' }}", "csi.fsType: a MiniCluster can"),
        ("scratch = '1Gi'", "scratch: a MiniCluster cannot have it"),
        ("cwd = ['/work']", "cwd: a MiniCluster cannot have it"),
    ],
)
def test_what_a_minicluster_cannot_mount_is_refused(table: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"providers.far: .*{words}"):
        read_settings(f"form = 'operator'\n{table}")
