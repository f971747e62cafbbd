# SPDX-License-Identifier: MIT
"""The settings of all providers whose followers are pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal, Self

import msgspec

from burst.config import Seconds
from burst.kits.pods.names import is_label_value
from burst.kits.pods.offer_table import POD_WORDS, OfferTable
from burst.kits.pods.template.containers import BROKER
from burst.kits.pods.template.mount_paths import (
    MUNGE_PATH,
    USER_FILES,
    check_empty,
    check_host_paths,
    check_paths,
)
from burst.kits.pods.template.multi_user_table import MultiUserTable, check_table
from burst.kits.pods.template.object_labels import check_labels
from burst.kits.pods.template.operator_overlay import LACKS, check_for_operator
from burst.kits.pods.template.overlay import check_overlay
from burst.kits.pods.template.site_pod import (
    merged_pods,
    mounts_socket,
    selects_spot,
    site_mounts,
)
from burst.kits.pods.template.view_paths import FLUX_VIEW, check_view_paths
from burst.model.request import BurstMode

_AtLeast0 = Annotated[int, msgspec.Meta(ge=0)]
_BOTH: tuple[BurstMode, ...] = ("joined", "isolated")
PodForm = Literal["job", "operator"]


class PodSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for any cluster. The Settings of a provider derive from it."""

    image: str
    """The followers' image. There is no default, as its Flux must have the MAJOR.MINOR
    version of the lead's. For a lead without Flux its `python3` must have the lead's
    Python package."""
    offers: Mapping[str, OfferTable]
    """The kinds of nodes that the cluster has, by name; at least one."""
    namespace: str = "default"
    """The namespace of all objects. It must exist."""
    form: PodForm = "job"
    """job: an indexed Job. operator: a MiniCluster of the Flux Operator, which must run
    in the cluster; use a namespace that nothing else uses."""
    mode: BurstMode = "joined"
    """The mode of bursts unless the job sets one: joined, as nodes of the lead, or
    isolated, as an instance of its own that runs one job. Form operator allows joined
    only."""
    service: tuple[str, ...] = ()
    """The command that `burst request --isolated --service` runs in the foreground on
    the lead of the isolated burst, such as a RESTful API for Flux. The image must
    contain it. It listens at port 5000."""
    user: _AtLeast0 | None = None
    """Numeric user that brokers run as; of bursts that join, it must be the lead's, or
    no job of the lead's owner runs there. Default: the user of the daemon, who is also
    the lead's; with form operator, the user of the image. The image must have it in
    `/etc/passwd`."""
    security: Literal["restricted", "baseline"] = "restricted"
    """The Pod Security Standard that followers comply with. baseline: programs in the
    image may gain privileges, such as setuid programs, and containers have the default
    capabilities of the runtime. `user = 0` also needs baseline, and `host_paths` needs
    privileged: a namespace that enforces a stricter standard denies the pods. With
    restricted, the root filesystem of a Job's pod is also read-only, unless `pod` sets
    it otherwise."""
    one_per_node: bool = True
    """Put at most one follower on each node, across all bursts and namespaces, as each
    follower is a node to Flux.
    Set it to false if nodes are larger than the offer's. With the Flux Operator it is
    a preference only."""
    gpu_resource: str = "nvidia.com/gpu"
    """The cluster's resource name of a GPU."""
    host_paths: tuple[str, ...] = ()
    """Directories and files of the nodes that followers see read-only under the same
    path, such as a Flux installation. The Flux Operator allows directories only."""
    cwd: tuple[str, ...] = ()
    """Directories in which jobs are submitted, such as "/home/ann/run", and which
    followers are to have too. They are made in each follower: empty and on the node's
    disk, or inside a volume that is mounted above them. If a follower does not have a
    job's directory, the job runs in `/tmp` there."""
    names: bool = False
    """Whether followers can resolve the host names of the lead's list, such as
    `burst-0-1`, and the host names of pods. It is for programs that take a host list
    from Flux. It makes a Service for each host, so no other lead may burst into the
    namespace with the same host names. The domain of the cluster's DNS must be
    `cluster.local`."""
    queue: str = ""
    """A queue of Kueue in the namespace. Kueue then starts the Jobs of the bursts. Such
    bursts are not resized."""
    multi_user: MultiUserTable | None = None
    """A table that lets followers run jobs of users other than the lead's owner, each
    job under its own user. It needs form job, and is for joined bursts only."""
    munge_key: str = ""
    """Path, on the daemon's host, of the lead's munge key. It goes into the burst's
    Secret, and a munged of the image (0.5.14 or later) runs with it beside each broker.
    Brokers do not need it. Set it for a lead that signs its users' jobs with munge."""
    flux: str = "flux"
    """The program in the image, by name or path."""
    view: str = ""
    """An image with a Flux of the lead's MAJOR.MINOR version, such as the Flux
    Operator's `flux-view-*`: an init container copies Flux out of it, so `image` needs
    no Flux. The C library of `image` must not be older than the view's. Default:
    `image` has a Flux of its own."""
    view_paths: tuple[str, ...] = FLUX_VIEW
    """With form job: the directories to copy out of the view's image, each as
    `SOURCE:TARGET`. TARGET is the path in followers, for which Flux was built; the
    first one has `bin/flux`. In SOURCE * and ? are expanded. Default: those of
    `flux-view-*`."""
    schedule: Seconds = Seconds(300)
    """How long a pod may wait for a node or for quota. After that the burst fails for
    lack of capacity. An autoscaler takes one to three minutes. Set `provision` to
    more."""
    operator_yaml: str = ""
    """With form operator: path of the operator's manifests. Before the first burst, the
    objects in it that do not exist are made, which needs the rights of a cluster
    administrator. They are not deleted."""
    object_labels: Mapping[str, str] = {}
    """Labels for all objects of a burst: Job or MiniCluster, pods, Secret, ConfigMap,
    Services. In a value, {user}, {bank} and {queue} stand for those of the jobs that
    the burst is made for: "several" if they differ, "none" if there is none. Characters
    that a label cannot have become "-"."""
    pod: Mapping[str, Any] = {}
    """A part of a pod's template, in the words of Kubernetes (`metadata` and `spec`).
    It is merged over the template of the followers: labels, annotations, nodeSelector,
    tolerations, service account, pull secrets, environment, volumes, init containers
    and further containers, priority class, scheduler, runtime class and so on. The
    broker's container is named `broker`. docs/kubernetes.md says how it is merged and
    which keys are refused."""

    retired: ClassVar[Mapping[str, str]] = POD_WORDS

    @property
    def own_images(self) -> bool:
        """Whether bursts may have images of their own."""
        return True

    @property
    def modes(self) -> tuple[BurstMode, ...]:
        """The modes that bursts may have, the default first."""
        if self.form == "operator" or self.multi_user:
            return ("joined",)
        return ("isolated", "joined") if self.mode == "isolated" else _BOTH

    @property
    def shares_socket(self) -> bool:
        """Whether a container beside the broker mounts its socket, for any offer."""
        pods = (self.pod, *(table.pod for table in self.offers.values()))
        return any(map(mounts_socket, pods))

    def for_offer(self, table: OfferTable) -> Self:
        """Return these settings with the offer's `pod` merged over their own."""
        return self._with_pod(table.pod) if table.pod else self

    def with_pod_spec(self, spec: Mapping[str, Any]) -> Self:
        """Return these settings with `spec` merged over the spec of their `pod`."""
        return self._with_pod({"spec": spec})

    def is_spot(self, table: OfferTable) -> bool:
        """Tell whether the cloud may take nodes of an offer back at any time."""
        return table.spot or selects_spot(merged_pods(self.pod, table.pod))

    def _with_pod(self, pod: Mapping[str, Any]) -> Self:
        return msgspec.structs.replace(self, pod=merged_pods(self.pod, pod))

    def __post_init__(self) -> None:
        """Check what the types cannot express. Raises ValueError."""
        if self.mode == "isolated" and self.form == "operator":
            raise ValueError('mode = "isolated" needs form = "job"')
        # In this order: later checks read the mounts of a `pod` that was checked
        # before.
        wrongs = chain(
            _wrong_users(self),
            _wrong_pods(self),
            _wrong_storage(self),
            _wrong_view(self),
            check_labels(self.object_labels),
        )
        for wrong in wrongs:
            raise ValueError(wrong)
        if self.queue and not is_label_value(self.queue):
            raise ValueError(f"queue: {self.queue!r} is not the name of a queue")


