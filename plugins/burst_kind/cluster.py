# SPDX-License-Identifier: MIT
"""One kind cluster: its state, how it is made, and how it is deleted.

Its state follows from its nodes, as docker lists them, and from the log of the last
background command, `make` or `delete`. A cluster whose `make` failed is deleted and
made again. If there is no log, because somebody removed the directory, a cluster whose
nodes run may have bursts in it, so it is not made again.
"""

from __future__ import annotations

import enum
import hashlib
import re
from pathlib import Path

import msgspec

from burst.errors import InsufficientCapacity, Refused, Transient
from burst.kits import background_command
from burst.kits.background_command import command
from burst_kind.programs import NodeContainer, Programs
from burst_kind.settings import KindSettings, is_archive

# kind's limit, because the container NAME-control-plane needs a host name.
_LONGEST_NAME = 50
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*\Z")
_KUBECTL = "kubectl --kubeconfig=/etc/kubernetes/admin.conf apply --server-side -f -"
_RETRY_AFTER_S = 2.0
# Not kind's default subnets, which a lead in another kind cluster may have.
_CONFIG = {
    "kind": "Cluster",
    "apiVersion": "kind.x-k8s.io/v1alpha4",
    "networking": {"podSubnet": "10.245.0.0/16", "serviceSubnet": "10.97.0.0/16"},
    "nodes": [{"role": "control-plane"}],
}


class ClusterState(enum.Enum):
    """The state of a cluster, by what can be done with it."""

    ABSENT = "absent"
    """It can be made: it does not exist, or only in part after a failed attempt."""
    BUSY = "busy"
    """A background command is making or deleting it."""
    READY = "ready"
    FAILED = "failed"
    """It could not be made, or lacks images."""
    STOPPED = "stopped"
    """One of its nodes does not run."""


class ClusterView(msgspec.Struct, frozen=True):
    """The state of a cluster at one time."""

    state: ClusterState
    text: str
    """The state and its reason, as the end of the sentence "the kind cluster ..."."""
    nodes: tuple[NodeContainer, ...]
    """Its nodes, the control plane first."""
    open: bool
    """Whether it may have bursts, and its API server can be asked about them."""


