# SPDX-License-Identifier: MIT
"""The keys that every provider has whose followers are pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec

from burst.config import Seconds
from burst.model.request import BurstMode
from burst.model.shape import Shape
from burst.provider import Offer

_AtLeast0 = Annotated[int, msgspec.Meta(ge=0)]
_AtLeast1 = Annotated[int, msgspec.Meta(ge=1)]
_BOTH: tuple[BurstMode, ...] = ("joined", "isolated")
_Price = Annotated[float, msgspec.Meta(ge=0)]


class OfferTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[providers.NAME.offers.OFFER]`: one kind of nodes that the cluster has."""

    cores: _AtLeast1
    """Of each follower, and what its pod asks for. At least what the lead's R says."""
    max_nodes: _AtLeast1
    """Followers of one burst at the most."""
    gpus: _AtLeast0 = 0
    price: _Price = 0.0
    """Per node and hour. Free by default: the cluster is there anyway."""
    join_time: Seconds = Seconds(10)
    """From asking to joining, as far as is known; with the image there, 2 s."""
    cpu: str = ""
    """What the pod asks for in Kubernetes' terms, such as "7500m"; default: `cores`.
    A node keeps a little for itself, so a pod that has a node alone asks for less."""
    memory: str = ""
    """Such as "28Gi"; asked for and the limit. None by default: R knows no memory."""
    node_selector: Mapping[str, str] = {}
    """Labels of such nodes, added to those of the provider: an instance type, a node
    pool, spot."""


class Toleration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A taint that followers put up with, as in a pod's spec."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: str = ""


class PodSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is the same in any cluster. A plug-in's Settings derive from it."""

    image: str
    """What followers run. No default, as its Flux must be of the lead's MAJOR.MINOR;
    for an embedded lead it has this package."""
    offers: Mapping[str, OfferTable]
    """What the cluster's nodes are like, by name; at least one."""
    namespace: str = "default"
    """Where all of it is made. It must exist."""
    form: Literal["job", "operator"] = "job"
    """job: an indexed Job of our own. operator: a MiniCluster of the Flux Operator,
    which then needs to run there, best with this namespace to itself."""
    mode: BurstMode = "joined"
    """What bursts are unless the job says: nodes of the lead, or isolated, which is an
    instance of their own that runs one job. With form operator, joined only."""
    service: tuple[str, ...] = ()
    """For `burst request --isolated --service`: what such an instance's lead runs, in
    the foreground, such as a RESTful API for Flux. The image has it."""
    service_port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 5000
    """Where it listens."""
    image_pull: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    """Names of Secrets in the namespace with which the image is pulled."""
    service_account: str = ""
    """Of the pods. Its token is never mounted: followers talk to no API server."""
    user: _AtLeast0 | None = None
    """Numeric user that brokers run as; default: the daemon's, so the lead's; with
    form operator the image's. The image must know it (`/etc/passwd`)."""
    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    one_per_node: bool = True
    """No node gets two followers, of whatever burst, as each is a node to Flux. Turn it
    off where nodes are larger than what an offer says. The Flux Operator knows this as
    a preference only."""
    gpu_resource: str = "nvidia.com/gpu"
    """What the cluster calls a GPU."""
    host_paths: tuple[str, ...] = ()
    """Directories and files of the nodes that followers see under the same path,
    unwritable: for a Flux that is installed there, or for a lab without images. The
    Flux Operator knows directories only."""
    environment: Mapping[str, str] = {}
    """Added to the followers' environment. Everyone who may list pods reads it."""
    flux: str = "flux"
    """The program in the image, by name or path."""
    python: str = "python3"
    """The Python in the image that has this package; for an embedded lead only."""
    view: str = ""
    """With form operator: an image of Flux that the operator lays over `image`, the
    lead's; default: `image` has a Flux of its own."""
    grace: Seconds = Seconds(5)
    """From SIGTERM to SIGKILL. A broker leaves in 0.2 s; one whose gateway left before
    it may not leave at all."""
    schedule: Seconds = Seconds(300)
    """How long a pod may find no node, or no quota, until the burst is given up for
    want of capacity. An autoscaler takes one to three minutes."""
    operator_yaml: str = ""
    """With form operator: path of the operator's manifests, of a version that you
    chose. What of them is missing is made before the first burst, for which one needs
    to be the cluster's administrator; they stay."""
    settle: Seconds = Seconds(2)
    """With form operator: how long nothing of a MiniCluster may be seen until it is
    believed gone. The operator may still be making children of one that it read."""
    timeout: Seconds = Seconds(10)
    """How long the API server may take to answer."""

    def __post_init__(self) -> None:
        """Check what no type says. Raises ValueError."""
        if self.mode == "isolated" and self.form == "operator":
            raise ValueError('mode = "isolated" needs form = "job"')


def offers(settings: PodSettings) -> Sequence[Offer]:
    """Return what the tables sell."""
    return [
        Offer(
            name=name,
            shape=Shape(table.cores, table.gpus),
            max_nodes=table.max_nodes,
            price=table.price,
            join_time=table.join_time,
            modes=_modes(settings),
        )
        for name, table in settings.offers.items()
    ]


def _modes(settings: PodSettings) -> tuple[BurstMode, ...]:
    if settings.form == "operator":
        return ("joined",)
    return ("isolated", "joined") if settings.mode == "isolated" else _BOTH
