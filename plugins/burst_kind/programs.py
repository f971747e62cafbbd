# SPDX-License-Identifier: MIT
"""The programs docker and kind: their commands, and what their errors mean."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any

import msgspec

from burst.errors import NotFound, Refused, Transient
from burst.kits import program
from burst.kits.program import ErrorPattern

# For one call, which takes a hundredth of that on an idle machine.
_DEADLINE_S = 60.0
_NODES = "{{.Names}} {{.ID}} {{.State}}"
_ADVICE = {
    "docker": "install docker; kind runs its nodes in it",
    "kind": "install kind (https://kind.sigs.k8s.io)",
}
_PATTERNS = (
    ErrorPattern("no such image", NotFound),
    ErrorPattern(
        "permission denied",
        Refused,
        "add the user to the group docker, or set DOCKER_HOST to a docker of the user",
    ),
    ErrorPattern(
        "docker (daemon|api)",
        Transient,
        "start docker, or set DOCKER_HOST to where it is",
    ),
)


class NodeContainer(msgspec.Struct, frozen=True):
    """A node of a kind cluster: a container."""

    name: str
    id: str
    state: str
    """As docker reports it, such as running or exited."""


class Programs:
    """docker and kind, with an environment that may have DOCKER_HOST."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self.environment = os.environ if environment is None else environment
        """Their environment: the daemon's, with its proxies and DOCKER_HOST."""

    def kind(self, *words: str) -> list[str]:
        """Return the command. Raises Refused if there is no such program."""
        return [self._find("kind"), *words]

    def docker(self, *words: str) -> list[str]:
        """Return the command. Raises Refused if there is no such program."""
        return [self._find("docker"), *words]

    def run(self, argv: list[str]) -> str:
        """Return the output of a command that ends soon.

        It is not for commands that take minutes, such as `kind create cluster`. Raises
        Transient, Refused, and NotFound for an image that docker does not have.
        """
        return program.run(
            argv,
            limit=_DEADLINE_S,
            environment=self.environment,
            patterns=_PATTERNS,
        )

    def nodes(self, cluster: str) -> tuple[NodeContainer, ...]:
        """Return the cluster's nodes, the control plane first; none if none exist."""
        label = f"label=io.x-k8s.kind.cluster={cluster}"
        ask = self.docker(
            "ps", "--all", "--no-trunc", "--filter", label, "--format", _NODES
        )
        # CLUSTER-control-plane is before CLUSTER-worker.
        lines = sorted(self.run(ask).splitlines())
        return tuple(NodeContainer(*line.split(" ", 2)) for line in lines)

    def address(self, container: str) -> str:
        """Return a container's IPv4 address in kind's docker network.

        `host` is this host, which has the address of the network's gateway.
        """
        network = self.environment.get("KIND_EXPERIMENTAL_DOCKER_NETWORK") or "kind"
        if container == "host":
            ranges = self._inspect("network inspect", "{{json .IPAM.Config}}", network)
            gateways = [str(entry.get("Gateway", "")) for entry in ranges or []]
            found = next((g for g in gateways if g and ":" not in g), "")
        else:
            form = "{{json .NetworkSettings.Networks}}"
            networks = self._inspect("inspect --type=container", form, container)
            found = str((networks.get(network) or {}).get("IPAddress", ""))
        if not found:
            raise Refused(
                f"{container} has no IPv4 address in the docker network {network}",
                "set lead to a node of the lead's kind cluster, as docker names it, or"
                " address under [lead]",
            )
        return found

    def _inspect(self, command: str, form: str, name: str) -> Any:
        words = (*command.split(), "--format", form, name)
        return msgspec.json.decode(self.run(self.docker(*words)))

    def _find(self, name: str) -> str:
        found = shutil.which(name, path=self.environment.get("PATH"))
        if found is None:
            raise Refused(f"there is no program {name!r}", _ADVICE[name])
        return found
