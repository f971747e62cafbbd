# SPDX-License-Identifier: MIT
"""The cluster that tests marked kubernetes use: kubelab's, or one that is named."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.kubelab import fake
from tests.kubelab.build import Unavailable
from tests.kubelab.cluster import Cluster, Joined, kubectl
from tests.kubernetes.api import Api
from tests.support.waiting import wait_until

GIVEN = "BURST_TEST_KUBECONFIG"
CRD = "BURST_TEST_MINICLUSTER_CRD"
WANTED = "BURST_TEST_KUBERNETES"
"""Has tests marked kubernetes run, with kubelab's if no cluster is named."""
SHARED = "BURST_TEST_KUBELAB"
"""Names the folder of kubelab's control plane that several processes share."""


class GivenCluster:
    """The cluster that BURST_TEST_KUBECONFIG names; used like kubelab's Cluster."""

    def __init__(self, kubeconfig: Path) -> None:
        if not shutil.which("kubectl"):
            raise Unavailable(f"kubectl is not on PATH: {GIVEN} needs it")
        self.kubeconfig = kubeconfig
        self.root = Path(tempfile.mkdtemp(prefix="burst-kube-"))

    def __enter__(self) -> GivenCluster:
        """Fail where it cannot be reached: a named cluster is meant to be used."""
        self.kubectl("get", "--raw", "/readyz")
        return self

    def __exit__(self, *_exc: object) -> None:
        """Remove the credentials that tests wrote."""
        shutil.rmtree(self.root)

    def env(self) -> dict[str, str]:
        """Return the environment in which kubectl and clients reach this cluster."""
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}

    def kubectl(self, *args: object, **options: Any) -> str:
        """Return what kubectl prints."""
        return str(kubectl(*args, **options, env=self.env()))

    def get(self, path: str) -> bytes | None:
        """Return the answer to GET path, or None where there is none."""
        command = ["kubectl", "get", "--raw", path]
        done = subprocess.run(command, capture_output=True, env=self.env(), check=False)
        return done.stdout if done.returncode == 0 else None

    def wait_for(self, what: str, check: Callable[[], object]) -> None:
        """Poll until check() is true."""
        wait_until(check, what)

    def write_kubeconfig(self, name: str, user: Mapping[str, str]) -> Path:
        """Write NAME.kubeconfig for a user such as {"token": ...}; return its path."""
        view = ("config", "view", "--raw", "--minify", "--flatten", "-o", "json")
        config = json.loads(self.kubectl(*view))
        config["users"] = [{"name": name, "user": dict(user)}]
        config["contexts"][0]["context"]["user"] = name
        path = self.root / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
        return path


AnyCluster = Cluster | GivenCluster


def find_cluster() -> AnyCluster:
    """Return the cluster to use, not started yet; raise Unavailable if there is none.

    BURST_TEST_MINICLUSTER_CRD names the operator's CRD, for tests that need its kind.
    """
    if GIVEN in os.environ:
        return GivenCluster(Path(os.environ[GIVEN]))
    if SHARED in os.environ:
        return Joined(os.environ[SHARED])
    crd = os.environ.get(CRD)
    return Cluster(crds=[crd] if crd else [])


def with_played_nodes(cluster: Cluster) -> Cluster:
    """Return the cluster with nodes that are not there: pods run at once."""
    if not isinstance(cluster, Joined):
        fake.start_kwok(cluster, nodes=2)
    return cluster


def played_nodes(api: Api) -> list[str]:
    """Return the nodes that all tests share; others come and go."""
    names = [node["metadata"]["name"] for node in api.items("/api/v1/nodes")]
    return [name for name in names if name.startswith("kwok-")]


@contextlib.contextmanager
def shared_cluster() -> Iterator[dict[str, str]]:
    """Run a control plane, and give the environment in which pytests use it."""
    if GIVEN in os.environ:
        yield {}
        return
    cluster = find_cluster()
    assert isinstance(cluster, Cluster)
    with cluster:
        with_played_nodes(cluster)
        yield {SHARED: str(cluster.root)}


@contextlib.contextmanager
def new_namespace(cluster: AnyCluster, stem: str) -> Iterator[str]:
    """Make a namespace named for `stem`; afterwards begin to delete it.

    For a second one in a test: bursts may go into a namespace of their own.
    """
    stem = re.sub("[^a-z0-9]+", "-", stem.lower())[:40].strip("-")
    name = f"{stem}-{secrets.token_hex(3)}"
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    if isinstance(cluster, Cluster):
        # To start kubectl takes longer than all else here.
        with contextlib.closing(Api(cluster)) as api:
            api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    else:
        cluster.kubectl("create", "namespace", name)
    try:
        # Bare pods are refused until its default service account is there.
        cluster.wait_for(name, lambda: cluster.get(account))
        yield name
    finally:
        if isinstance(cluster, Cluster):
            with contextlib.closing(Api(cluster)) as api:
                api.delete(f"/api/v1/namespaces/{name}")
        else:
            cluster.kubectl("delete", "namespace", name, "--wait=false")
