# SPDX-License-Identifier: MIT
"""Checks, without making anything, whether bursts into GKE can work: credentials and
the cluster, then rights, machine types and quotas of the project.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from burst.errors import NotFound, ProviderError
from burst.model.finding import Finding, note, ok, wrong
from burst.provider import Phase
from burst_gke.apis import GoogleApis, Quota
from burst_gke.cloud import Cloud
from burst_gke.resources import GkeResource, Labels, autopilot, find_bursts
from burst_gke.settings import GkeSettings, MachineTable


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
    if not settings.pool and not settings.request.node_config.get("service_account"):
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


# The permissions that the daemon's account needs in the project, by the settings. All
# of them are in manifests/overlays/gke/iam-role.yaml, with the calls that need them.
_ALWAYS = ("clusters.get", "clusters.list", "clusters.getCredentials")
# `update` also changes how many nodes a burst that grows may have.
_OF_CLUSTERS = (
    *("clusters.create", "clusters.delete", "clusters.update", "operations.list"),
)
_OF_POOLS = ("clusters.update", "operations.list")
# In a cluster that others made, RBAC may allow these instead; its API server tells.
_INSIDE = (
    *("namespaces.get", "namespaces.create", "namespaces.update", "secrets.create"),
    *(f"configMaps.{verb}" for verb in ("get", "list", "create", "update", "delete")),
    *(f"services.{verb}" for verb in ("get", "list", "create", "delete")),
    *(f"jobs.{verb}" for verb in ("get", "list", "create", "update", "delete")),
    *("pods.list", "pods.delete", "pods.getLogs", "events.list"),
)

ON_VMS = (
    "compute.instanceGroupManagers.get",
    "compute.instanceGroupManagers.update",
)
"""The permissions to list and to delete single nodes of a burst that shrinks."""


def permissions(settings: GkeSettings) -> list[str]:
    """Return the permissions that bursts by these settings need, at most 100."""
    if not settings.cluster:
        wanted = (*_ALWAYS, *_OF_CLUSTERS, *_INSIDE)
    else:
        wanted = _ALWAYS if settings.pool else (*_ALWAYS, *_OF_POOLS)
    return [f"container.{name}" for name in wanted]


# Quotas of boot disks: GKE uses pd-balanced, which counts as SSD; pd-standard before
# 1.24.
_DISKS = ["SSD_TOTAL_GB", "DISKS_TOTAL_GB"]
_HYPERDISK = re.compile(r"[ACHMNX]4")
"""Families whose boot disks are hyperdisk-balanced: they support no other."""
_DISK_GB = 100
"""Size of a boot disk, by GKE's default."""
_IN_CPUS = ("N1", "E2", "F1", "G1", "CUSTOM")
"""Families of machines without a quota of their own."""


def examine_project(apis: GoogleApis, settings: GkeSettings) -> Iterator[Finding]:
    """Yield which rights are missing, and what is not available where nodes are made.

    A check that cannot be made is a note: bursts do not need its result.
    """
    try:
        yield from _rights(apis, settings)
    except ProviderError as error:
        yield _unasked("rights in the project", error)
    if settings.pool:
        return
    try:
        yield from _account(apis, settings)
    except ProviderError as error:
        yield _unasked("rights on the nodes' account", error)
    try:
        quotas = apis.quotas(_region(settings))
    except ProviderError as error:
        yield _unasked(f"quotas of {_region(settings)}", error)
        quotas = {}
    else:
        yield from _add_project_quotas(apis, quotas)
    for name in settings.offers:
        yield from _machine(apis, settings, name, quotas)


def _add_project_quotas(
    apis: GoogleApis, quotas: dict[str, Quota]
) -> Iterator[Finding]:
    try:
        quotas |= apis.project_quotas()
    except NotFound:
        return  # none is reported
    except ProviderError as error:
        yield _unasked("quotas of all regions", error)


def _unasked(what: str, error: ProviderError) -> Finding:
    return note(f"{what} cannot be checked: {error.what}", error.advice)


def _rights(apis: GoogleApis, settings: GkeSettings) -> Iterator[Finding]:
    wanted = permissions(settings)
    granted = apis.granted([*wanted, *ON_VMS])
    lacking = sorted(set(wanted) - granted)
    if lacking:
        yield wrong(
            f"this account lacks permissions in project {settings.project}:"
            f" {', '.join(lacking)}",
            "grant them by a role, such as manifests/overlays/gke/iam-role.yaml",
        )
    else:
        yield ok(f"has all rights that it needs in project {settings.project}")
    unseen = sorted(set(ON_VMS) - granted)
    if unseen and not settings.pool:
        yield note(
            f"this account lacks permissions in project {settings.project}:"
            f" {', '.join(unseen)}; nodes that a burst gives back while it lives are"
            " deleted by GKE's autoscaler, after ten minutes or more",
            "grant them by a role, such as manifests/overlays/gke/iam-role.yaml",
        )


