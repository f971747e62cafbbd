# SPDX-License-Identifier: MIT
"""Private nodes, and the endpoint of a cluster, as parts of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burst_gke.settings import GkeSettings


def add_network(settings: GkeSettings, cluster: dict[str, Any]) -> None:
    """Add to a cluster's part of a request how nodes and API server are reached."""
    if settings.private_nodes:
        # Of all pools, those too that are added by others.
        cluster["network_config"] = {"default_enable_private_nodes": True}
    if plane := _endpoints(settings):
        cluster["control_plane_endpoints_config"] = plane


def _endpoints(settings: GkeSettings) -> dict[str, Any]:
    by_address: dict[str, Any] = {}
    if settings.private_nodes and settings.endpoint != "default":
        by_address |= {"enabled": True, "enable_public_endpoint": False}
    plane: dict[str, Any] = {}
    if by_address:
        plane["ip_endpoints_config"] = by_address
    if settings.endpoint == "dns":
        # Otherwise only its own network could connect to it.
        plane["dns_endpoint_config"] = {"allow_external_traffic": True}
    return plane


def pool_network(settings: GkeSettings) -> dict[str, Any]:
    """Return the `network_config` of a node pool in a cluster that others made."""
    return {"enable_private_nodes": True} if settings.private_nodes else {}
