# SPDX-License-Identifier: MIT
"""The objects of bursts as they are read and kept, to derive the status of bursts.

An API server sends some 4 KiB for a pod, and as Python objects a pod takes 15 KiB.
Decoded as one of these, it takes about 1 KiB: fields that nobody reads are skipped, and
texts that all objects of a burst have are in memory once.
"""

from __future__ import annotations

import sys
from datetime import datetime

import msgspec

from burst.decode import from_plain
from burst.kits.kube.kinds import JOB, KINDS, MINICLUSTER, Manifest
from burst.kits.pods import names
from burst.kits.pods.template.containers import BROKER, PROBE

_READ = {
    *("PodScheduled", "DisruptionTarget"),
    *("Suspended", "Failed", "FailureTarget", "Complete"),
}
"""Types of conditions of pods and Jobs that are read; others change more often."""


class _Kept(msgspec.Struct, rename="camel", gc=False):
    """Base of all parts. A field that an object lacks has its default.

    They have no cycles, so the garbage collector need not know them.
    """


class _Labels(
    _Kept,
    rename={"burst": names.ID, "index": names.INDEX, "queue": names.KUEUE_QUEUE},
):
    burst: str = ""
    index: str = ""
    queue: str | None = None

    def __post_init__(self) -> None:
        self.burst = sys.intern(self.burst)


class _Annotations(
    _Kept,
    rename={
        "spec": names.SPEC,
        "program": names.PROGRAM,
        "hosts": names.HOSTS,
        "leaving": names.LEAVING,
        "started": names.STARTED,
        "spot": names.SPOT,
        "index": names.INDEX,
    },
):
    spec: str | None = None
    program: str = ""
    hosts: str = ""
    leaving: str = ""
    started: str | None = None
    spot: str | None = None
    index: str = ""

    def __post_init__(self) -> None:
        self.hosts = sys.intern(self.hosts)
        self.spec = sys.intern(self.spec) if self.spec is not None else None


class _Metadata(_Kept):
    name: str = ""  # a bookmark has none
    uid: str = ""
    labels: _Labels = msgspec.field(default_factory=_Labels)
    annotations: _Annotations = msgspec.field(default_factory=_Annotations)
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()


class _Limits(_Kept):
    memory: str | int | None = None


class _Resources(_Kept):
    limits: _Limits = msgspec.field(default_factory=_Limits)


class Container(_Kept):
    """A container in the spec of a pod."""

    name: str = ""
    image: str = ""
    restart_policy: str = ""
    resources: _Resources = msgspec.field(default_factory=_Resources)

    def __post_init__(self) -> None:
        self.name, self.image = sys.intern(self.name), sys.intern(self.image)

    @property
    def memory(self) -> str:
        """The limit of memory; empty if there is none."""
        return str(self.resources.limits.memory or "")


class _Running(_Kept):
    started_at: str | None = None


class ContainerWaiting(_Kept):
    """Why a container does not run yet."""

    reason: str = ""
    message: str = ""


class Terminated(_Kept):
    """How a container ended."""

    exit_code: int | None = None
    reason: str = ""
    message: str = ""

    @property
    def status(self) -> str:
        """The exit status in words."""
        return "unknown" if self.exit_code is None else str(self.exit_code)


class ContainerState(_Kept):
    """The state of a container; all are None until the kubelet writes it."""

    running: _Running | None = None
    waiting: ContainerWaiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(_Kept):
    """The status of a container of a pod."""

    name: str = ""
    image: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: ContainerState = msgspec.field(default_factory=ContainerState)
    last_state: ContainerState = msgspec.field(default_factory=ContainerState)

    def __post_init__(self) -> None:
        self.name, self.image = sys.intern(self.name), sys.intern(self.image)


