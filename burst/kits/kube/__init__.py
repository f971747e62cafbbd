# SPDX-License-Identifier: MIT
"""A Kubernetes cluster, for authors of providers; its errors are of `burst.errors`.

    cluster = Cluster(choose_access())                  # as kubectl would
    cluster = Cluster(Kubeconfig("/path", "context"))   # kind, or any other
    cluster = Cluster(Endpoint(url, authority, token))  # from a cloud's API

`burst.kits.pods` uses it. It needs the extra `kube`.
"""

from __future__ import annotations

from burst.kits.kube.access import (
    Access,
    Endpoint,
    InCluster,
    Kubeconfig,
    choose_access,
    server_of,
)
from burst.kits.kube.cluster import FIELD_MANAGER, Cluster
from burst.kits.kube.kinds import Kind, Manifest
from burst.kits.kube.manifests import install

__all__ = [
    "FIELD_MANAGER",
    "Access",
    "Cluster",
    "Endpoint",
    "InCluster",
    "Kind",
    "Kubeconfig",
    "Manifest",
    "choose_access",
    "install",
    "server_of",
]
