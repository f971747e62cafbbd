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
    """`[providers.NAME.offers.OFFER]`: instance types for one kind of node."""

    instance_types: _Texts
    """Instance types of the nodes, such as `["c7i.4xlarge"]`. With several, which
    should be of one size, AWS takes the first that it has; for spot nodes, the one of
    which it has most."""
    spot: bool = False
    """Whether nodes are spot instances: cheaper, but AWS may take them back at any time
    with a notice of two minutes."""
    ami_type: str = ""
    """Type of the nodes' image, such as `AL2023_x86_64_NVIDIA` for nodes with GPUs. If
    empty, EKS chooses by the instance type."""
    join_time: Seconds = Seconds(180)
    """Expected time from provision to join; the default is a guess."""


class EksSettings(PodSettings, frozen=True, kw_only=True):
    """`[providers.NAME]` with `type = "eks"`.

    Change region, cluster and profile only while no burst lives: the provider looks for
    bursts only in the place that these keys name.
    """

    region: _Text
    """Region of the cluster, such as `eu-central-1`."""
    cluster: _Text
    """The cluster in which each burst gets a node group of its own."""
    node_role: _Role
    """ARN of the nodes' IAM role, such as that of the cluster's other node groups."""
    subnets: _Texts
    """Ids of those of the cluster's subnets in which nodes are made. With one subnet
    all nodes are in one zone, which jobs over several nodes need."""
    offers: Annotated[Mapping[str, InstanceTable], msgspec.Meta(min_length=1)]
    """Instance types of each offer, by the offer's name; at least one."""
    profile: str = ""
    """A profile of `~/.aws/config`. If empty, credentials are found as by the `aws`
    command, in variables, files, or the role of the instance or pod. This file never
    has keys."""
    disk_gb: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Size of a node's disk in GiB; EKS's default (20) if 0."""
    tags: Mapping[str, str] = {}
    """Additional tags of the node groups."""