def _account(apis: GoogleApis, settings: GkeSettings) -> Iterator[Finding]:
    account = settings.request.node_config.get("service_account")
    if account and not apis.may_act_as(account):
        yield wrong(
            f"may not make nodes that run as {account}",
            "grant roles/iam.serviceAccountUser on it to this account",
        )


def _machine(
    apis: GoogleApis, settings: GkeSettings, name: str, quotas: Mapping[str, Quota]
) -> Iterator[Finding]:
    machine, zone = settings.offers[name], settings.node_zone
    if not zone:
        return  # GKE chooses a zone, which may have it
    kind = machine.machine_type
    try:
        vcpus = apis.machine_type(zone, kind).guest_cpus
    except NotFound:
        yield wrong(
            f"offer {name}: zone {zone} has no machine type {kind}",
            f"gcloud compute machine-types list --zones={zone}",
        )
        return
    except ProviderError as error:
        yield _unasked(f"machine type {kind}", error)
        return
    family = _family_quota(apis, settings, machine, quotas)
    for quota, need in _needs(settings, machine, vcpus, {**quotas, **family}):
        nodes = int(max(0.0, quota.limit - (quota.usage or 0)) // need)
        if nodes < machine.max_nodes:
            used = "" if quota.usage is None else f", of which {quota.usage:g} are used"
            yield note(
                f"offer {name}: quota {quota.metric} has {quota.limit:g}{used}: it is"
                f" enough for {nodes} of {machine.max_nodes} nodes",
                "request a higher quota, or lower max_nodes to what it allows",
            )


def _family_quota(
    apis: GoogleApis,
    settings: GkeSettings,
    machine: MachineTable,
    quotas: Mapping[str, Quota],
) -> dict[str, Quota]:
    """Return the quota of the machine's family, if the region's quotas lack it.

    Without an answer its vCPUs are taken to count in CPUS.
    """
    family = _family(machine)
    metric = f"{family}_CPUS"
    if metric in quotas or family in _IN_CPUS:
        return {}
    with contextlib.suppress(ProviderError):
        found = apis.family_quota(_region(settings), family)
        return {metric: found} if found else {}
    return {}


def _needs(
    settings: GkeSettings,
    machine: MachineTable,
    vcpus: int,
    quotas: Mapping[str, Quota],
) -> Iterator[tuple[Quota, int]]:
    """Yield each quota that nodes count in, and how much of it one node takes.

    A family of machines has a quota of its own or counts in CPUS. Spot nodes count in
    PREEMPTIBLE quotas if those were granted, else in the quotas of other nodes. Beside
    the quotas of the region there are quotas of the project for all regions.
    """
    cpus = [f"{_family(machine)}_CPUS", "CPUS"]
    # The quota of nvidia-tesla-t4 is NVIDIA_T4_GPUS.
    accelerator = machine.accelerator.replace("-tesla-", "-")
    gpus = [accelerator.upper().replace("-", "_") + "_GPUS"]
    if machine.spot:
        cpus.insert(0, "PREEMPTIBLE_CPUS")
        gpus.insert(0, f"PREEMPTIBLE_{gpus[0]}")
    disks = ["HDB_TOTAL_GB"] if _HYPERDISK.match(_family(machine)) else _DISKS
    addresses = 0 if settings.private_nodes else 1
    disk = settings.request.node_config.get("disk_size_gb") or _DISK_GB
    for metrics, need in (
        (cpus, vcpus),
        (gpus, machine.gpus),
        (["INSTANCES"], 1),
        (["IN_USE_ADDRESSES"], addresses),
        (disks, disk),
        (["CPUS_ALL_REGIONS"], vcpus),
        (["GPUS_ALL_REGIONS"], machine.gpus),
    ):
        known = [quotas[metric] for metric in metrics if metric in quotas]
        granted = [q for q in known if q.limit or not q.metric.startswith("PREEMPT")]
        if need and known:
            yield (granted or known)[0], need


def _family(machine: MachineTable) -> str:
    return machine.machine_type.partition("-")[0].upper()


def _region(settings: GkeSettings) -> str:
    return "-".join(settings.location.split("-")[:2])
