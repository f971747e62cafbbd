# SPDX-License-Identifier: MIT
"""The connections to the API servers of clusters, which are kept from call to call."""

from __future__ import annotations

from collections.abc import Callable, Collection

from burst.kits.kube import Cluster, Endpoint
from burst.kits.pods import Tags
from burst_gke.followers import GkeBursts
from burst_gke.resources import GkeResource
from burst_gke.settings import GkeSettings

MakePods = Callable[[Cluster, GkeSettings, Tags], GkeBursts]


class Connections:
    """Those of one provider, by the address of the API server and its authority."""

    def __init__(
        self,
        settings: GkeSettings,
        tags: Tags,
        token: Callable[[], str],
        make: MakePods,
    ) -> None:
        self._settings = settings
        self._tags = tags
        self._token = token
        self._make = make
        self._reached: dict[str, tuple[Cluster, GkeBursts]] = {}
        self._named: dict[str, GkeBursts] = {}
        """The pods of these connections, by the cluster's name."""

    def pods(
        self, cluster: GkeResource, settings: GkeSettings | None = None
    ) -> GkeBursts:
        """Return the pods in a cluster: the same each time, which know what changed.

        With other settings than the provider's new ones, by the same connection. Raises
        Refused where the cluster has no such endpoint as the settings name.
        """
        key = self._key_of(cluster)
        if key not in self._reached:
            url, authority = cluster.reach(self._settings.endpoint)
            access = Endpoint(url, authority, self._token)
            reached = Cluster(access, timeout=self._settings.timeout)
            pods = self._make(reached, self._settings, self._tags)
            self._reached[key] = reached, pods
            self._named[cluster.name] = pods
        reached, pods = self._reached[key]
        if settings is None:
            return pods
        return self._make(reached, settings, self._tags)

    def last_in(self, name: str) -> GkeBursts | None:
        """Return the pods in the cluster of that name; None where it is not reached.

        May be called from another thread than the rest.
        """
        return self._named.get(name)

    def close_others(self, used: Collection[GkeResource]) -> None:
        """Close all connections but those to these clusters, which have an endpoint."""
        keys = {self._key_of(cluster) for cluster in used}
        for gone in self._reached.keys() - keys:
            self._reached.pop(gone)[0].close()
        for name in self._named.keys() - {cluster.name for cluster in used}:
            del self._named[name]

    def _key_of(self, cluster: GkeResource) -> str:
        return " ".join(cluster.reach(self._settings.endpoint))
