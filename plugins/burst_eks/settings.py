# SPDX-License-Identifier: MIT
"""The keys of `[providers.NAME]` with `type = "eks"`, and of its offers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec

from burst.config import Seconds
from burst.errors import SpecRefused
from burst.kits.pods import OfferTable, PodSettings

_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/\S+\Z")
# Of AWS: a tag's key and its value.
_LONGEST_KEY, _LONGEST_VALUE = 128, 256


class InstanceTable(OfferTable, frozen=True, kw_only=True):
    """`[providers.NAME.offers.OFFER]`: types of instances for one kind of nodes."""

    instance_types: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
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

    region: str
    """Of the cluster, such as `eu-central-1`."""
    cluster: str
    """The cluster in which each burst gets a node group of its own."""
    node_role: str
    """The ARN of the IAM role of the nodes, as that of the cluster's other node
    groups."""
    offers: Mapping[str, InstanceTable]
    """The types of instances that may be made, by name; at least one."""
    profile: str = ""
    """A profile of `~/.aws/config`. Empty: credentials as the `aws` command finds them,
    by variables, files, or the role of the instance or pod. Keys are never in this
    file."""
    subnets: tuple[str, ...] = ()
    """Ids of the subnets of the nodes; those of the cluster if empty. With one subnet
    all nodes are in one zone, which jobs over several nodes need."""
    disk_gb: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Disk of a node; EKS's default (20) if 0."""
    tags: Mapping[str, str] = {}
    """Further tags of the node groups."""

    def __post_init__(self) -> None:
        """Check what the types cannot express. Raises ValueError."""
        super().__post_init__()
        for wrong in _wrong(self):
            raise ValueError(wrong)

    def instances(self, offer: str) -> InstanceTable:
        """Return what an offer stands for. Raises SpecRefused."""
        try:
            return self.offers[offer]
        except KeyError:
            raise SpecRefused(
                f"there is no offer {offer!r}",
                "there are " + ", ".join(sorted(self.offers)),
            ) from None


def _wrong(settings: EksSettings) -> Iterator[str]:
    for key in ("region", "cluster"):
        if not getattr(settings, key):
            yield f"{key}: is empty"
    if not _ROLE.match(settings.node_role):
        yield (
            f"node_role: {settings.node_role!r} is no ARN of a role, such as"
            " arn:aws:iam::123456789012:role/nodes"
        )
    if not settings.offers:
        yield "offers: name at least one instance_types in a table offers.NAME"
    for key, value in settings.tags.items():
        if not 0 < len(key) <= _LONGEST_KEY or len(value) > _LONGEST_VALUE:
            yield f"tags: {key}: AWS takes keys up to 128, values up to 256 characters"
        if key.startswith(("aws:", "burst.flux-framework.org/")):
            yield f"tags: {key}: begins as those of AWS or of bursts do"