class KindCluster:
    """The cluster of one provider of one owner, whose files are in `directory`."""

    def __init__(
        self, settings: KindSettings, programs: Programs, directory: Path, tags: str
    ) -> None:
        self._settings = settings
        self._programs = programs
        self._directory = directory
        self._log = directory / "log"
        self.kubeconfig = directory / "kubeconfig"
        self.ours = settings.create
        self.name = settings.cluster + (f"-{_hash(tags)}" if self.ours else "")
        if len(self.name) > _LONGEST_NAME or not _NAME.match(self.name):
            raise Refused(
                f"{self.name!r} is not a valid name for a kind cluster",
                f"set cluster: lower-case letters, digits and -, {_LONGEST_NAME - 9} at"
                " the most",
            )
        self.create_by_hand = (
            f"`kind create cluster --name {self.name}` makes one, or create = true"
        )

    def look(self) -> ClusterView:
        """Return its state. Raises Transient, Refused."""
        last = background_command.status_of(self._log)
        nodes = self._programs.nodes(self.name)
        stopped = next((node for node in nodes if node.state != "running"), None)
        runs = bool(nodes) and stopped is None
        tried = last.what == self._task(nodes)
        complete = not self._log.exists() if self.ours else not self._settings.images
        if tried:
            complete = last.status == 0
        if last.running:
            doing = "deleted" if last.what == "delete" else "made"
            state, text = ClusterState.BUSY, f"is being {doing}: {last.message}"
        elif runs and complete:
            state, text = ClusterState.READY, f"runs with {len(nodes)} nodes"
        elif last.status and tried:
            state, text = ClusterState.FAILED, f"could not be made: {last.message}"
        elif stopped:
            text = f"does not run: its node {stopped.name} is {stopped.state}"
            state = ClusterState.STOPPED
        else:
            text = "is not complete yet" if nodes else "does not exist yet"
            state = ClusterState.ABSENT
        # A cluster that is not ours may have bursts in it in each of these states.
        opened = state is ClusterState.READY or (runs and not self.ours)
        return ClusterView(state, text, nodes, opened)

    def ensure(self) -> ClusterView:
        """Return its state once it is ready; start the commands that make it ready.

        Raises Transient until then, InsufficientCapacity if it could not be made.
        """
        view = self.look()
        what = f"the kind cluster {self.name}"
        if view.state is ClusterState.READY:
            return view
        if view.state is ClusterState.STOPPED and not self.ours:
            raise Transient(f"{what} {view.text}", "`docker start` the node")
        if view.state in (ClusterState.FAILED, ClusterState.STOPPED):
            raise InsufficientCapacity(f"{what} {view.text}", "it will be deleted")
        if view.state is ClusterState.BUSY:
            raise Transient(f"{what} {view.text}", retry_after=_RETRY_AFTER_S)
        if not view.nodes and not self.ours:
            raise Refused(f"there is no kind cluster {self.name}", self.create_by_hand)
        self._start(self._task(view.nodes), self._make_commands())
        raise Transient(f"{what} is being made ready", retry_after=_RETRY_AFTER_S)

    def take_down(self) -> bool:
        """Delete the cluster if it is ours, then its files; tell if all is done."""
        last = background_command.status_of(self._log)
        if last.running:
            if last.what != "delete":
                last.stop()
            return False
        # Even if no node is listed: the command that was stopped may have requested one
        # from docker, which makes it a moment later.
        if self.ours and (last.what == "make" or self._programs.nodes(self.name)):
            self._start("delete", [command("deleting", self._kind("delete cluster"))])
            return False
        for path in self._directory.glob("*"):
            path.unlink()
        return True

    def export_kubeconfig(self) -> None:
        """Write the kubeconfig, which gives all rights in the cluster."""
        self._programs.run(self._kind("export kubeconfig"))

    def _task(self, nodes: tuple[NodeContainer, ...]) -> str:
        """Return the name of the command that completes the cluster.

        If the cluster is not ours, the command loads the images; its name then depends
        on the control plane and the images.
        """
        if self.ours or not nodes:
            return "make"
        return f"load_{_hash(repr((nodes[0].id, self._settings.images)))}"

    def _start(self, what: str, commands: list[str]) -> None:
        environment = self._programs.environment
        background_command.start(what, commands, self._log, environment)

    def _make_commands(self) -> list[str]:
        settings, commands = self._settings, []
        if self.ours:
            create = self._kind("create cluster", f"--config={self._config_file()}")
            plane = f"{self.name}-control-plane"
            apply = self._programs.docker("exec", "-i", plane, *_KUBECTL.split())
            commands = [
                # Delete what an interrupted attempt has left.
                command("clearing", self._kind("delete cluster")),
                command("creating", create),
                *(command(f"applying {p}", apply, p) for p in settings.manifests),
            ]
        for image in settings.images:
            what = "image-archive" if is_archive(image) else "docker-image"
            load = self._programs.kind("load", what, image, f"--name={self.name}")
            commands.append(command(f"loading {image}", load))
        return commands

    def _config_file(self) -> Path:
        """Return kind's configuration file: that of the settings, or else ours."""
        if self._settings.config:
            return Path(self._settings.config).absolute()
        ours = self._directory / "cluster.json"
        ours.write_bytes(msgspec.json.encode(_CONFIG))
        return ours

    def _kind(self, what: str, *flags: str) -> list[str]:
        """Return a kind command for the cluster that leaves ~/.kube/config alone."""
        own = (f"--name={self.name}", f"--kubeconfig={self.kubeconfig}")
        return self._programs.kind(*what.split(), *flags, *own)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