class Condition(_Kept):
    """A condition of a pod or a Job."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None

    @property
    def is_read(self) -> bool:
        """Whether its type matters here; of PodScheduled, only why a pod is not."""
        scheduled = (self.type, self.status) == ("PodScheduled", "True")
        return self.type in _READ and not scheduled


class _Spec(_Kept):
    suspend: bool | None = None
    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()


class _Status(_Kept):
    phase: str = ""
    nominated_node_name: str = ""
    reason: str = ""
    message: str = ""
    completed_indexes: str = ""
    failed_indexes: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()

    def __post_init__(self) -> None:
        self.phase = sys.intern(self.phase)
        self.conditions = tuple(c for c in self.conditions if c.is_read)


class KeptObject(_Kept):
    """A Job, a pod, or the metadata of any other object."""

    metadata: _Metadata
    kind: str = ""
    """The kind; a list does not tell it of each item."""
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def version(self) -> str:
        """The resource version."""
        return self.metadata.resource_version

    @property
    def name(self) -> str:
        """The name."""
        return self.metadata.name

    @property
    def burst(self) -> str:
        """The id of its burst; empty if its labels name none."""
        return self.metadata.labels.burst

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that it is for; none if it lacks the annotation."""
        return names.parse_hosts(self.metadata.annotations.hosts)

    @property
    def leaving(self) -> tuple[str, ...]:
        """The hosts that a shrink takes from it."""
        return names.parse_hosts(self.metadata.annotations.leaving)

    @property
    def ending(self) -> bool:
        """Whether it is being deleted."""
        return bool(self.metadata.deletion_timestamp)

    @property
    def made_at(self) -> float:
        """When it was made, in seconds since the epoch; 0 if not known."""
        return seconds_of(self.metadata.creation_timestamp)

    @property
    def suspended(self) -> bool:
        """Whether it is a suspended Job, which makes no pods."""
        return bool(self.spec.suspend)

    @property
    def incomplete(self) -> bool:
        """Whether it is a Job of ours not started, as what it mounts may be missing.

        It is false for a Job of the Flux Operator, which has no annotations of ours.
        """
        noted = self.metadata.annotations
        ours = self.kind == JOB.name and noted.spec is not None
        return ours and noted.started is None and self.suspended

    @property
    def queued(self) -> bool:
        """Whether it is in a queue of Kueue."""
        return self.metadata.labels.queue is not None

    @property
    def index(self) -> int:
        """The pod's completion index, which is a label since Kubernetes 1.28; or -1."""
        text = self.metadata.labels.index or self.metadata.annotations.index
        return int(text) if text.isdigit() else -1

    @property
    def place(self) -> tuple[str, int]:
        """The hosts of a pod's Job, and the pod's index in them.

        The pod that replaces it has the same place.
        """
        return self.metadata.annotations.hosts, self.index

    @property
    def node(self) -> str:
        """The name of the pod's node; empty if it has none."""
        return self.spec.node_name

    @property
    def phase(self) -> str:
        """The phase of a pod."""
        return self.status.phase or "Pending"

    def condition(self, kind: str) -> Condition:
        """Return the condition of this type; an empty one if there is none."""
        found = (each for each in self.status.conditions if each.type == kind)
        return next(found, Condition())

    @property
    def container(self) -> Container:
        """The broker's container in a pod; an empty one if there is none.

        It is found by its name: a mesh such as Istio or a mount such as gcsfuse adds
        containers before or after it. In a pod of the Flux Operator it has the name of
        the MiniCluster, which is the burst's id.
        """
        by_name = {each.name: each for each in self.spec.containers}
        ours = (BROKER, self.burst, PROBE)
        return next((by_name[name] for name in ours if name in by_name), Container())

    @property
    def broker(self) -> ContainerStatus:
        """The status of the broker's container; an empty one until it is written."""
        name = self.container.name
        found = (each for each in self.status.container_statuses if each.name == name)
        return next(found, ContainerStatus()) if name else ContainerStatus()

    @property
    def unready_init(self) -> ContainerStatus | None:
        """The status of the init container that the broker waits for, or None.

        The broker waits for the start of a native sidecar, such as a mesh may add, and
        for the end of other init containers.
        """
        inits = self.spec.init_containers
        sidecars = {each.name for each in inits if each.restart_policy == "Always"}
        for init in self.status.init_container_statuses:
            ended = init.state.terminated
            done = ended is not None and ended.exit_code == 0
            if not (init.started if init.name in sidecars else done):
                return init
        return None

    def reference(self, namespace: str) -> Manifest:
        """Return what `Cluster.delete` and `Cluster.merge` need of it."""
        meta = {"namespace": namespace, "name": self.name, "uid": self.metadata.uid}
        return {"apiVersion": KINDS[self.kind].api, "kind": self.kind, "metadata": meta}


def kept(manifest: Manifest) -> KeptObject:
    """Return an object that was read whole as one that is kept.

    Of a MiniCluster only the metadata: its containers have another form than a pod's.
    """
    if manifest["kind"] == MINICLUSTER.name:
        manifest = {"kind": manifest["kind"], "metadata": manifest["metadata"]}
    return from_plain(manifest, KeptObject)


def seconds_of(time: str | None) -> float:
    """Return a time of Kubernetes in seconds since the epoch; 0 for none."""
    return datetime.fromisoformat(time).timestamp() if time else 0.0
