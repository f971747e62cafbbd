# SPDX-License-Identifier: MIT
"""One kind cluster: its state, how it is made, and how it is deleted.

The state is what docker says of its nodes, and what the log of the last background
command says: how `make` or `delete` ended. A cluster whose `make` did not end well is
deleted and made again. Where there is no log, as somebody removed the directory, nodes
that run are a cluster that may have bursts in it, and are never made again.
"""

from __future__ import annotations

import enum
import hashlib
import re
from pathlib import Path

import msgspec

from burst.errors import InsufficientCapacity, Refused, Transient
from burst.kits import background_command
from burst.kits.background_command import BackgroundCommand
from burst_kind.programs import NodeContainer, Programs
from burst_kind.settings import KindSettings

# Of the container's name, NAME-control-plane, which is a host's name; kind says 50.
_LONGEST_NAME = 50
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*\Z")
_ARCHIVES = (".tar", ".tar.gz", ".tgz")
_KUBECTL = "kubectl --kubeconfig=/etc/kubernetes/admin.conf apply --server-side -f -"
_RETRY_AFTER_S = 2.0


def is_archive(image: str) -> bool:
    """Tell whether an entry of `images` is a file; else docker has it."""
    return image.endswith(_ARCHIVES)


class ClusterState(enum.Enum):
    """The state of a cluster, as the end of the sentence "the kind cluster ..."."""

    ABSENT = "does not exist yet"
    INCOMPLETE = "is not complete, and no command is at work on it"
    MAKING = "is being made"
    READY = "runs"
    FAILED = "could not be made"
    BROKEN = "does not run"
    DELETING = "is being deleted"


class ClusterView(msgspec.Struct, frozen=True):
    """What was seen of a cluster at one time."""

    state: ClusterState
    why: str = ""
    nodes: tuple[NodeContainer, ...] = ()
    """The control plane first."""
    open: bool = False
    """Whether there may be bursts in it and its API server can be asked for them."""

    @property
    def text(self) -> str:
        """The state and its reason."""
        return f"{self.state.value}: {self.why}" if self.why else self.state.value


