# SPDX-License-Identifier: MIT
"""Checks rights, machine types and quotas of a project, without making anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from burst.errors import NotFound, ProviderError
from burst.model.finding import Finding, note, ok, wrong
from burst_gke.apis import GoogleApis, Quota
from burst_gke.permissions import ON_VMS, permissions
from burst_gke.settings import GkeSettings, MachineTable


def examine_project(apis: GoogleApis, settings: GkeSettings) -> Iterator[Finding]:
    """Say what the account may not do, and what cannot be had where nodes are made.

    What cannot be asked is a note: bursts do not need the answers.
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
    for name in settings.offers:
        yield from _machine(apis, settings, name, quotas)


def _unasked(what: str, error: ProviderError) -> Finding:
    return note(f"{what} cannot be checked: {error.what}", error.advice)


def _rights(apis: GoogleApis, settings: GkeSettings) -> Iterator[Finding]:
    wanted = permissions(settings)
    granted = apis.granted([*wanted, *ON_VMS])
    lacking = sorted(set(wanted) - granted)
    if lacking:
        yield wrong(
            f"this account lacks in {settings.project}: {', '.join(lacking)}",
            "grant them by a role, such as manifests/overlays/gke/iam-role.yaml",
        )
    else:
        yield ok(f"has all rights that it needs in project {settings.project}")
    unseen = sorted(set(ON_VMS) - granted)
    if unseen and not settings.pool:
        yield note(
            f"this account lacks in {settings.project}: {', '.join(unseen)}; nodes that"
            " a burst gives back while it lives are deleted by GKE's autoscaler, after"
            " ten minutes or more",
            "grant them by a role, such as manifests/overlays/gke/iam-role.yaml",
        )


def _account(apis: GoogleApis, settings: GkeSettings) -> Iterator[Finding]:
    account = settings.node_service_account
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
        return  # GKE chooses one, which may have it
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
    for quota, need in _needs(settings, machine, vcpus, quotas):
        nodes = int(max(0.0, quota.limit - quota.usage) // need)
        if nodes < machine.max_nodes:
            yield note(
                f"offer {name}: quota {quota.metric} has {quota.limit:g}, of which"
                f" {quota.usage:g} are used: it is enough for {nodes} of"
                f" {machine.max_nodes} nodes",
                "have it raised, or set max_nodes to what there can be",
            )


def _needs(
    settings: GkeSettings,
    machine: MachineTable,
    vcpus: int,
    quotas: Mapping[str, Quota],
) -> Iterator[tuple[Quota, int]]:
    """Yield each quota of the region that nodes count in, and what one takes of it.

    A family of machines has a quota of its own or counts in CPUS. Spot nodes count in
    PREEMPTIBLE quotas where those were granted, else in those of other nodes.
    """
    family = machine.machine_type.partition("-")[0].upper()
    cpus = [f"{family}_CPUS", "CPUS"]
    # That of nvidia-tesla-t4 is NVIDIA_T4_GPUS.
    accelerator = machine.accelerator.replace("-tesla-", "-")
    gpus = [accelerator.upper().replace("-", "_") + "_GPUS"]
    if machine.spot:
        cpus.insert(0, "PREEMPTIBLE_CPUS")
        gpus.insert(0, f"PREEMPTIBLE_{gpus[0]}")
    addresses = 0 if settings.private_nodes else 1
    for metrics, need in (
        (cpus, vcpus),
        (gpus, machine.gpus),
        (["INSTANCES"], 1),
        (["IN_USE_ADDRESSES"], addresses),
    ):
        known = [quotas[metric] for metric in metrics if metric in quotas]
        granted = [quota for quota in known if quota.limit > 0]
        if need and known:
            yield (granted or known)[0], need


def _region(settings: GkeSettings) -> str:
    return "-".join(settings.location.split("-")[:2])
