# SPDX-License-Identifier: MIT
"""How to reach a cluster: by a kubeconfig, a pod's service account, or an address."""

from __future__ import annotations

import os
import sys
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
    """Return the API server, or `str(access)` if it is not known.

    This is its host. One host may serve several clusters: a proxy such as Rancher's by
    path or TLS name, tunnels and kind by port. These follow in parentheses. It sends no
    request and runs no exec plugin.
    """
    if isinstance(access, Endpoint):
        return _host_and_rest(access.url) or access.url
    if isinstance(access, InCluster):
        return "the cluster of the daemon's pod"
    current, contexts, clusters = _read(access.path)
    try:
        known = clusters[contexts[access.context or current]["cluster"]]
        tls_name = known.get("tls-server-name", "")
        return _host_and_rest(known["server"], tls_name) or str(access)
    except UNREADABLE:
        return str(access)


def _read(path: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return the current context, the contexts and the clusters of the files."""
    path = path or os.environ.get("KUBECONFIG") or "~/.kube/config"
    current = ""
    contexts: dict[str, Any] = {}
    clusters: dict[str, Any] = {}
    for name in filter(None, path.split(os.pathsep)):
        try:
            found = yaml.safe_load(expand_home(name).read_text())
            current = current or str(found.get("current-context") or "")
            for item in found.get("contexts") or []:
                contexts.setdefault(item["name"], item["context"])
            for item in found.get("clusters") or []:
                clusters.setdefault(item["name"], item["cluster"])
        except UNREADABLE:
            continue  # a connection reports what is wrong with the file
    return current, contexts, clusters


def _host_and_rest(url: str, tls_name: str = "") -> str:
    """Return the host of a URL, and in parentheses what else tells the cluster.

    The usual ports are left out, as a cluster may be reached by both. Empty if the URL
    has no host.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    local = host == "localhost" or host.startswith("127.") or host == "::1"
    usual = (None,) if local else (None, 443, 6443)
    port = f":{parts.port}" if parts.port not in usual else ""
    name = f" as {tls_name}" if tls_name else ""
    rest = f"{port}{parts.path.rstrip('/')}{name}".strip()
    return f"{host} ({rest})" if host and rest else host


def choose_access(path: str = "", context: str = "") -> Access:
    """Return the access for this kubeconfig and context.

    If both are empty, use, like kubectl, KUBECONFIG, `~/.kube/config` if it exists, or
    the pod's service account. The context is that which is current now: it does not
    change with `kubectl config use-context`.
    """
    named = path or context or os.environ.get("KUBECONFIG")
    in_pod = "KUBERNETES_SERVICE_HOST" in os.environ
    if named or not in_pod or expand_home("~/.kube/config").exists():
        return Kubeconfig(path, context or _read(path)[0])
    return InCluster()


LATE = "no credentials within"
"""Part of the error message if a plugin was killed after its time limit."""
NOT_RUN = "cannot be run"
"""Part of the error message if a plugin could not be started, as if it is missing."""

# Runs in place of the plugin, and kills the plugin with its children at the time limit.
_WATCH = f"""
import os, signal, subprocess, sys
seconds, *command = sys.argv[1:]
try:
    plugin = subprocess.Popen(command, start_new_session=True)
    sys.exit(plugin.wait(float(seconds)))
except OSError as error:
    sys.exit(f"{{command[0]}}: {NOT_RUN}: {{error.strerror}}")
except subprocess.TimeoutExpired:
    os.killpg(plugin.pid, signal.SIGKILL)
    sys.exit(f"{LATE} {{seconds}} s")
"""


def limit_login(user: dict[str, Any], seconds: float) -> None:
    """Limit the time of the exec plugin of a kubeconfig's user, if it has one.

    Such a plugin is a program (of aws, gcloud, az) that prints a token; the client runs
    it without a limit. If it waits for a network or a login, it would block its
    provider for ever. Source: the Kubernetes documentation, "client-go credential
    plugins".
    """
    plugin = user.get("exec")
    if not isinstance(plugin, dict) or "command" not in plugin:
        return
    command = [plugin["command"], *(plugin.get("args") or [])]
    plugin["command"] = sys.executable
    plugin["args"] = ["-I", "-S", "-c", _WATCH, f"{seconds:g}", *command]
