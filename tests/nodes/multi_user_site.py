# SPDX-License-Identifier: MIT
"""A system instance outside of the cluster whose guests' jobs run in its pods.

Brokers and daemon run as `flux` in the lab of `tests.multiuser`. On kubelab's nodes,
pods have no image of their own: they see this machine's Flux by `host_paths`, but for
the two directories of flux-security's configuration, and a copy of its IMP that is
setuid. In kind they have an image with all that, and may mount nothing of a node.
"""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import tomli_w

from tests.e2e.programs import ENVIRONMENT, FLUX, host_paths
from tests.intake.user_cli import FILES
from tests.kubelab.build import PAUSE_IMAGE
from tests.kubelab.sandbox import OUTSIDE_IP
from tests.multiuser.lab import OWNER, UIDS, Lab, flux_etc, imp_path
from tests.multiuser.system_instance import HOSTS, SystemInstance
from tests.support.pod_words import pod_words
from tests.support.ports import free_port

# Of pods alone: what the machine has at these paths would hide it.
_OF_PODS = ("/etc/passwd", "/etc/group")


def paths_without(paths: list[str], absent: list[Path]) -> list[str]:
    """Return paths in which none of the absent ones is visible, as few as can be."""
    found = []
    for path in map(Path, paths):
        if any(path == gone or gone in path.parents for gone in absent):
            continue
        if any(path in gone.parents for gone in absent):
            below = sorted(map(str, path.iterdir()))
            found += paths_without(below, absent)
        else:
            found.append(str(path))
    return found


@contextmanager
def setuid_imp(lab: Lab) -> Iterator[None]:
    """Have the nodes see a setuid IMP where this machine has one that is not.

    A mount of this namespace, in which the kubelets run, and of nobody else's.
    """
    copy = lab.directory / "flux-imp"
    shutil.copy(imp_path(), copy)
    copy.chmod(0o4755)
    subprocess.run(["mount", "--bind", str(copy), str(imp_path())], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(imp_path())], check=True)


class Kubectl(Protocol):
    """A cluster that can be asked."""

    def kubectl(self, *words: object) -> str:
        """Return what kubectl prints."""


class MultiUserSite:
    """The instance, and the table of the provider whose followers are pods."""

    def __init__(
        self,
        lab: Lab,
        cluster: Kubectl,
        extra: Mapping[str, Any],
        *,
        lead: str,
        pods: Mapping[str, Any],
    ) -> None:
        """`lead` is its address for pods, `pods` what the provider's table has more."""
        port = free_port()
        bootstrap = {
            "default_port": port,
            "default_bind": "tcp://0.0.0.0:%p",
            "default_connect": f"tcp://{lead}:%p",
            "hosts": [{"host": host} for host in HOSTS],
        }
        self.system = _Outside(lab, bootstrap, extra)
        key = lab.run("root", "cat", "/etc/munge/munge.key")
        access = cluster.kubectl("config", "view", "--raw", "--minify", "--flatten")
        self.table = {
            "type": "kube",
            "kubeconfig": str(self.write_own("kubeconfig", access)),
            "image_pull": "Never",
            "timeout": "2m",
            "one_per_node": False,
            "user": UIDS[OWNER],
            "security": "baseline",
            "munge_key": str(self.write_own("munge.key", key)),
            "offers": {"nodes": {"cores": 4, "max_nodes": 4, "cpu": "100m"}},
            "flux": FLUX,
            "pod": pod_words(ENVIRONMENT),
            "multi_user": {"uids": [61001, 61002], "conf": str(flux_etc())},
            **pods,
        }
        self.system.write_settings(providers={"far": self.table})

    def change(self, **keys: Any) -> None:
        """Write the settings with other keys of the provider's."""
        self.table |= keys
        self.system.write_settings(providers={"far": self.table})

    def doctor(self, user: str) -> str:
        """Return what the owner's doctor says of a user's jobs in pods."""
        options = ("-c", str(self.system.settings), "--provider", "far")
        ask = (OWNER, "doctor", *options, "--probe", "--as-user", user)
        done = self.system.try_burst(*ask)
        return done.stdout + done.stderr

    def write_own(self, name: str, text: str) -> Path:
        """Write a file that only the instance's owner can read."""
        path = self.system.directory / name
        path.touch(mode=0o600)
        path.write_text(text)
        shutil.chown(path, UIDS[OWNER], UIDS[OWNER])
        return path


class _Outside(SystemInstance):
    """One whose brokers listen where pods reach them."""

    def __init__(
        self, lab: Lab, bootstrap: dict[str, Any], extra: Mapping[str, Any]
    ) -> None:
        self._bootstrap = bootstrap
        super().__init__(lab, extra)

    def tables(self) -> dict[str, Any]:
        """Return the lead's configuration."""
        found = super().tables()
        certificate = found["bootstrap"]["curve_cert"]
        return {**found, "bootstrap": {**self._bootstrap, "curve_cert": certificate}}

    def write_settings(self, **tables: Any) -> None:
        """Write the daemon's settings, without the provider of local followers."""
        # On a busy machine pods are late.
        super().write_settings(**{"deadlines": {"join": "1h"}, **tables})
        found = tomllib.loads(self.settings.read_text())
        del found["providers"]["local"]
        self.settings.write_text(tomli_w.dumps(found))


def follower_paths() -> list[str]:
    """Return what pods see of this machine: not the files that `burst setup` installs.

    An image has those only if the site puts them there.
    """
    etc = flux_etc()
    absent = [*map(Path, _OF_PODS), etc / "imp", etc / "security", FILES]
    return paths_without(host_paths(flux=True), absent)


@contextmanager
def serving(site: MultiUserSite) -> Iterator[MultiUserSite]:
    """Yield the site while its lead runs; end its brokers in any case."""
    try:
        site.system.start()
        yield site
    finally:
        site.system.end()


@contextmanager
def site_on_nodes(
    lab: Lab, cluster: Kubectl, namespace: str, extra: Mapping[str, Any]
) -> Iterator[MultiUserSite]:
    """Yield a site whose lead runs and whose pods are on kubelab's nodes.

    `extra` are tables for the lead's configuration.
    """
    pods = {
        "namespace": namespace,
        "image": PAUSE_IMAGE,
        "host_paths": follower_paths(),
    }
    with setuid_imp(lab):
        site = MultiUserSite(lab, cluster, extra, lead=OUTSIDE_IP, pods=pods)
        with serving(site):
            yield site
