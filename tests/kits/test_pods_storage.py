# SPDX-License-Identifier: MIT
"""Words of a provider's table for storage, working directories and Kueue's queue."""

import os
from pathlib import Path
from typing import Any

import pytest

from burst.errors import ConfigError
from burst.kits.pods.diagnose.admission import advise
from burst.kits.pods.template.storage import known_directories
from burst.provider import BurstSpec
from tests.kits.pods import (
    SETTINGS,
    TAGS,
    by_kind,
    pod_spec,
    read_settings,
    replace,
    run,
)
from tests.support.pod_words import CLAIM, SHM, pod_words

CSI = {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "b"}}
NFS = {"nfs": {"server": "files.example.org", "path": "/export/home"}}
KEYS = {"secret": {"secretName": "app"}}
SCRATCH = {"emptyDir": {"sizeLimit": "50Gi"}}
WRITABLE = {"/results": CLAIM, "/dev/shm": SHM, "/scratch": SCRATCH}
READ_ONLY: dict[str, dict[str, Any]] = {
    "/home": NFS,
    "/bucket": {"csi": CSI},
    "/etc/app/keys": KEYS,
    "/etc/app/conf": {"configMap": {"name": "app"}},
}
STORAGE = replace(SETTINGS, pod=pod_words(volumes=WRITABLE, read_only=READ_ONLY))


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
    before = mounted(pod_spec(spec, SETTINGS))
    assert mounted(pod_spec(spec, STORAGE)) == {
        **before,
        **{path: (source, False) for path, source in WRITABLE.items()},
        **{path: (source, True) for path, source in READ_ONLY.items()},
    }


def test_directories_of_jobs_are_made_where_nothing_is_mounted(spec: BurstSpec) -> None:
    cwd = ("/h/run/a", "/h/run", "/work", "/results/x", "/tmp/y", "/scratch/z")
    settings = replace(STORAGE, cwd=cwd)
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
    settings = replace(STORAGE, cwd=("/work/",), host_paths=("/opt",))
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
    storage = pod_words(
        volumes={"/results": CLAIM, "/dev/shm": SHM},
        read_only={
            "/keys": KEYS,
            "/bucket": {"csi": CSI},
            "/disk": {"csi": {"driver": "d"}},
            "/opt": {"hostPath": {"path": "/data"}},
        },
    )
    made = by_kind(spec, replace(SETTINGS, form="operator", pod=storage))
    (container,) = made["MiniCluster"]["spec"]["containers"]
    volumes = {volume["path"]: volume for volume in container["volumes"].values()}
    del volumes["/burst/secret"]
    assert volumes == {
        "/results": {"claimName": "results", "path": "/results", "readOnly": False},
        "/keys": {"secretName": "app", "path": "/keys", "readOnly": True},
        "/bucket": {
            "csiDriver": CSI["driver"],
            "csiDriverAttributes": CSI["volumeAttributes"],
            "path": "/bucket",
            "readOnly": True,
        },
        "/disk": {"csiDriver": "d", "path": "/disk", "readOnly": True},
        "/opt": {"hostPath": "/data", "path": "/opt", "readOnly": True},
        "/dev/shm": {
            "emptyDir": True,
            "emptyDirMedium": "memory",
            "emptyDirSizeLimit": "1Gi",
            "path": "/dev/shm",
        },
    }


@pytest.mark.parametrize(
    ("source", "may_be_denied"), [(CLAIM, False), (KEYS, False), (NFS, True)]
)
def test_where_a_namespace_may_deny_a_volume_pod_is_named(
    source: dict[str, Any], may_be_denied: bool
) -> None:
    settings = replace(SETTINGS, pod=pod_words(volumes={"/v": source}))
    assert ("change pod" in advise(settings)) is may_be_denied