def _wrong_users(settings: PodSettings) -> Iterator[str]:
    table = settings.multi_user
    if table is None:
        return
    # First the key that gives rights: the site itself has to allow privileges to pods.
    if settings.security != "baseline":
        yield (
            "multi_user: guests' jobs are started by a setuid program, which the Pod"
            ' Security Standard restricted forbids: set security = "baseline", and'
            " label the namespace pod-security.kubernetes.io/enforce=baseline"
        )
    if settings.user == 0:
        yield "multi_user: followers may not run as root; set user to flux's number"
    if settings.form == "operator":
        yield (
            "multi_user: a MiniCluster has no container that sets the owners of its"
            ' directories, so guests could replace them; set form = "job"'
        )
    if settings.mode == "isolated":
        yield (
            "multi_user: an isolated burst runs its job as the followers' user, who has"
            ' the keys; set mode = "joined"'
        )
    if not settings.munge_key and MUNGE_PATH not in settings.host_paths:
        yield (
            "multi_user: the signatures of jobs are checked by munge: set munge_key to"
            f" a copy of the lead's, or mount the nodes' {MUNGE_PATH} with host_paths"
        )
    if settings.view:
        yield "multi_user: a copy of Flux from view is not setuid; leave view out"
    if settings.cwd:
        yield "multi_user: directories of cwd have one owner; use volumes for homes"
    yield from check_table(table)


