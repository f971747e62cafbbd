# SPDX-License-Identifier: MIT
"""The table `[providers.NAME.offers.OFFER]` of providers whose followers are pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec

from burst.config import Price, Seconds

_SPEC = "write it in the words of Kubernetes, in [providers.NAME.pod.spec]: "
_MOUNTED = (
    "write it in the words of Kubernetes, in [providers.NAME.pod.spec]: a volume in"
    " volumes, and where it is mounted in volumeMounts of the container broker"
)
NODE_SELECTOR = f"{_SPEC}nodeSelector"
"""The advice for `node_selector`; for an offer it names the offer's own `pod`."""
POD_WORDS: Mapping[str, str] = {
    "commands": f"{_SPEC}initContainers for pre, and lifecycle.preStop of the container"
    " broker for post",
    "cluster_domain": "remove it: it is cluster.local",
    "environment": f"{_SPEC}env of the container broker, each with name and value",
    "grace": f"{_SPEC}terminationGracePeriodSeconds",
    "image_pull": f"{_SPEC}imagePullPolicy of the container broker",
    "node_selector": NODE_SELECTOR,
    "pull_secrets": f"{_SPEC}imagePullSecrets, each with a name",
    "python": "remove it: it is the python3 on the image's PATH",
    "scratch": f"{_MOUNTED}; it was an emptyDir with a sizeLimit at /scratch, and"
    " ephemeral-storage in the requests of that container's resources",
    "scratch_path": f"{_MOUNTED}, as mountPath",
    "service_account": f"{_SPEC}serviceAccountName",
    "service_port": "remove it: have the service listen at port 5000",
    "settle": "remove it: a MiniCluster has to have no objects for 2s",
    "share_socket": "remove it: a container that mounts the volume socket has it",
    "shm": f"{_MOUNTED}; it was an emptyDir with medium Memory and a sizeLimit at"
    " /dev/shm",
    "timeout": "remove it: a request to the API server may take 30s",
    "tolerations": f"{_SPEC}tolerations",
    "volumes": _MOUNTED,
}


_AtLeast0 = Annotated[int, msgspec.Meta(ge=0)]
_AtLeast1 = Annotated[int, msgspec.Meta(ge=1)]


class OfferTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[providers.NAME.offers.OFFER]`: one kind of nodes that the cluster has."""

    cores: _AtLeast1
    """Cores of each follower, and its pod's CPU request. At least as many as the lead's
    R declares for the follower's rank."""
    max_nodes: _AtLeast1
    """The most followers of one burst."""
    gpus: _AtLeast0 = 0
    """GPUs of each follower, and its pod's request and limit of `gpu_resource`."""
    price: Price = 0.0
    """Price per node and hour. Free by default, as the cluster exists anyway."""
    join_time: Seconds = Seconds(10)
    """Expected time from provision to join; 2 s if the nodes already have the image."""
    cpu: str = ""
    """The pod's CPU request, such as "7500m"; default: `cores`. A node reserves some
    CPU for itself, so a pod that is to fill a node requests less than the node has."""
    memory: str = ""
    """Memory request and limit of the pod, such as "28Gi", for all jobs of the follower
    together. Default: a request of 512 MiB and a limit of 8 GiB for each core."""
    spot: bool = False
    """Whether the cloud may take such nodes back. It is detected if the nodes are
    selected by a label that GKE, EKS, AKS or Karpenter gives spot nodes."""
    pod: Mapping[str, Any] = {}
    """As `pod` of the provider, and merged over it: for example a nodeSelector with the
    labels of such nodes, as for an instance type, a node pool or spot nodes."""

    retired: ClassVar[Mapping[str, str]] = {
        "node_selector": NODE_SELECTOR.replace("NAME", "NAME.offers.OFFER")
    }
