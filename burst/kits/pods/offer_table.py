# SPDX-License-Identifier: MIT
"""`[providers.NAME.offers.OFFER]` of all providers whose followers are pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec

from burst.config import Price, Seconds
from burst.kits.pods.retired_keys import NODE_SELECTOR

_AtLeast0 = Annotated[int, msgspec.Meta(ge=0)]
_AtLeast1 = Annotated[int, msgspec.Meta(ge=1)]


class OfferTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[providers.NAME.offers.OFFER]`: one kind of nodes that the cluster has."""

    cores: _AtLeast1
    """Of each follower, and its pod's request. At least as many as in the lead's R."""
    max_nodes: _AtLeast1
    """The most followers of one burst."""
    gpus: _AtLeast0 = 0
    """Of each follower, and its pod's request and limit of `gpu_resource`."""
    price: Price = 0.0
    """Per node and hour. Free by default, as the cluster exists anyway."""
    join_time: Seconds = Seconds(10)
    """From provision to join, as far as is known; 2 s if the nodes have the image."""
    cpu: str = ""
    """The pod's CPU request, such as "7500m"; default: `cores`. A node reserves some
    for itself, so a pod that is to have a whole node requests less."""
    memory: str = ""
    """Request and limit, such as "28Gi", of all that a follower's jobs use together.
    Default: 512 MiB for each core, and a limit of 8 GiB for each core."""
    spot: bool = False
    """Whether the cloud may take such nodes back. Known by itself where the nodes are
    selected by a label that GKE, EKS, AKS or Karpenter gives spot nodes."""
    pod: Mapping[str, Any] = {}
    """As `pod` of the provider, and merged over it: nodeSelector has the labels of such
    nodes, such as an instance type, a node pool or spot."""

    retired: ClassVar[Mapping[str, str]] = {
        "node_selector": NODE_SELECTOR.replace("NAME", "NAME.offers.OFFER")
    }
