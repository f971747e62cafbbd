# SPDX-License-Identifier: MIT
"""What the settings say of networks: what cannot be, and the parts of requests."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burst_gke.settings import GkeSettings

# With a path the project is said; it is another one where a VPC is shared.
_NETWORK = re.compile(r"projects/([^/]+)/global/networks/[^/]+\Z")
_SUBNETWORK = re.compile(r"projects/([^/]+)/regions/([^/]+)/subnetworks/[^/]+\Z")
# GKE takes so many ranges.
_MOST_NETWORKS = 100
_OF_A_CLUSTER = ("network", "subnetwork", "services_range", "authorized_networks")
_OF_NODES = ("pods_range", "private_nodes")


def wrong_network(settings: GkeSettings) -> Iterator[str]:
    """Say what of the settings of networks cannot be, each with its key."""
    for key in _OF_A_CLUSTER:
        if settings.cluster and getattr(settings, key):
            yield f"{key}: is for clusters made for bursts, but cluster names one"
    for key in _OF_NODES:
        if settings.pool and getattr(settings, key):
            yield f"{key}: is for nodes made for bursts, but pool names some"
    for key in ("pods_range", "services_range"):
        ours = not settings.cluster and getattr(settings, key)
        if ours and not settings.subnetwork:
            yield f"{key}: name the subnetwork whose range it is"
    yield from _wrong_paths(settings)
    yield from _wrong_networks(settings.authorized_networks)


def _wrong_paths(settings: GkeSettings) -> Iterator[str]:
    network = _NETWORK.match(settings.network)
    subnetwork = _SUBNETWORK.match(settings.subnetwork)
    for key, found, form in (
        ("network", network, "projects/HOST/global/networks/NAME"),
        ("subnetwork", subnetwork, "projects/HOST/regions/REGION/subnetworks/NAME"),
    ):
        if "/" in getattr(settings, key) and not found:
            yield f"{key}: is neither a name nor {form}"
    if subnetwork and not f"{settings.location}-".startswith(f"{subnetwork[2]}-"):
        yield f"subnetwork: is in {subnetwork[2]}, and location is not"
    if not network or network[1] == settings.project:
        return
    if not subnetwork or subnetwork[1] != network[1]:
        yield f"subnetwork: name one of {network[1]}, whose network is shared"
    if not settings.pods_range:
        yield "pods_range: GKE makes no range in the subnetwork of a shared network"


def _wrong_networks(ranges: tuple[str, ...]) -> Iterator[str]:
    if len(ranges) > _MOST_NETWORKS:
        yield f"authorized_networks: GKE takes {_MOST_NETWORKS} ranges"
    for text in ranges:
        try:
            ipaddress.IPv4Network(text)
        except ValueError as error:
            yield f"authorized_networks: {text!r}: {error}"


def add_network(settings: GkeSettings, cluster: dict[str, Any]) -> None:
    """Add to a cluster's part of a request where it is, and who may call it."""
    policy = cluster["ip_allocation_policy"]
    for key, value in (
        ("cluster_secondary_range_name", settings.pods_range),
        ("services_secondary_range_name", settings.services_range),
    ):
        if value:
            policy[key] = value
    for key in ("network", "subnetwork"):
        if value := getattr(settings, key):
            cluster[key] = value
    if settings.private_nodes:
        # Of all pools, those too that are added by others.
        cluster["network_config"] = {"default_enable_private_nodes": True}
    if plane := _endpoints(settings):
        cluster["control_plane_endpoints_config"] = plane


def _endpoints(settings: GkeSettings) -> dict[str, Any]:
    by_address: dict[str, Any] = {}
    if settings.private_nodes and settings.endpoint != "default":
        by_address |= {"enabled": True, "enable_public_endpoint": False}
    if settings.authorized_networks:
        # As Google writes them: 192.0.2.7/32, and not 192.0.2.7.
        ranges = {str(ipaddress.IPv4Network(r)) for r in settings.authorized_networks}
        blocks = [{"cidr_block": each} for each in sorted(ranges)]
        allowed = {"enabled": True, "cidr_blocks": blocks}
        by_address |= {"enabled": True, "authorized_networks_config": allowed}
    plane: dict[str, Any] = {}
    if by_address:
        plane["ip_endpoints_config"] = by_address
    if settings.endpoint == "dns":
        # Otherwise only its own network could connect to it.
        plane["dns_endpoint_config"] = {"allow_external_traffic": True}
    return plane


def pool_network(settings: GkeSettings) -> dict[str, Any]:
    """Return the `network_config` of a node pool in a cluster that others made."""
    found: dict[str, Any] = {}
    if settings.private_nodes:
        found["enable_private_nodes"] = True
    if settings.pods_range:
        found["pod_range"] = settings.pods_range
    return found
