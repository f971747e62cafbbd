# SPDX-License-Identifier: MIT
"""Checks, without making anything, whether bursts into GKE can work."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from burst.errors import ProviderError
from burst.model.finding import Finding, note, ok, wrong
from burst.provider import Phase
from burst_gke.cloud import Cloud
from burst_gke.names import Labels
from burst_gke.resources import GkeResource, autopilot, find_bursts
from burst_gke.settings import GkeSettings


def examine_cloud(
    cloud: Cloud, settings: GkeSettings, labels: Labels
) -> tuple[list[Finding], GkeResource | None]:
    """Check credentials, project and the cluster of the settings.

    Returns the findings, and that cluster if its API server can be connected to.
    """
    try:
        clusters = cloud.clusters()
    except ProviderError as error:
        return [wrong(error.what, error.advice or "try again later")], None
    found = [ok(f"{cloud.parent} can be listed; {len(clusters)} clusters there")]
    bursts = find_bursts(clusters, labels)
    if bursts:
        found.append(note(f"bursts there now: {', '.join(sorted(bursts))}"))
    found += _leases(settings)
    if not settings.cluster:
        found.append(
            note("each burst gets its own cluster: five minutes, and a fee by the hour")
        )
        return found, None
    cluster = next((c for c in clusters if c.name == settings.cluster), None)
    found += _shared(cluster, settings, clusters)
    if cluster is None or cluster.autopilot or cluster.phase is not Phase.RUNNING:
        return found, None
    return found, cluster


def _leases(settings: GkeSettings) -> Iterator[Finding]:
    if settings.max_run_duration == math.inf:
        yield note(
            "if the daemon and its records are lost, nothing ends the nodes",
            'set max_run_duration, such as "24h": Google then deletes them itself',
        )
    if not settings.pool and not settings.node_config.get("service_account"):
        yield note(
            "nodes run as Compute Engine's default service account",
            "set request.node_pool.config.service_account to one that may only write"
            " logs and pull images",
        )


def _shared(
    cluster: GkeResource | None, settings: GkeSettings, clusters: Sequence[GkeResource]
) -> Iterator[Finding]:
    if cluster is None:
        names = ", ".join(c.name for c in clusters) or "none"
        yield wrong(
            f"there is no cluster {settings.cluster}; there are: {names}",
            'set cluster to one of these, or to "" for one for each burst',
        )
        return
    if cluster.autopilot:
        yield wrong(*autopilot(cluster.name))
        return
    if cluster.phase is Phase.RUNNING:
        yield ok(f"cluster {cluster.name} runs")
    else:
        yield wrong(cluster.why, "repair it, or set cluster to another")
    pools = [pool.name for pool in cluster.pools]
    if settings.pool and settings.pool not in pools:
        yield wrong(
            f"{cluster.name} has no node pool {settings.pool}",
            f"it has {', '.join(pools) or 'none'}",
        )
