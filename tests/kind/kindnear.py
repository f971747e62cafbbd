# SPDX-License-Identifier: MIT
"""A kind cluster for leads and followers, and programs that tests of kind run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.kubelab.cluster import kubectl
from tests.support.waiting import wait_until

NAME = "near"
NODE = f"{NAME}-control-plane"
LONG_S = 900.0
"""What a cluster, and what joins from it, may take on a busy machine."""


def run(*words: object) -> str:
    """Return what a program says. Fails, with its complaint, if it does."""
    argv = [str(word) for word in words]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=LONG_S, check=False
    )
    assert done.returncode == 0, f"{' '.join(argv)}: {done.stdout}{done.stderr}"
    return done.stdout


def succeeds(*words: object) -> bool:
    """Tell whether a program ends well."""
    argv = [str(word) for word in words]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


class NearCluster:
    """A kind cluster that no burst makes."""

    def __init__(self, directory: Path, image: str) -> None:
        self.directory = directory
        self.image = image
        self.kubeconfig = directory / "near.kubeconfig"

    def make(self) -> None:
        """Make it, with the image in it."""
        mount = {"hostPath": str(self.directory), "containerPath": str(self.directory)}
        config = {
            "kind": "Cluster",
            "apiVersion": "kind.x-k8s.io/v1alpha4",
            "nodes": [{"role": "control-plane", "extraMounts": [mount]}],
        }
        file = self.directory / "near.json"
        file.write_text(json.dumps(config))
        run(
            *("kind", "create", "cluster", "--name", NAME, "--config", file),
            *("--image", os.environ["KINDLAB_IMAGE"], "--kubeconfig", self.kubeconfig),
        )
        self.load(self.image)
        # Pods are refused before it is there, which is after kind says that all is.
        account = ("get", "serviceaccount", "default")
        wait_until(
            lambda: succeeds("kubectl", "--kubeconfig", self.kubeconfig, *account),
            "the default service account",
            LONG_S,
        )

    def load(self, image: str) -> None:
        """Have its node know an image of docker's."""
        run("kind", "load", "docker-image", image, "--name", NAME)

    def delete(self) -> None:
        """Delete it, however far it came."""
        run(
            *("kind", "delete", "cluster", "--name", NAME),
            *("--kubeconfig", self.kubeconfig),
        )

    def kubectl(self, *words: object, manifest: Any = None) -> str:
        """Return what kubectl says of it."""
        return kubectl("--kubeconfig", self.kubeconfig, *words, manifest=manifest)

    def address(self) -> str:
        """Return the node's address in kind's docker network."""
        return self._of_network("IPAddress")

    def host_address(self) -> str:
        """Return this host's address in kind's docker network."""
        return self._of_network("Gateway")

    def _of_network(self, what: str) -> str:
        form = f"{{{{.NetworkSettings.Networks.kind.{what}}}}}"
        return run("docker", "inspect", "-f", form, NODE).strip()
