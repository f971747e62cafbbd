# SPDX-License-Identifier: MIT
"""Node groups of bursts: their names, the requests for them, and the burst of each.

EKS's rules: a name has up to 63 characters of letters, digits, - and _, and is unique
in the cluster. So EKS declines a second request for the node group of a burst.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from burst.errors import SpecRefused
from burst.kits.pods import Tags, names
from burst.kits.resource_tags import ResourceTags
from burst.model.burst import BurstId
from burst.provider import BurstSpec, Failure, Phase
from burst_eks.failures import CodeMeaning
from burst_eks.settings import EksSettings

TAGS = ResourceTags(names.OWNER, names.PROVIDER, names.ID, names.LEASE_END)
PREFIX = "burst-"
"""Prefix of the names of all bursts' node groups."""
TAINT = "burst"
"""A taint that keeps other pods off nodes that are deleted with their burst."""
_SELECTS = "eks.amazonaws.com/nodegroup"
"""The label that EKS gives each node of a node group."""
_LONGEST = 63


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A managed node group, as EKS reports it."""

    name: str
    tags: Mapping[str, str]
    phase: Phase
    """RUNNING: its nodes take pods. FAILED: it will not have all its nodes."""
    why: str = ""
    """What EKS says is wrong, or how far it is."""
    meaning: CodeMeaning | None = None
    """What an issue means that does not pass by itself; None if there is none."""
    has_nodes: bool = True
    """Whether its instances run, and cost, which EKS does not tell: all of them, as far
    as no issue is about making them."""
    scaling_groups: tuple[str, ...] = ()
    """The Auto Scaling groups of its instances; none before EKS has made them."""

    @property
    def failure(self) -> Failure:
        """The class of the failure, if it has failed."""
        if self.phase is Phase.FAILED and self.meaning is not None:
            return self.meaning.failure
        return Failure.OTHER


def prefix_of(tags: Tags) -> str:
    """Return how the names of all node groups of one provider of one owner begin."""
    return f"{PREFIX}{_hash(f'{tags.owner} {tags.provider}')}-"


def name_of(tags: Tags, burst_id: BurstId) -> str:
    """Return the name of a burst's node group: the same each time."""
    name = prefix_of(tags) + burst_id
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 9]}-{_hash(name)}"


def burst_of(group: NodeGroup, tags: Tags) -> BurstId | None:
    """Return the burst of this provider that a group is for; None if there is none."""
    return TAGS.burst_of(group.tags, tags.owner, tags.provider)


def request(settings: EksSettings, spec: BurstSpec, tags: Tags) -> dict[str, Any]:
    """Return the arguments of CreateNodegroup."""
    offer, nodes = settings.offers[spec.offer], len(spec.hosts)
    lease = {names.LEASE_END: str(int(spec.lease_end))} if spec.lease_end else {}
    ours = {**tags.labels(spec.burst_id), **lease}
    ours[names.SPEC] = _spec_hash(settings, spec)
    made = {
        "clusterName": settings.cluster,
        "nodegroupName": name_of(tags, spec.burst_id),
        "scalingConfig": {"minSize": nodes, "maxSize": nodes, "desiredSize": nodes},
        "instanceTypes": list(offer.instance_types),
        "capacityType": "SPOT" if offer.spot else "ON_DEMAND",
        "amiType": offer.ami_type,
        "diskSize": settings.disk_gb,
        "nodeRole": settings.node_role,
        "subnets": list(settings.subnets),
        "labels": tags.labels(spec.burst_id),
        "taints": [{"key": TAINT, "value": spec.burst_id, "effect": "NO_SCHEDULE"}],
        "tags": {**settings.tags, **ours},
    }
    return {key: value for key, value in made.items() if value}


def pod_settings(settings: EksSettings, spec: BurstSpec, tags: Tags) -> EksSettings:
    """Return the settings for the burst's pods, which select the burst's nodes."""
    selector = {_SELECTS: name_of(tags, spec.burst_id)}
    ours = {"key": TAINT, "operator": "Equal", "value": spec.burst_id}
    return settings.with_pod_spec({"nodeSelector": selector, "tolerations": [ours]})


def check_ours(
    group: NodeGroup, settings: EksSettings, spec: BurstSpec, tags: Tags
) -> None:
    """Raise SpecRefused unless the group was made for this very spec."""
    if burst_of(group, tags) != spec.burst_id:
        raise SpecRefused(
            f"there is a node group {group.name} in cluster {settings.cluster} that"
            " lacks our tags, so it is not ours",
            "delete it, or rename the rank slot",
        )
    if group.tags.get(names.SPEC) != _spec_hash(settings, spec):
        raise SpecRefused(
            f"{group.name} exists with other hosts or other instances", "reap it first"
        )


def _spec_hash(settings: EksSettings, spec: BurstSpec) -> str:
    offer = settings.offers[spec.offer]
    return names.spec_hash(spec, offer.instance_types, offer.spot, offer.ami_type)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
