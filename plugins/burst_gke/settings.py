# SPDX-License-Identifier: MIT
"""The keys of `[providers.NAME]` with `type = "gke"`, and the offers of its tables."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

import msgspec

from burst.config import Seconds
from burst.errors import Refused
from burst.kits.pods import OfferTable, PodSettings, offers
from burst.model.burst import BurstId
from burst.provider import Offer
from burst_gke.request_overlay import RequestTable, wrong_request
from burst_gke.resources import name_of

_AtLeast0 = Annotated[int, msgspec.Meta(ge=0)]
# Compute Engine accepts 30 seconds to 120 days as the maximum run time of a VM.
SHORTEST_RUN_S = 30.0
LONGEST_RUN_S = 120 * 86400.0
_IN_CLUSTER = "write it in the words of Google's API, in request.cluster:"
_IN_POOL = "write it in the words of Google's API, in request.node_pool:"
_ZONE = re.compile(r"[a-z]+-[a-z]+[0-9]+-[a-z][a-z0-9]*\Z")
_REGION = re.compile(r"[a-z]+-[a-z]+[0-9]+\Z")
# n2-standard-8, c3d-highcpu-30-lssd; but not a2-highgpu-1g or e2-medium.
_VCPUS = re.compile(r"([a-z][a-z0-9]*)-[a-z]+-([0-9]+)(-[a-z]+)?\Z")
# In these families a core is one vCPU, in all others two. Flux counts cores.
_ONE_THREAD = frozenset({"t2a", "t2d", "c4a", "n4a", "h3", "h4d"})
# Published median times for a cluster (n=126) and for more nodes in a pool (n=1788).
# The time for a new pool is a guess: twice the second.
_CLUSTER_TIME_S, _POOL_TIME_S, _NODE_TIME_S = 287.0, 64.0, 32.0
# US dollars per hour for a cluster, beside its nodes, the same in all regions:
# https://cloud.google.com/kubernetes-engine/pricing, since June 2020.
_CLUSTER_FEE = 0.10


class MachineTable(OfferTable, frozen=True, kw_only=True):
    """`[providers.NAME.offers.OFFER]`: a machine type."""

    machine_type: str
    """Machine type of the nodes, such as `n2-standard-8`."""
    cores: _AtLeast0 = 0
    """Cores of each follower, as Flux counts them. 0: half the vCPUs in the name of the
    machine type, or all of them in families where a core is one vCPU."""
    accelerator: str = ""
    """Type of the `gpus`, such as `nvidia-l4`; empty without GPUs."""
    spot: bool = False
    """Whether the nodes are spot VMs: a third of the price or less, but Google may take
    one back at any time. With `pool`: whether that pool's nodes are spot VMs."""
    join_time: Seconds = Seconds(0)
    """Expected time from provision to join; 0 for published medians."""

    retired: ClassVar[Mapping[str, str]] = {
        **OfferTable.retired,
        "compact_placement": f"{_IN_POOL} placement_policy",
        "reservation": f"{_IN_POOL} config.reservation_affinity",
    }

    def __post_init__(self) -> None:
        """Fill in cores and cpu; check what types cannot express. Raises ValueError."""
        if bool(self.gpus) != bool(self.accelerator):
            raise ValueError("gpus and accelerator: set both or none")
        if self.cores:
            return
        match = _VCPUS.match(self.machine_type)
        if match is None:
            raise ValueError(
                f"cores: {self.machine_type!r} does not tell how many: set it"
            )
        single = match[1] in _ONE_THREAD
        cores = int(match[2]) if single else max(1, int(match[2]) // 2)
        msgspec.structs.force_setattr(self, "cores", cores)
        if single and not self.cpu:
            # A pod that requested all cores would not fit beside GKE's own pods.
            msgspec.structs.force_setattr(self, "cpu", f"{500 * cores}m")


class GkeSettings(PodSettings, frozen=True, kw_only=True):
    """`[providers.NAME]` with `type = "gke"`.

    Change project, location, cluster and pool only while no burst lives: the provider
    looks for bursts only in the place that these keys name.
    """

    project: str
    """Id of the Google Cloud project that has the clusters and pays for them."""
    location: str
    """Zone of the cluster, such as `us-central1-a`, or its region."""
    zone: str = ""
    """Zone of the nodes, if `location` is a region; all nodes of a burst are in it. If
    empty, GKE's autoscaler chooses among the zones of the cluster."""
    cluster: str = ""
    """The cluster to burst into. If empty, each burst has a cluster of its own, which
    takes five minutes to make, costs 0.10 US dollars an hour beside its nodes, and is
    deleted with it."""
    pool: str = ""
    """Node pool of that cluster for the followers: the provider then makes pods only.
    If empty, each burst has a node pool of its own."""
    endpoint: Literal["default", "private", "dns"] = "default"
    """Which address of the cluster's API server to use. private: the address in the
    cluster's network, for a daemon in that network, if the public one is disabled or
    restricted to authorized networks. dns: the DNS name, for which Google checks the
    caller's account, not its address."""
    offers: Mapping[str, MachineTable]
    """Machine type of each offer, by the offer's name; at least one."""
    name_prefix: str = ""
    """Prefix of the names of clusters and node pools; the burst's id follows it."""
    request: RequestTable = RequestTable()
    """Fields of Google's API for which this table has no key, such as networks."""
    max_run_duration: Seconds = Seconds(math.inf)
    """Longest run time of each VM made for a burst, 30 seconds to 120 days. Google then
    deletes the VM, and Kubernetes ends the pods, even if no daemon runs. The daemon
    drains a burst before that time. A burst's own cluster stays, and costs its fee,
    until the daemon or `burst gc` deletes it. With `pool`, only the pods are ended."""

    retired: ClassVar[Mapping[str, str]] = {
        **PodSettings.retired,
        "authorized_networks": f"{_IN_CLUSTER} control_plane_endpoints_config"
        ".ip_endpoints_config.authorized_networks_config",
        "cluster_fee": "remove it: a cluster costs 0.1 an hour; if that is too little"
        " in your unit of money, raise the prices of its offers",
        "disk_gb": f"{_IN_POOL} config.disk_size_gb",
        "labels": f"{_IN_CLUSTER} resource_labels; of the nodes it is"
        " config.resource_labels of request.node_pool",
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
        for wrong in itertools.chain(_wrong_place(self), wrong_request(self.request)):
            raise ValueError(wrong)
        life = self.max_run_duration
        if life < math.inf and not SHORTEST_RUN_S <= life <= LONGEST_RUN_S:
            raise ValueError("max_run_duration: Google accepts 30s to 120d, or none")

    @property
    def node_zone(self) -> str:
        """The zone in which nodes are made; empty if GKE chooses."""
        return self.location if _ZONE.match(self.location) else self.zone

    def name_of(self, burst_id: BurstId) -> str:
        """Return the name of a burst's cluster or node pool."""
        return name_of(burst_id, self.name_prefix)

    @property
    def private_nodes(self) -> bool:
        """Whether `request` asks for nodes without external addresses."""
        pool = self.request.node_pool.get("network_config", {})
        cluster = self.request.cluster.get("network_config", {})
        of_all = cluster.get("default_enable_private_nodes", False)
        return bool(pool.get("enable_private_nodes", of_all))

    @property
    def parent(self) -> str:
        """The parent of clusters, as the API names it: `projects/P/locations/L`."""
        return f"projects/{self.project}/locations/{self.location}"

    def machine(self, offer: str) -> MachineTable:
        """Return the table of an offer. Raises Refused if there is none."""
        try:
            return self.offers[offer]
        except KeyError:
            raise Refused(
                f"there is no offer {offer!r}",
                "there are " + ", ".join(sorted(self.offers)),
            ) from None


def offers_of(settings: GkeSettings) -> list[Offer]:
    """Return the offers, with the cluster's fee, and a join time if none is set.

    Bursts live for at most `max_run_duration`, so that the daemon drains them before
    Google deletes their nodes.
    """
    time, fee = _CLUSTER_TIME_S, _CLUSTER_FEE
    if settings.cluster:
        time, fee = _NODE_TIME_S if settings.pool else _POOL_TIME_S, 0.0
    life = settings.max_run_duration
    return [
        msgspec.structs.replace(
            offer,
            join_time=offer.join_time or time,
            fee=fee,
            lifetime=life if math.isfinite(life) else 0.0,
        )
        for offer in offers(settings)
    ]


def offers_alike(settings: GkeSettings, offer: str, *, gpus: bool) -> tuple[str, ...]:
    """Return other offers whose nodes have at least as many GPUs, or else cores."""

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
        yield "pool: name the cluster that it is in, too"
    if settings.cluster and settings.request.cluster:
        yield "request.cluster: is for clusters made for bursts, but cluster names one"
    if settings.pool and settings.request.node_pool:
        yield "request.node_pool: is for nodes made for bursts, but pool names some"
    if settings.zone and not settings.zone.startswith(f"{settings.location}-"):
        yield f"zone: {settings.zone!r} is not in {settings.location!r}"
    if not settings.cluster and not settings.node_zone:
        # GKE would make the requested number of nodes in each zone of the region.
        yield "zone: name the zone of the region for the nodes"
    if settings.operator_yaml and settings.form != "operator":
        yield 'operator_yaml: goes with form = "operator"'
    if not settings.offers:
        yield "offers: name at least one machine_type in a table offers.NAME"
