# SPDX-License-Identifier: MIT
"""One kind cluster: how it is, made, filled with images, and taken down.

How it is is read from docker each time. That it is complete is said by a file in its
control plane's container, the last thing that is made; so it lives as long as the
cluster, and no cluster that may have bursts in it is ever taken for half made.
"""

from __future__ import annotations

import enum
import hashlib
import re
from pathlib import Path

import msgspec

from burst.errors import InsufficientCapacity, Refused, Transient
from burst.kits import background_command
from burst_kind.programs import NodeContainer, Programs
from burst_kind.settings import KindSettings

# Of the container's name, NAME-control-plane, which is a host's name; kind says 50.
_LONGEST_NAME = 50
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*\Z")
_ARCHIVES = (".tar", ".tar.gz", ".tgz")
_KUBECTL = "kubectl --kubeconfig=/etc/kubernetes/admin.conf apply --server-side -f -"
_AGAIN_S = 2.0


def is_archive(image: str) -> bool:
    """Tell whether an entry of `images` is a file; else docker has it."""
    return image.endswith(_ARCHIVES)


class ClusterState(enum.Enum):
    """How far a cluster is."""

    ABSENT = "there is none"
    UNMADE = "not all that belongs to it was done, and nobody is at it"
    MAKING = "it is being made"
    READY = "bursts can be made in it"
    FAILED = "it could not be made"
    BROKEN = "a node of it does not run"
    DELETING = "it is being deleted"


class ClusterView(msgspec.Struct, frozen=True):
    """What was seen of a cluster at one time."""

    stage: ClusterState
    why: str = ""
    nodes: tuple[NodeContainer, ...] = ()
    """The control plane first."""
    open: bool = False
    """Whether there may be bursts in it, and it can be asked for them."""


