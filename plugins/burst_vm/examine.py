# SPDX-License-Identifier: MIT
"""Checks, without making anything, whether VMs can be made and could join."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing

from burst.errors import BurstError
from burst.kits.examine_nodes import examine_lead
from burst.kits.private_dir import PrivateDirectory
from burst.kits.secret_file import read_munge_key
from burst.model.finding import Finding, note, ok, wrong
from burst.model.host import is_loopback
from burst.model.lead import LeadIdentity
from burst_vm.cloud import VmCloud
from burst_vm.credentials import read_credentials
from burst_vm.settings import VmSettings
from burst_vm.user_data import template

_FOR_GUESTS = "set munge_key, and have flux-imp and the same user ids in the image"


def examine(
    settings: VmSettings,
    cloud: VmCloud,
    home: PrivateDirectory,
    lead: LeadIdentity | None,
) -> Iterator[Finding]:
    """Yield the findings."""
    yield _tried(home.check, f"notes of VMs are kept in {home.path}")
    yield _tried(lambda: template(settings), "the user data's template has all marks")
    file = settings.credentials
    readable = _tried(
        lambda: read_credentials(file), f"{file} is the daemon's user's alone"
    )
    yield readable
    if not readable.advice:
        yield from _examine_cloud(settings, cloud)
    yield _examine_port(settings)
    if settings.munge_key:
        yield _tried(
            lambda: read_munge_key(settings.munge_key), "munge's key can be read"
        )
    if lead is not None:
        yield _examine_address(settings, lead)
    yield from examine_lead(lead, "" if settings.munge_key else _FOR_GUESTS)


def _examine_cloud(settings: VmSettings, cloud: VmCloud) -> Iterator[Finding]:
    listing = _tried(cloud.machines, f"{settings.driver} lists VMs")
    yield listing
    if listing.advice:
        return
    yield _examine_image(settings.image, cloud)
    yield from _examine_quotas(settings, cloud)
    try:
        sizes = cloud.prices()
    except BurstError as error:
        yield wrong(error.what, error.advice or "the driver lists sizes")
        return
    for name, offer in settings.offers.items():
        if offer.size not in sizes:
            yield note(
                f"offer {name}: Libcloud knows no size {offer.size} there",
                "set size to one that the region has, unless it is a new one",
            )
        elif offer.price is None and not sizes[offer.size]:
            yield note(
                f"offer {name}: Libcloud knows no price of {offer.size}", "set price"
            )
        elif settings.driver == "gce" and offer.gpus and offer.price is None:
            yield note(
                f"offer {name}: Libcloud's price of {offer.size} is without its GPUs",
                "set price",
            )
        else:
            yield ok(f"offer {name}: there is a size {offer.size}")


def _examine_image(image: str, cloud: VmCloud) -> Finding:
    try:
        kept = cloud.kept_volumes()
    except BurstError as error:
        return wrong(error.what, error.advice or "see docs/vm.md")
    if not kept:
        return ok(f"image {image} exists")
    return note(
        f"image {image}: each VM leaves its volume {', '.join(kept)}, which costs",
        "set an image whose volumes all have DeleteOnTermination",
    )


def _examine_quotas(settings: VmSettings, cloud: VmCloud) -> Iterator[Finding]:
    """Yield for each quota the offers whose bursts may need more than it has left."""
    try:
        quotas = cloud.quotas()
    except BurstError as error:
        yield note(error.what, error.advice or "let the account read its quotas")
        return
    for quota in quotas:
        told = f"{quota.used} of {quota.limit} {quota.what} of the quota are in use"
        needs = {
            name: offer.max_nodes * (offer.cores if quota.what == "cores" else 1)
            for name, offer in settings.offers.items()
        }
        left = quota.limit - quota.used
        large = [f"{n} ({need})" for n, need in needs.items() if need > left]
        if large:
            told += f", and bursts of {', '.join(large)} may need more"
            yield note(told, "ask the cloud for a higher quota, or lower max_nodes")
        else:
            yield ok(told)


def _examine_port(settings: VmSettings) -> Finding:
    """Tell whether the daemon can listen at the port, or something does already."""
    where = (settings.bind, settings.port)
    family = socket.AF_INET6 if ":" in settings.bind else socket.AF_INET
    with closing(socket.socket(family)) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(where)
        except OSError as error:
            return note(
                f"port {settings.port} of {settings.bind}: {error.strerror}; a daemon"
                " that has VMs listens there",
                "if none does, set bind and port to what is free on this host",
            )
    return ok(f"VMs can fetch their files at port {settings.port} of this host")


def _examine_address(settings: VmSettings, lead: LeadIdentity) -> Finding:
    address = settings.reached_at(lead.endpoint)
    if not address or is_loopback(address):
        return wrong(
            f"VMs cannot reach this host at {address or 'no address'}",
            "set address under [lead] to one that the VMs can reach",
        )
    return ok(f"VMs reach this host at {address}")


def _tried(call: Callable[[], object], good: str) -> Finding:
    try:
        call()
    except BurstError as error:
        return wrong(error.what, error.advice or "see docs/vm.md")
    return ok(good)
