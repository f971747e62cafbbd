# SPDX-License-Identifier: MIT
"""How to reach a cluster: by a kubeconfig, a pod's service account, or an address."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import yaml

from burst.kits.user_names import expand_home

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""The file with the pod's namespace, in a pod with a service account."""

UNREADABLE = (
    *(yaml.YAMLError, OSError, ValueError),
    *(AttributeError, KeyError, TypeError),
)
"""The errors for a kubeconfig that is missing, is not YAML, or has another form."""

LOGIN_S = 30.0
"""Seconds that a kubeconfig's exec plugin, such as that of aws or gcloud, may take to
print credentials. It runs when a connection is made, and when its token expires."""


class Kubeconfig(msgspec.Struct, frozen=True):
    """A kubeconfig file and a context in it; if empty, those that kubectl would use."""

    path: str = ""
    context: str = ""
    login: float = LOGIN_S
    """Seconds that its exec plugin may take."""

    def __str__(self) -> str:
        where = self.path or os.environ.get("KUBECONFIG") or "~/.kube/config"
        return f"{where}, context {self.context}" if self.context else where


class InCluster(msgspec.Struct, frozen=True):
    """The service account of the pod in which this process runs."""

    def __str__(self) -> str:
        return "the pod's service account"


class Endpoint(msgspec.Struct, frozen=True):
    """The address of an API server, as the cloud's own API returns it."""

    url: str
    """`https://ADDRESS`."""
    authority: str
    """Certificate of the authority, as PEM text; empty for the system's authorities."""
    token: Callable[[], str]
    """Returns a valid token. It is called for each request, so it should keep the token
    until it expires. It may raise Transient or Refused."""

    def __str__(self) -> str:
        return self.url


Access = Kubeconfig | InCluster | Endpoint


def server_of(access: Access) -> str:
    """Return the host of the API server, or `str(access)` if it is not known.

    It sends no request and runs no exec plugin.
    """
    if isinstance(access, Endpoint):
        return urlsplit(access.url).hostname or access.url
    if isinstance(access, InCluster):
        return "the cluster of the daemon's pod"
    path = access.path or os.environ.get("KUBECONFIG") or "~/.kube/config"
    contexts: dict[str, Any] = {}
    clusters: dict[str, Any] = {}
    current = access.context
    for name in filter(None, path.split(os.pathsep)):
        try:
            found = yaml.safe_load(expand_home(name).read_text())
            current = current or found.get("current-context", "")
            for item in found.get("contexts") or []:
                contexts.setdefault(item["name"], item["context"]["cluster"])
            for item in found.get("clusters") or []:
                clusters.setdefault(item["name"], item["cluster"]["server"])
        except UNREADABLE:
            continue  # a connection reports what is wrong with the file
    server = str(clusters.get(str(contexts.get(current, "")), ""))
    return urlsplit(server).hostname or str(access)


def choose_access(path: str = "", context: str = "") -> Access:
    """Return the access for this kubeconfig and context.

    If both are empty, use, like kubectl, KUBECONFIG, `~/.kube/config` if it exists, or
    the pod's service account.
    """
    named = path or context or os.environ.get("KUBECONFIG")
    in_pod = "KUBERNETES_SERVICE_HOST" in os.environ
    if named or not in_pod or expand_home("~/.kube/config").exists():
        return Kubeconfig(path, context)
    return InCluster()
