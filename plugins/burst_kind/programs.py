# SPDX-License-Identifier: MIT
"""What docker and kind say, and what it means when they do not."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

import msgspec

from burst.errors import ProviderError, Refused, Transient

# A hundred times of what any of these calls takes.
_DEADLINE_S = 20.0
_LONGEST_WORDS = 400
_NODES = '{{.ID}} {{.Names}} {{.State}} {{.Label "io.x-k8s.kind.role"}}'
_ADVICE = {
    "docker": "install docker; kind runs its nodes in it",
    "kind": "install kind (https://kind.sigs.k8s.io), or set kind to its path",
}


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
        """Return what a command says that takes no time. Raises Transient, Refused."""
        what = " ".join([os.path.basename(argv[0]), *argv[1:3]])
        try:
            done = subprocess.run(
                argv,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=self._deadline,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Transient(
                f"`{what}` did not answer within {self._deadline:g} s",
                "is docker well?",
            ) from error
        except OSError as error:
            raise Refused(f"{argv[0]} cannot be run: {error.strerror}") from error
        if done.returncode:
            raise _explain(what, done.stderr)
        return done.stdout

    def nodes(self, cluster: str) -> tuple[NodeContainer, ...]:
        """Return the nodes of a cluster, the control plane first; none if it is not."""
        label = f"label=io.x-k8s.kind.cluster={cluster}"
        ask = self.docker(
            "ps", "--all", "--no-trunc", "--filter", label, "--format", _NODES
        )
        nodes = [
            NodeContainer(*line.split(" ", 3)) for line in self.run(ask).splitlines()
        ]
        return tuple(sorted(nodes, key=lambda n: (n.role != "control-plane", n.name)))

    def address(self, container: str) -> str:
        """Return a container's IPv4 address in kind's docker network."""
        form = "{{json .NetworkSettings.Networks}}"
        ask = ("inspect", "--type=container", "--format", form, container)
        networks = self._json(*ask)
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
        ask = ("network", "inspect", "--format", form, self._network)
        ranges = self._json(*ask) or []
        gateways = [str(entry.get("Gateway", "")) for entry in ranges]
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

    def _find(self, program: str, what: str) -> str:
        found = shutil.which(program, path=self.environment.get("PATH"))
        if found is None:
            raise Refused(f"there is no program {program!r}", _ADVICE[what])
        return found


def _explain(what: str, said: str) -> ProviderError:
    words = " ".join(said.split())[:_LONGEST_WORDS] or "it said nothing"
    if "permission denied" in said.lower():
        return Refused(
            f"docker may not be used by this user: {words}",
            "add the user to the group docker, or name a docker of his own by"
            " DOCKER_HOST",
        )
    if "docker daemon" in said.lower() or "docker api" in said.lower():
        return Transient(
            f"docker does not answer: {words}",
            "start it, or say by DOCKER_HOST where it is",
            retry_after=5.0,
        )
    return Transient(f"`{what}` failed: {words}")
