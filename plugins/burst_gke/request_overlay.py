# SPDX-License-Identifier: MIT
"""`request` of the settings: a site's own part of Google's requests, and its merge."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from burst_gke.resources import PREFIX

# What Google accepts as key and value of a label.
_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}\Z")
_VALUE = re.compile(r"[a-z0-9_-]{0,63}\Z")
_OF_OFFER = "follows from the offer's table"
_OURS = "is set by burst, to give a burst its nodes and to find it"
_CLUSTER = {
    "name": _OURS,
    "node_pools": "use request.node_pool",
    "location": "use location",
    "locations": "use zone",
}
_POOL = {
    "name": _OURS,
    "initial_node_count": _OURS,
    "autoscaling": _OURS,
    "locations": "use zone",
}
_CONFIG = {
    "machine_type": _OF_OFFER,
    "spot": _OF_OFFER,
    "preemptible": _OF_OFFER,
    "accelerators": _OF_OFFER,
    "labels": _OURS,
    "taints": _OURS,
    "max_run_duration": "use max_run_duration of this table",
}
"""Keys of a node pool's `config` that cannot be set, and why."""


class RequestTable(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """`[providers.NAME.request]`: fields of Google's requests, as its API names them.

    The names are those of google.container.v1: `disk_size_gb`, not `diskSizeGb`. A
    table is merged with the provider's own; any other value replaces the provider's.
    """

    cluster: Mapping[str, Any] = {}
    """Fields of Cluster, for bursts that have a cluster of their own: `network`,
    `subnetwork`, `ip_allocation_policy`, `network_config`, `resource_labels`,
    `control_plane_endpoints_config` and so on."""
    node_pool: Mapping[str, Any] = {}
    """Fields of NodePool, for the nodes of a burst: `config` with `service_account`,
    `tags`, `disk_size_gb`, `reservation_affinity`, `resource_labels` and so on,
    `network_config`, `placement_policy`. Resource labels appear on the bill."""

    @property
    def node_config(self) -> Mapping[str, Any]:
        """The fields of NodeConfig."""
        found: Mapping[str, Any] = self.node_pool.get("config", {})
        return found


def wrong_request(request: RequestTable) -> Iterator[str]:
    """Yield which parts cannot be set, each by its path, and what to use instead.

    Google's client checks all other names and values.
    """
    for where, table, key in (
        ("cluster", request.cluster, "network_config"),
        ("node_pool", request.node_pool, "network_config"),
        ("node_pool", request.node_pool, "config"),
        ("cluster", request.cluster, "resource_labels"),
        ("node_pool.config", request.node_config, "resource_labels"),
    ):
        if not isinstance(table.get(key, {}), Mapping):
            yield f"request.{where}.{key}: expected a table"
            return
    config = request.node_config
    if not isinstance(config.get("disk_size_gb", 0), int):
        yield "request.node_pool.config.disk_size_gb: expected a whole number"
    for where, table, rules in (
        ("cluster", request.cluster, _CLUSTER),
        ("node_pool", request.node_pool, _POOL),
        ("node_pool.config", config, _CONFIG),
    ):
        for key in table.keys() & rules.keys():
            yield f"request.{where}.{key}: {rules[key]}"
    for where, table in (("cluster", request.cluster), ("node_pool.config", config)):
        labels = table.get("resource_labels", {})
        yield from _wrong_labels(f"request.{where}.resource_labels", labels)


def _wrong_labels(where: str, labels: Mapping[str, Any]) -> Iterator[str]:
    for key, value in labels.items():
        if key.startswith(PREFIX):
            yield f"{where}.{key}: begins with {PREFIX}, which is reserved for burst"
        is_label = isinstance(value, str) and _KEY.match(key) and _VALUE.match(value)
        if not is_label:
            yield (
                f"{where}.{key}: keys and values are up to 63 of a-z, 0-9, _ and -,"
                " and keys begin with a letter"
            )


def merge(made: Any, change: Any) -> Any:
    """Return part of a request with the settings' changes to it: tables are merged."""
    if not (isinstance(made, Mapping) and isinstance(change, Mapping)):
        return change
    changed = {
        key: merge(made[key], value) if key in made else value
        for key, value in change.items()
    }
    return {**made, **changed}
