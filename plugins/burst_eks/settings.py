# SPDX-License-Identifier: MIT
"""The keys of `[providers.NAME]` with `type = "eks"`, and of its offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from burst.config import Seconds
from burst.kits.pods import OfferTable, PodSettings

_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Role = Annotated[
    str, msgspec.Meta(pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/\S+$")
]
_Texts = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


class InstanceTable(OfferTable, frozen=True, kw_only=True):
    """`[providers.NAME.offers.OFFER]`: types of instances for one kind of nodes."""

    instance_types: _Texts
    """Such as `["c7i.4xlarge"]`. With several, which should be of one size, AWS takes
    the first that it has; of spot nodes it takes that of which it has most."""
    spot: bool = False
    """Cheaper nodes, which AWS may take back at any time with a notice of two
    minutes."""
    ami_type: str = ""
    """The kind of image of the nodes, such as `AL2023_x86_64_NVIDIA` for those with
    GPUs; EKS chooses by the type of instance if empty."""
    join_time: Seconds = Seconds(180)
    """From provision to join, as far as is known; the default is a guess."""


class EksSettings(PodSettings, frozen=True, kw_only=True):
    """`[providers.NAME]` with `type = "eks"`.

    Change region, cluster and profile only while no burst lives: bursts are looked for
    only in the place that they name.
    """

    region: _Text
    """Of the cluster, such as `eu-central-1`."""
    cluster: _Text
    """The cluster in which each burst gets a node group of its own."""
    node_role: _Role
    """The ARN of the IAM role of the nodes, as that of the cluster's other node
    groups."""
    subnets: _Texts
    """Ids of the subnets of the nodes, of those of the cluster. With one subnet all
    nodes are in one zone, which jobs over several nodes need."""
    offers: Annotated[Mapping[str, InstanceTable], msgspec.Meta(min_length=1)]
    """The types of instances that may be made, by name; at least one."""
    profile: str = ""
    """A profile of `~/.aws/config`. Empty: credentials as the `aws` command finds them,
    by variables, files, or the role of the instance or pod. Keys are never in this
    file."""
    disk_gb: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Disk of a node; EKS's default (20) if 0."""
    tags: Mapping[str, str] = {}
    """Further tags of the node groups."""