class KindCluster:
    """The cluster of one provider of one owner; `place` is their directory."""

    def __init__(
        self, settings: KindSettings, programs: Programs, place: Path, tags: str
    ) -> None:
        self._settings = settings
        self._programs = programs
        self._place = place
        self.kubeconfig = place / "kubeconfig"
        self._log = place / "log"
        self.ours = settings.create
        what = tags if self.ours else repr((tags, settings.images))
        mark = hashlib.sha256(what.encode()).hexdigest()[:8]
        self._marker = f"burst-{mark}"
        self.name = f"{settings.cluster}-{mark}" if self.ours else settings.cluster
        if len(self.name) > _LONGEST_NAME or not _NAME.match(self.name):
            raise Refused(
                f"{self.name!r} is no name for a kind cluster",
                f"set cluster: lower-case letters, digits and -, {_LONGEST_NAME - 9} at"
                " the most",
            )
        self._complete = ""
        """Id of a control plane that was seen to be complete, which it stays."""

    @property
    def orphan(self) -> str:
        """What stands for a cluster of ours that no burst is known to need."""
        return self.name if self.ours else ""

    def look(self) -> ClusterView:
        """Return how it is now. Raises Transient, Refused."""
        doing = background_command.status_of(self._log)
        nodes = self._programs.nodes(self.name)
        stopped = [node for node in nodes if node.state != "running"]
        runs = bool(nodes) and not stopped
        if doing.running:
            deleting = doing.what == "delete"
            stage = ClusterState.DELETING if deleting else ClusterState.MAKING
            return ClusterView(stage, doing.message, nodes, open=runs and not self.ours)
        if runs and self._is_complete(nodes[0]):
            return ClusterView(ClusterState.READY, "", nodes, open=True)
        # Another's may have bursts in it though images are still to be loaded.
        may_have = runs and not self.ours
        if doing.what == "make" and doing.status:
            return ClusterView(ClusterState.FAILED, doing.message, nodes, open=may_have)
        if stopped:
            node = stopped[0]
            return ClusterView(
                ClusterState.BROKEN, f"its node {node.name} is {node.state}", nodes
            )
        return ClusterView(
            ClusterState.UNMADE if nodes else ClusterState.ABSENT,
            "",
            nodes,
            open=may_have,
        )

    def bring_up(self) -> ClusterView:
        """Go on until it is ready, and return how it is then.

        Raises Transient until then, InsufficientCapacity if it came to nothing.
        """
        view = self.look()
        if view.stage is ClusterState.READY:
            return view
        what = f"the kind cluster {self.name}"
        if view.stage is ClusterState.FAILED:
            raise InsufficientCapacity(f"{what} could not be made ready: {view.why}")
        if view.stage is ClusterState.BROKEN and self.ours:
            raise InsufficientCapacity(f"{what} is to be deleted: {view.why}")
        if view.stage is ClusterState.BROKEN:
            raise Transient(f"{what}: {view.why}", "`docker start` brings it back")
        if view.stage is ClusterState.ABSENT and not self.ours:
            raise Refused(
                f"there is no kind cluster {self.name}",
                f"`kind create cluster --name {self.name}` makes one, or create = true",
            )
        if view.stage in (ClusterState.ABSENT, ClusterState.UNMADE):
            background_command.start(
                "make", self._make(), self._log, self._programs.environment
            )
        doing = f": {view.why}" if view.why else ""
        verb = "deleted" if view.stage is ClusterState.DELETING else "made ready"
        raise Transient(f"{what} is being {verb}{doing}", retry_after=_AGAIN_S)

    def take_down(self) -> bool:
        """Delete it, if it is ours, or go on; tell whether nothing of it is left."""
        doing = background_command.status_of(self._log)
        if doing.running:
            if doing.what == "make":
                doing.stop()
            return False
        nodes = self._programs.nodes(self.name)
        if self.ours and (nodes or doing.what == "make"):
            # Also where no node is to be seen: docker may have been asked for one by
            # what was stopped, and makes it a moment later.
            delete = self._kind("delete", "cluster")
            commands = [background_command.command("deleting", delete)]
            background_command.start(
                "delete", commands, self._log, self._programs.environment
            )
            return False
        if nodes and nodes[0].state == "running" and not self.ours:
            mark = f"/kind/{self._marker}"
            forget = self._programs.docker("exec", nodes[0].name, "rm", "-f", mark)
            self._programs.run(forget)
        self._complete = ""
        for path in self._place.glob("*"):
            path.unlink()
        return True

    def version(self) -> str:
        """Return what the kind program says that it is."""
        return self._programs.run(self._programs.kind("version")).strip()

    def export_kubeconfig(self) -> None:
        """Write the kubeconfig, by which anything can be done in the cluster."""
        inside = ["--internal"] if self._settings.internal else []
        self._programs.run(self._kind("export", "kubeconfig", *inside))

    def _make(self) -> list[str]:
        """Return the commands that make it complete."""
        settings, docker = self._settings, self._programs.docker
        control_plane = f"{self.name}-control-plane"
        commands = []
        if self.ours:
            config = self._place / "cluster.json"
            config.write_bytes(msgspec.json.encode(self._config()))
            create = ["create", "cluster", f"--config={config}"]
            if settings.node_image:
                create.append(f"--image={settings.node_image}")
            apply = docker("exec", "-i", control_plane, *_KUBECTL.split())
            commands = [
                # What an attempt that was cut short has left. A complete one is never
                # brought here.
                background_command.command("clearing", self._kind("delete", "cluster")),
                background_command.command("creating", self._kind(*create)),
                *(
                    background_command.command(f"applying {path}", apply, path)
                    for path in settings.manifests
                ),
            ]
        for image in settings.images:
            what = "image-archive" if is_archive(image) else "docker-image"
            load = self._programs.kind("load", what, image, f"--name={self.name}")
            commands.append(background_command.command(f"loading {image}", load))
        touch = docker("exec", control_plane, "touch", f"/kind/{self._marker}")
        return [*commands, background_command.command("done", touch)]

    def _config(self) -> dict[str, object]:
        workers = self._settings.nodes if self._settings.nodes > 1 else 0
        roles = ["control-plane", *["worker"] * workers]
        return {
            "kind": "Cluster",
            "apiVersion": "kind.x-k8s.io/v1alpha4",
            "networking": {
                "podSubnet": self._settings.pod_subnet,
                "serviceSubnet": self._settings.service_subnet,
            },
            "nodes": [{"role": role} for role in roles],
        }

    def _kind(self, *words: str) -> list[str]:
        """Return a command about the cluster that leaves ~/.kube/config alone."""
        own = (f"--name={self.name}", f"--kubeconfig={self.kubeconfig}")
        return self._programs.kind(*words, *own)

    def _is_complete(self, node: NodeContainer) -> bool:
        if not self.ours and not self._settings.images:
            return True
        if self._complete != node.id:
            # Not `test -e`: its failure could not be told from docker's own.
            look = self._programs.docker("exec", node.name, "ls", "/kind")
            if self._marker in self._programs.run(look).split():
                self._complete = node.id
        return self._complete == node.id
