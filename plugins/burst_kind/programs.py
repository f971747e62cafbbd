# SPDX-License-Identifier: MIT
"""The programs docker and kind: their commands, and what their errors mean."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any

import msgspec

from burst.errors import Refused, Transient
from burst.kits import program
from burst.kits.program import ErrorPattern

# A hundred times of what any of these calls takes.
_DEADLINE_S = 20.0
_NODES = '{{.ID}} {{.Names}} {{.State}} {{.Label "io.x-k8s.kind.role"}}'
_ADVICE = {
    "docker": "install docker; kind runs its nodes in it",
    "kind": "install kind (https://kind.sigs.k8s.io), or set kind to its path",
}
_PATTERNS = (
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

    id: str
    name: str
    state: str
    """docker's word, such as running or exited."""
    role: str


class Programs:
    """docker and kind, in an environment that says where docker is."""

    def __init__(
        self,
        kind: str,
        environment: Mapping[str, str] | None = None,
        *,
        deadline: float = _DEADLINE_S,
    ) -> None:
        self._kind = kind
        self._given = environment
        self._deadline = deadline

    @property
    def environment(self) -> Mapping[str, str]:
        """What they run in: the daemon's, with its proxies and DOCKER_HOST."""
        return os.environ if self._given is None else self._given

    def kind(self, *words: str) -> list[str]:
        """Return the command. Raises Refused if there is no such program."""
        return [self._find(self._kind, "kind"), *words]

    def docker(self, *words: str) -> list[str]:
        """Return the command. Raises Refused if there is no such program."""
        return [self._find("docker", "docker"), *words]

    def run(self, argv: list[str]) -> str:
        """Return the output of a command that ends at once. Raises Transient, Refused.

        Not for those that take minutes, such as `kind create cluster`.
        """
        return program.run(
            argv,
            limit=self._deadline,
            environment=self.environment,
            patterns=_PATTERNS,
        )

    def nodes(self, cluster: str) -> tuple[NodeContainer, ...]:
        """Return the nodes of a cluster, the control plane first; none if it is not."""
        label = f"label=io.x-k8s.kind.cluster={cluster}"
        ask = self.docker(
            "ps", "--all", "--no-trunc", "--filter", label, "--format", _NODES
        )
        lines = self.run(ask).splitlines()
        nodes = [NodeContainer(*line.split(" ", 3)) for line in lines]
        return tuple(sorted(nodes, key=lambda n: (n.role != "control-plane", n.name)))

    def address(self, container: str) -> str:
        """Return a container's IPv4 address in kind's docker network."""
        form = "{{json .NetworkSettings.Networks}}"
        networks = self._json(
            "inspect", "--type=container", "--format", form, container
        )
        found = (networks.get(self._network) or {}).get("IPAddress", "")
        if not found:
            raise Refused(
                f"container {container} has no address in the docker network"
                f" {self._network}",
                "set lead to a node of the lead's kind cluster, as docker names it",
            )
        return str(found)

    def host_address(self) -> str:
        """Return this host's IPv4 address in kind's docker network."""
        form = "{{json .IPAM.Config}}"
        ranges = self._json("network", "inspect", "--format", form, self._network)
        gateways = [str(entry.get("Gateway", "")) for entry in ranges or []]
        found = next((g for g in gateways if g and ":" not in g), "")
        if not found:
            raise Refused(
                f"this host has no IPv4 address in the docker network {self._network}",
                "set lead to a container in it, or address under [lead]",
            )
        return found

    @property
    def _network(self) -> str:
        # kind's own variable, which it gives no flag for.
        return self.environment.get("KIND_EXPERIMENTAL_DOCKER_NETWORK") or "kind"

    def _json(self, *words: str) -> Any:
        return msgspec.json.decode(self.run(self.docker(*words)))

    def _find(self, name: str, what: str) -> str:
        found = shutil.which(name, path=self.environment.get("PATH"))
        if found is None:
            raise Refused(f"there is no program {name!r}", _ADVICE[what])
        return found
