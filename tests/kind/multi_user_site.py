# SPDX-License-Identifier: MIT
"""A system instance outside of the cluster whose guests' jobs run in its pods.

Brokers and daemon run as `flux` in the lab of `tests.multiuser`. Pods have an image
with this machine's Flux and a setuid IMP, and may mount nothing of a node.
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomli_w

from tests.e2e.programs import ENVIRONMENT, FLUX
from tests.kind.kindnear import NearCluster
from tests.multiuser.lab import OWNER, UIDS, Lab, flux_etc
from tests.multiuser.system_instance import HOSTS, SystemInstance
from tests.support.pod_words import pod_words
from tests.support.ports import free_port


class MultiUserSite:
    """The instance, and the table of the provider whose followers are pods."""

    def __init__(
        self,
        lab: Lab,
        cluster: NearCluster,
        pods: Mapping[str, Any],
    ) -> None:
        """`pods` is what the provider's table has more."""
        port = free_port()
        bootstrap = {
            "default_port": port,
            "default_bind": "tcp://0.0.0.0:%p",
            "default_connect": f"tcp://{cluster.host_address()}:%p",
            "hosts": [{"host": host} for host in HOSTS],
        }
        self.system = _Outside(lab, bootstrap)
        key = lab.run("root", "cat", "/etc/munge/munge.key")
        access = cluster.kubectl("config", "view", "--raw", "--minify", "--flatten")
        self.table = {
            "type": "kube",
            "kubeconfig": str(self.write_own("kubeconfig", access)),
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

    def __init__(self, lab: Lab, bootstrap: dict[str, Any]) -> None:
        self._bootstrap = bootstrap
        super().__init__(lab)

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


@contextmanager
def serving(site: MultiUserSite) -> Iterator[MultiUserSite]:
    """Yield the site while its lead runs; end its brokers in any case."""
    try:
        site.system.start()
        yield site
    finally:
        site.system.end()
