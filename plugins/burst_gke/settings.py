# SPDX-License-Identifier: MIT
"""The keys of `[providers.NAME]` with `type = "gke"`, and the offers of its tables."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from burst.config import Price, Seconds
from burst.errors import Refused
from burst.kits.pods import OfferTable, PodSettings, offers
from burst.model.burst import BurstId
from burst.provider import Offer
from burst_gke.names import PREFIX, is_label_key, is_label_value, name_of
from burst_gke.request_overlay import wrong_request

_AtLeast0 = Annotated[int, msgspec.Meta(ge=0)]
# Compute Engine takes 30 seconds to 120 days as the longest life of a VM.
SHORTEST_RUN_S = 30.0
LONGEST_RUN_S = 120 * 86400.0
_IN_CLUSTER = "write it in the words of Google's API, in request.cluster:"
_IN_POOL = "write it in the words of Google's API, in request.node_pool:"
_ZONE = re.compile(r"[a-z]+-[a-z]+[0-9]+-[a-z][a-z0-9]*\Z")
_REGION = re.compile(r"[a-z]+-[a-z]+[0-9]+\Z")
# n2-standard-8, c3d-highcpu-30-lssd; but not a2-highgpu-1g or e2-medium.
_VCPUS = re.compile(r"([a-z][a-z0-9]*)-[a-z]+-([0-9]+)(-[a-z]+)?\Z")
# In these families a vCPU is a core; in others a core is two, and Flux counts cores.
_ONE_THREAD = frozenset({"t2a", "t2d", "c4a", "n4a", "h3", "h4d"})
# Published medians for a cluster (n=126) and for more nodes in a pool (n=1788); a new
# pool is guessed to take twice the second.
_CLUSTER_TIME_S, _POOL_TIME_S, _NODE_TIME_S = 287.0, 64.0, 32.0


class MachineTable(OfferTable, frozen=True, kw_only=True):
    """`[providers.NAME.offers.OFFER]`: a type of machine."""

    machine_type: str
    """Such as `n2-standard-8`."""
    cores: _AtLeast0 = 0
    """Of each follower, as Flux counts them; 0 for the number by the type's name: half
    its vCPUs, since a core is two of them, or all where a core is one."""
    accelerator: str = ""
    """Of which type the `gpus` are, such as `nvidia-l4`."""
    spot: bool = False
    """A third of the price or less, and Google may take a node back at any time. With
    `pool`: whether that pool's nodes are such."""
    join_time: Seconds = Seconds(0)
    """From provision to join, as far as is known; 0 for published medians."""

    retired: ClassVar[Mapping[str, str]] = {
        **OfferTable.retired,
        "compact_placement": f"{_IN_POOL} placement_policy",
        "reservation": f"{_IN_POOL} config.reservation_affinity",
    }

    def __post_init__(self) -> None:
        """Fill in cores, and check what the types cannot express. Raises ValueError."""
        if bool(self.gpus) != bool(self.accelerator):
            raise ValueError("gpus and accelerator: set both or none")
        if self.cores:
            return
        match = _VCPUS.match(self.machine_type)
        if match is None:
            raise ValueError(f"cores: {self.machine_type!r} does not tell: set it")
        single = match[1] in _ONE_THREAD
        cores = int(match[2]) if single else max(1, int(match[2]) // 2)
        msgspec.structs.force_setattr(self, "cores", cores)
        if single and not self.cpu:
            # A pod that requested all of them would not fit beside GKE's own pods.
            msgspec.structs.force_setattr(self, "cpu", f"{500 * cores}m")


class RequestTable(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """`[providers.NAME.request]`: parts of Google's requests, in its API's own words.

    They are those of google.container.v1: `disk_size_gb`, not `diskSizeGb`. Tables are
    merged with what is made, all else takes its place.
    """

    cluster: Mapping[str, Any] = {}
    """Of the Cluster of bursts that have one of their own: `network`, `subnetwork`,
    `ip_allocation_policy`, `network_config`, `control_plane_endpoints_config` and so
    on."""
    node_pool: Mapping[str, Any] = {}
    """Of the NodePool with a burst's nodes: `config` with `service_account`, `tags`,
    `disk_size_gb`, `reservation_affinity` and so on, `network_config`,
    `placement_policy`."""


class GkeSettings(PodSettings, frozen=True, kw_only=True):
    """`[providers.NAME]` with `type = "gke"`.

    Change project, location, cluster and pool only while no burst lives: bursts are
    looked for only in the place that they name.
    """

    project: str
    """The id of the Google Cloud project that pays and that has the clusters."""
    location: str
    """A zone such as `us-central1-a`, or a region; of the cluster."""
    zone: str = ""
    """Of the nodes, where location is a region. All nodes of a burst are in one zone;
    without it GKE's autoscaler chooses among those of the cluster."""
    cluster: str = ""
    """The cluster to burst into. Empty: each burst has one of its own, made for it and
    deleted with it, which takes five minutes and costs a fee by the hour."""
    pool: str = ""
    """A node pool of that cluster for the followers; then only pods are made. Empty:
    each burst has a node pool of its own."""
    endpoint: Literal["default", "private", "dns"] = "default"
    """The address of the cluster's API server to use. private: the one in its network,
    for a daemon there, if the public one is closed or restricted to authorized
    networks. dns: its name, where Google checks the caller's account, not its
    address."""
    offers: Mapping[str, MachineTable]
    """The types of machines that may be made, by name; at least one."""
    name_prefix: str = ""
    """Before the burst's id in the name of what is made."""
    labels: Mapping[str, str] = {}
    """Further resource labels, which appear on the bill."""
    request: RequestTable = RequestTable()
    """What Google's API has and no other key of this table, such as networks."""
    cluster_fee: Price = 0.10
    """What Google takes for a cluster and hour beside its nodes, in the site's unit of
    money; the default is in US dollars. It is the fee of bursts that have a cluster of
    their own, once for all their nodes."""
    max_run_duration: Seconds = Seconds(math.inf)
    """After this time from its own start Google deletes each VM of nodes that are made
    for a burst, and Kubernetes ends the pods, even if no daemon runs. A cluster of its
    own stays, and costs its fee, until the daemon or `burst gc` deletes it. Of the
    nodes of `pool` it ends pods only. 30 seconds to 120 days."""

    retired: ClassVar[Mapping[str, str]] = {
        **PodSettings.retired,
        "authorized_networks": f"{_IN_CLUSTER} control_plane_endpoints_config"
        ".ip_endpoints_config.authorized_networks_config",
        "disk_gb": f"{_IN_POOL} config.disk_size_gb",
        "network": f"{_IN_CLUSTER} network",
        "node_service_account": f"{_IN_POOL} config.service_account",
        "pods_range": f"{_IN_CLUSTER} ip_allocation_policy.cluster_secondary_range_name"
        "; of a node pool in a cluster of yours it is network_config.pod_range of"
        " request.node_pool",
        "private_nodes": f"{_IN_CLUSTER} network_config.default_enable_private_nodes"
        "; of a node pool in a cluster of yours it is"
        " network_config.enable_private_nodes of request.node_pool",
        "services_range": f"{_IN_CLUSTER} ip_allocation_policy"
        ".services_secondary_range_name",
        "subnetwork": f"{_IN_CLUSTER} subnetwork",
        "tags": f"{_IN_POOL} config.tags",
    }

    def __post_init__(self) -> None:
        """Check what the types cannot express. Raises ValueError."""
        super().__post_init__()
        checks = (_wrong_place(self), wrong_request(self), _wrong_labels(self.labels))
        for wrong in itertools.chain(*checks):
            raise ValueError(wrong)
        life = self.max_run_duration
        if life < math.inf and not SHORTEST_RUN_S <= life <= LONGEST_RUN_S:
            raise ValueError("max_run_duration: Google takes 30s to 120d, or none")

    @property
    def node_zone(self) -> str:
        """The zone in which nodes are made; empty if GKE chooses."""
        return self.location if _ZONE.match(self.location) else self.zone

    def name_of(self, burst_id: BurstId) -> str:
        """Return what a burst's cluster or pool is called."""
        return name_of(burst_id, self.name_prefix)

    @property
    def node_config(self) -> Mapping[str, Any]:
        """The part of NodeConfig that `request` has."""
        found: Mapping[str, Any] = self.request.node_pool.get("config", {})
        return found

    @property
    def private_nodes(self) -> bool:
        """Whether `request` has nodes made without external addresses."""
        pool = self.request.node_pool.get("network_config", {})
        cluster = self.request.cluster.get("network_config", {})
        of_all = cluster.get("default_enable_private_nodes", False)
        return bool(pool.get("enable_private_nodes", of_all))

    @property
    def parent(self) -> str:
        """The API's name for the place of clusters: `projects/P/locations/L`."""
        return f"projects/{self.project}/locations/{self.location}"

    def machine(self, offer: str) -> MachineTable:
        """Return what an offer stands for. Raises Refused."""
        try:
            return self.offers[offer]
        except KeyError:
            raise Refused(
                f"there is no offer {offer!r}",
                "there are " + ", ".join(sorted(self.offers)),
            ) from None


def offers_of(settings: GkeSettings) -> list[Offer]:
    """Return the offers, with a fee, and a join time where their table has none."""
    time, fee = _CLUSTER_TIME_S, settings.cluster_fee
    if settings.cluster:
        time, fee = _NODE_TIME_S if settings.pool else _POOL_TIME_S, 0.0
    return [
        msgspec.structs.replace(offer, join_time=offer.join_time or time, fee=fee)
        for offer in offers(settings)
    ]


def offers_alike(settings: GkeSettings, offer: str, *, gpus: bool) -> tuple[str, ...]:
    """Return other offers whose nodes take no less: of GPUs, or else of cores."""

    def taken(table: MachineTable) -> int:
        return table.gpus if gpus else table.cores

    least = taken(settings.machine(offer))
    others = ((name, t) for name, t in settings.offers.items() if name != offer)
    return tuple(name for name, table in others if taken(table) >= max(1, least))


def _wrong_place(settings: GkeSettings) -> Iterator[str]:
    if not settings.project:
        yield "project: is empty"
    if not _ZONE.match(settings.location) and not _REGION.match(settings.location):
        yield (
            f"location: {settings.location!r} is neither a zone such as us-central1-a"
            " nor a region"
        )
    if settings.pool and not settings.cluster:
        yield "pool: name the cluster that it is in too"
    if settings.zone and not settings.zone.startswith(f"{settings.location}-"):
        yield f"zone: {settings.zone!r} is not in {settings.location!r}"
    if not settings.cluster and not settings.node_zone:
        # GKE would make the requested number of nodes in each zone of the region.
        yield "zone: say in which zone of the region nodes are to be"
    if settings.operator_yaml and settings.form != "operator":
        yield 'operator_yaml: goes with form = "operator"'
    if not settings.offers:
        yield "offers: name at least one machine_type in a table offers.NAME"


def _wrong_labels(labels: Mapping[str, str]) -> Iterator[str]:
    for key, value in labels.items():
        if key.startswith(PREFIX):
            yield f"labels: {key}: begins with {PREFIX}, as ours do"
        if not is_label_key(key) or not is_label_value(value):
            yield (
                f"labels: {key}: keys and values are up to 63 of a-z, 0-9, _ and -,"
                " and keys begin with a letter"
            )