class KindCluster:
    """The cluster of one provider of one owner, whose files are in `directory`."""

    def __init__(
        self, settings: KindSettings, programs: Programs, directory: Path, tags: str
    ) -> None:
        self._settings = settings
        self._programs = programs
        self._directory = directory
        self.kubeconfig = directory / "kubeconfig"
        self._log = directory / "log"
        self.ours = settings.create
        self.name = settings.cluster
        if self.ours:
            self.name += f"-{_hash(tags)}"
        if len(self.name) > _LONGEST_NAME or not _NAME.match(self.name):
            raise Refused(
                f"{self.name!r} is no name for a kind cluster",
                f"set cluster: lower-case letters, digits and -, {_LONGEST_NAME - 9} at"
                " the most",
            )

    def look(self) -> ClusterView:
        """Return its state. Raises Transient, Refused."""
        last = background_command.status_of(self._log)
        nodes = self._programs.nodes(self.name)
        stopped = next((node for node in nodes if node.state != "running"), None)
        runs = bool(nodes) and stopped is None
        # A cluster of somebody else may have bursts in it in each of these states.
        shared = runs and not self.ours
        if last.running:
            deleting = last.what == "delete"
            state = ClusterState.DELETING if deleting else ClusterState.MAKING
            return ClusterView(state, last.message, nodes, open=shared)
        if runs and self._is_complete(last, nodes):
            return ClusterView(ClusterState.READY, "", nodes, open=True)
        if last.status and last.what == self._task(nodes):
            return ClusterView(ClusterState.FAILED, last.message, nodes, open=shared)
        if stopped:
            why = f"its node {stopped.name} is {stopped.state}"
            return ClusterView(ClusterState.BROKEN, why, nodes)
        state = ClusterState.INCOMPLETE if nodes else ClusterState.ABSENT
        return ClusterView(state, "", nodes, open=shared)

    def ensure(self) -> ClusterView:
        """Return its state once it is ready; start what makes it so.

        Raises Transient until then, InsufficientCapacity if it could not be made.
        """
        view = self.look()
        what = f"the kind cluster {self.name}"
        if view.state is ClusterState.READY:
            return view
        if view.state is ClusterState.BROKEN and not self.ours:
            raise Transient(f"{what}: {view.why}", "`docker start` the node")
        if view.state in (ClusterState.FAILED, ClusterState.BROKEN):
            raise InsufficientCapacity(f"{what} {view.text}", "it will be deleted")
        if view.state is ClusterState.ABSENT and not self.ours:
            raise Refused(
                f"there is no kind cluster {self.name}",
                f"`kind create cluster --name {self.name}` makes one, or create = true",
            )
        if view.state in (ClusterState.ABSENT, ClusterState.INCOMPLETE):
            self._start(self._task(view.nodes), self._make_commands())
            raise Transient(f"{what} is being made ready", retry_after=_RETRY_AFTER_S)
        raise Transient(f"{what} {view.text}", retry_after=_RETRY_AFTER_S)

    def take_down(self) -> bool:
        """Delete it if it is ours; return whether nothing of it is left."""
        last = background_command.status_of(self._log)
        if last.running:
            if last.what != "delete":
                last.stop()
            return False
        # Also where no node is seen: the command that was stopped may have asked docker
        # for one, which docker makes a moment later.
        if self.ours and (last.what == "make" or self._programs.nodes(self.name)):
            delete = self._kind("delete", "cluster")
            self._start("delete", [background_command.command("deleting", delete)])
            return False
        for path in self._directory.glob("*"):
            path.unlink()
        return True

    def version(self) -> str:
        """Return the version that the kind program prints."""
        return self._programs.run(self._programs.kind("version")).strip()

    def export_kubeconfig(self) -> None:
        """Write the kubeconfig, by which anything can be done in the cluster."""
        inside = ["--internal"] if self._settings.internal else []
        self._programs.run(self._kind("export", "kubeconfig", *inside))

    def _task(self, nodes: tuple[NodeContainer, ...]) -> str:
        """Return the name of the command that makes it complete.

        Of a cluster of somebody else that is loading these images into this very one.
        """
        if self.ours or not nodes:
            return "make"
        return f"load_{_hash(repr((nodes[0].id, self._settings.images)))}"

    def _is_complete(
        self, last: BackgroundCommand, nodes: tuple[NodeContainer, ...]
    ) -> bool:
        if last.what == self._task(nodes):
            return last.status == 0
        return not self._log.exists() if self.ours else not self._settings.images

    def _start(self, what: str, commands: list[str]) -> None:
        environment = self._programs.environment
        background_command.start(what, commands, self._log, environment)

    def _make_commands(self) -> list[str]:
        settings, command = self._settings, background_command.command
        commands = []
        if self.ours:
            config = self._directory / "cluster.json"
            config.write_bytes(msgspec.json.encode(self._config()))
            create = ["create", "cluster", f"--config={config}"]
            if settings.node_image:
                create.append(f"--image={settings.node_image}")
            plane = f"{self.name}-control-plane"
            apply = self._programs.docker("exec", "-i", plane, *_KUBECTL.split())
            commands = [
                # What an attempt that was cut short has left.
                command("clearing", self._kind("delete", "cluster")),
                command("creating", self._kind(*create)),
                *(command(f"applying {p}", apply, p) for p in settings.manifests),
            ]
        for image in settings.images:
            what = "image-archive" if is_archive(image) else "docker-image"
            load = self._programs.kind("load", what, image, f"--name={self.name}")
            commands.append(command(f"loading {image}", load))
        return commands

    def _config(self) -> dict[str, object]:
        workers = self._settings.nodes if self._settings.nodes > 1 else 0
        return {
            "kind": "Cluster",
            "apiVersion": "kind.x-k8s.io/v1alpha4",
            "networking": {
                "podSubnet": self._settings.pod_subnet,
                "serviceSubnet": self._settings.service_subnet,
            },
            "nodes": [{"role": r} for r in ("control-plane", *["worker"] * workers)],
        }

    def _kind(self, *words: str) -> list[str]:
        """Return a command about the cluster that leaves ~/.kube/config alone."""
        own = (f"--name={self.name}", f"--kubeconfig={self.kubeconfig}")
        return self._programs.kind(*words, *own)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