GONE = [
    ("[volumes.v]\npath = '/v'", "volumes: is gone; write it in the words of Kuber"),
    ("shm = '8Gi'", "shm: is gone; .* at /dev/shm"),
    ("scratch = '8Gi'", "scratch: is gone; .* emptyDir"),
    ("scratch_path = '/x'", "scratch_path: is gone; .* as mountPath"),
    ("environment.A = 'x'", "environment: is gone; .*env of the container broker"),
    ("tolerations = []", "tolerations: is gone; "),
    ("cluster_domain = 'x'", "cluster_domain: is gone; remove it: it is cluster"),
    ("python = 'x'", "python: is gone; remove it: it is the python3 on the image"),
    ("timeout = '1m'", "timeout: is gone; remove it: a request to the API"),
    ("pull_secrets = []", "pull_secrets: is gone; .*imagePullSecrets"),
    ("service_account = 'x'", "service_account: is gone; .*serviceAccountName"),
    ("node_selector = {}", r"node_selector: is gone; .*pod.spec\]: nodeSelector"),
    (
        "offers.nodes.node_selector = {}",
        r"offers.nodes.node_selector: is gone; .*OFFER.pod.spec\]: nodeSelector",
    ),
]
MOUNT = "[[pod.spec.containers]]\nname = 'broker'\nvolumeMounts ="
MOUNTED = f"{MOUNT} [{{ name = 'v', mountPath = '/v' }}]\n"
VOLUME = "[[pod.spec.volumes]]\nname = 'v'\n"
REFUSED = [
    *GONE,
    ("cwd = ['work']", r"cwd\[0\]: 'work' is not an absolute path below /"),
    ("cwd = ['/a', '/burst/run']", r"cwd\[1\]: certificate, keys and settings"),
    ("cwd = ['/a', '/etc/']", r"cwd\[1\]: an empty /etc/ would hide what the image"),
    ("cwd = ['/usr']", r"cwd\[0\]: an empty /usr would hide what the image has there"),
    ("cwd = ['/usr/bin']", r"cwd\[0\]: an empty /usr/bin would hide what the image"),
    ("cwd = ['/proc']", r"cwd\[0\]: /proc is the kernel's; name a directory of your"),
    ("cwd = ['/dev/shm']", r"cwd\[0\]: /dev/shm is the kernel's"),
    ("queue = 'a b'", "queue: 'a b' is not the name of a queue"),
    ("host_paths = ['opt']", "host_paths: 'opt' is not an absolute path below /"),
    ("host_paths = ['/']", "host_paths: '/' is not an absolute path below /"),
    (
        "host_paths = ['/a/../b']",
        "host_paths: '/a/../b' is not an absolute path below /",
    ),
    ("host_paths = ['/tmp']", "host_paths: followers have a /tmp of their own"),
    ("host_paths = ['/a', '/a/']", "host_paths: /a/ is also host_paths"),
    (f"host_paths = ['/v']\n{MOUNTED}", "host_paths: /v is also pod.spec.containers"),
    ("host_paths = ['/run/munge']\nmunge_key = '/k'", "host_paths: /run/munge is also"),
]


@pytest.mark.parametrize(
    ("table", "cwd"),
    [
        ("", "/usr/local/work"),
        ("host_paths = ['/usr']", "/usr"),
        (MOUNTED.replace("'/v'", "'/usr/local'"), "/usr/local"),
    ],
)
def test_a_directory_of_jobs_may_be_where_it_hides_nothing(
    table: str, cwd: str
) -> None:
    assert read_settings(f"cwd = ['{cwd}']\n{table}").cwd == (cwd,)
    # A munge of the node is mounted where there is no other.
    found = read_settings("host_paths = ['/run/munge']").host_paths
    assert found == ("/run/munge",)


@pytest.mark.parametrize(("table", "words"), REFUSED)
def test_what_is_wrong_is_refused_by_its_key(table: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"providers.far: .*{words}"):
        read_settings(table)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (f"{MOUNTED}{VOLUME}nfs.server = 's'", "volumes.v.nfs: a MiniCluster has no"),
        (f"{MOUNTED}{VOLUME}configMap.name = 'x'", "volumes.v.configMap: a MiniCluste"),
        (f"{MOUNTED}{VOLUME}csi.fsType = 'x'", "volumes.v.csi: a MiniCluster has no"),
        (f"{MOUNTED}{VOLUME}emptyDir = {{}}", "volumes.v.emptyDir: a MiniCluster has"),
        (f"{VOLUME}secret.secretName = 'x'", "volumes.v: a MiniCluster mounts it at"),
        (
            f"{MOUNT} [{{ name = 'v', mountPath = '/v', subPath = 'x' }}]\n{VOLUME}"
            "secret.secretName = 'x'",
            "volumes.v, subPath of its mount: a MiniCluster has no",
        ),
        ("cwd = ['/work']", "cwd: a MiniCluster has no such field"),
    ],
)
def test_what_a_minicluster_cannot_mount_is_refused(table: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"providers.far: .*{words}"):
        read_settings(f"form = 'operator'\n{table}")
