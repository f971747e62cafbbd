# SPDX-License-Identifier: MIT
"""The cluster that tests marked kubernetes use: kubelab's."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator

from tests.kubelab import fake
from tests.kubelab.cluster import Cluster, Joined
from tests.kubernetes.api import Api

CRD = "BURST_TEST_MINICLUSTER_CRD"
WANTED = "BURST_TEST_KUBERNETES"
"""Has tests marked kubernetes run."""
SHARED = "BURST_TEST_KUBELAB"
"""Names the folder of kubelab's control plane that several processes share."""


def find_cluster() -> Cluster:
    """Return the cluster to use, not started yet; raise Unavailable if there is none.

    BURST_TEST_MINICLUSTER_CRD names the operator's CRD, for tests that need its kind.
    """
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
    with find_cluster() as cluster:
        with_played_nodes(cluster)
        yield {SHARED: str(cluster.root)}


@contextlib.contextmanager
def new_namespace(cluster: Cluster, stem: str) -> Iterator[str]:
    """Make a namespace named for `stem`; afterwards begin to delete it.

    For a second one in a test: bursts may go into a namespace of their own.
    """
    stem = re.sub("[^a-z0-9]+", "-", stem.lower())[:40].strip("-")
    name = f"{stem}-{secrets.token_hex(3)}"
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    # To start kubectl takes longer than all else here.
    with contextlib.closing(Api(cluster)) as api:
        api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        try:
            # Bare pods are refused until its default service account is there.
            cluster.wait_for(name, lambda: api.get(account))
            yield name
        finally:
            api.delete(f"/api/v1/namespaces/{name}")