def _wrong_pods(settings: PodSettings) -> Iterator[str]:
    overlays = {"pod": settings.pod}
    for name, table in settings.offers.items():
        overlays[f"offers.{name}.pod"] = table.pod
    for where, overlay in overlays.items():
        yield from check_overlay(overlay, where, settings.gpu_resource)
    if settings.form == "operator":
        for where, overlay in overlays.items():
            yield from check_for_operator(overlay, where)


def _wrong_storage(settings: PodSettings) -> Iterator[str]:
    mounted = _mounted(settings)
    users = {}
    if settings.multi_user and settings.multi_user.users != "image":
        users = {f"multi_user.users ({name})": name for name in USER_FILES}
    for key, path in mounted.items():
        if path in users.values():
            yield f"{key}: followers have a {path} from multi_user.users"
    cwd = {f"cwd[{number}]": path for number, path in enumerate(settings.cwd)}
    for key, path in cwd.items():
        yield from check_paths({key: path})
    yield from check_empty(cwd, [*settings.host_paths, *mounted.values()])
    # Without munge_key, the socket of the nodes' own munge may be mounted at that path.
    munge = {"munge_key": MUNGE_PATH} if settings.munge_key else {}
    yield from check_host_paths(settings.host_paths, mounted | users | munge)
    if settings.form == "operator" and settings.cwd:
        yield f"cwd: {LACKS}"


def _mounted(settings: PodSettings) -> dict[str, str]:
    """Return the paths at which `pod` mounts volumes, by the key of the mount."""
    return {
        f"pod.spec.containers.{BROKER}.volumeMounts.{each.path}": each.path
        for each in site_mounts(settings.pod)
    }


def _wrong_view(settings: PodSettings) -> Iterator[str]:
    if settings.view_paths != FLUX_VIEW and not settings.view:
        yield "view_paths: is for view, which is not set: name its image"
    elif settings.view_paths != FLUX_VIEW and settings.form == "operator":
        yield (
            "view_paths: the Flux Operator copies from and to paths of its own; set"
            ' form = "job"'
        )
    elif settings.view and settings.form == "job":
        mounted = {f"host_paths ({path})": path for path in settings.host_paths}
        mounted |= {f"cwd ({path})": path for path in settings.cwd}
        mounted |= _mounted(settings)
        yield from check_view_paths(settings.view_paths, mounted)
