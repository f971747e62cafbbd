# SPDX-License-Identifier: MIT
"""Reads what is fixed while a Flux lead runs, and `[access]`; makes the owner tag.

`BootInfo` is for diagnosing why followers do not join.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import msgspec

from burst.flux.handle import Handle
from burst.flux.node_set import parse_nodes
from burst.flux.rpc import RpcClient, find_attribute, read_attribute
from burst.flux.store import FluxStore
from burst.model.host import dns_label
from burst.model.job_limits import parse_limits
from burst.model.lead import Bootstrap, GuestAccess, HostEntry, LeadIdentity
from burst.model.ranks import format_hostlist, parse_hostlist, parse_idset
from burst.model.resource_set import ResourceSet, resource_set

OWNER_KEY = "meta/owner"
"""The store's key of the owner tag, which is made once in the life of the store."""

_OWNER_HOST_LENGTH = 20


def read_identity(client: RpcClient, store: FluxStore) -> LeadIdentity:
    """Return the identity of the instance. Raises Unreadable, Denied, StoreError."""
    config = client.ask("config.get")
    table = config.get("bootstrap", {})
    hosts = parse_hostlist(read_attribute(client, "hostlist"))
    status = client.ask("resource.status")
    resources = status["R"]
    nodes, allocation = parse_nodes(resources), resource_set(resources)
    owner = find_attribute(client, "security.owner")
    return LeadIdentity(
        kind="flux",
        version=read_attribute(client, "version"),
        uri=read_attribute(client, "local-uri"),
        owner=store.agree(OWNER_KEY, propose_owner(hosts[0])),
        hosts=hosts,
        shapes=tuple(nodes.shape(rank) for rank in range(len(hosts))),
        properties=allocation.properties,
        excluded=parse_idset(status["exclude"]),
        queues=parse_queues(config.get("queues", {})),
        limits=parse_limits(config),
        bootstrap=parse_bootstrap(table, hosts),
        endpoint=endpoint(table, hosts[0]),
        certificate=str(table.get("curve_cert", "")),
        owner_userid=int(owner) if owner else None,
        access=parse_access(config),
        started=float(find_attribute(client, "broker.starttime") or 0),
        ends=parse_end(allocation, config),
        statedir=find_attribute(client, "statedir"),
        systemd=config.get("systemd", {}).get("enable") is True,
    )


def parse_bootstrap(table: Mapping[str, Any], hosts: tuple[str, ...]) -> Bootstrap:
    """Return the `[bootstrap]` table, flux-config-bootstrap(5), as the lead has it.

    An instance that a launcher started has no such table, or no hosts in it: then the
    hosts are those that it has now, without addresses.
    """
    entries = table.get("hosts") or [{"host": format_hostlist(hosts)}]
    return Bootstrap(
        hosts=tuple(HostEntry(**entry) for entry in entries),
        default_port=table.get("default_port", 0),
        default_bind=table.get("default_bind", ""),
        default_connect=table.get("default_connect", ""),
        enable_ipv6=table.get("enable_ipv6", False),
    )


def parse_access(config: Mapping[str, Any]) -> GuestAccess:
    """Return who may use the instance, and how, as the lead has it.

    Keys of another type than Flux takes count as absent: with them the lead would not
    have started.
    """
    access, execution = config.get("access", {}), config.get("exec", {})
    imp = execution.get("imp")
    return GuestAccess(
        allow_guest_user=access.get("allow-guest-user") is True,
        allow_root_owner=access.get("allow-root-owner") is True,
        imp=imp if isinstance(imp, str) else "",
        ingest=config.get("ingest", {}),
    )


def parse_end(allocation: ResourceSet, config: Mapping[str, Any]) -> float:
    """Return when an instance ends that is a job; 0 for never, or if not known.

    R has that if Flux took it from the job. `burst lead batch` writes an R of its own
    and `[burst] ends`: with the end in R, Flux would refuse jobs for own nodes, too, if
    their time limit is longer than what is left (validate-duration.c).
    """
    table = config.get("burst")
    told = table.get("ends") if isinstance(table, Mapping) else None
    known = float(told) if isinstance(told, int | float) else 0.0
    return allocation.expiration or known


def default_queue(config: Mapping[str, Any]) -> str:
    """Return the default queue, flux-config-policy(5); empty if there is none."""
    defaults = config.get("policy", {}).get("jobspec", {}).get("defaults", {})
    return str(defaults.get("system", {}).get("queue", ""))


def parse_queues(tables: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the named queues, flux-config-queues(5), and what each requires."""
    return {name: tuple(table.get("requires", ())) for name, table in tables.items()}


def endpoint(table: Mapping[str, Any], lead: str) -> str:
    """Return the URI at which followers reach rank 0, empty if the table has none.

    Of several entries for a host, the first that has the key counts.
    """
    connect = [
        entry["connect"]
        for entry in table.get("hosts", ())
        if "connect" in entry and lead in parse_hostlist(entry["host"])
    ]
    template = connect[0] if connect else table.get("default_connect", "")
    words = {"%h": lead, "%p": str(table.get("default_port", "")), "%%": "%"}
    return re.sub("%[hp%]", lambda token: words[token[0]], template)


def propose_owner(host: str) -> str:
    """Return a new tag: the host's name as a DNS label, and 8 random hex digits."""
    first = host.split(".", maxsplit=1)[0]
    label = dns_label(first, "lead", _OWNER_HOST_LENGTH)
    return f"{label}-{os.urandom(4).hex()}"


class BootInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How the broker was started, besides what LeadIdentity has."""

    rank: int
    """Rank of the broker that we are connected to."""
    method: str
    """How its brokers found each other: `config` means by `[bootstrap] hosts`."""
    nodelist: tuple[str, ...]
    """Hosts of R, in the order of ranks."""
    owner: int
    """UID of the instance owner, who runs its brokers and the daemon."""
    userid: int
    """The UID by which the broker knows us; over ssh it is not that of this process."""


def read_boot_info(uri: str) -> BootInfo:
    """Return how the instance at this URI was started. Guests may call this, too.

    Raises LeadGone, LeadError.
    """
    with closing(Handle(uri)) as handle:
        client = RpcClient(handle)
        resources = client.ask("resource.status")["R"]
        return BootInfo(
            rank=int(read_attribute(client, "rank")),
            method=read_attribute(client, "broker.boot-method"),
            nodelist=resource_set(resources).hosts,
            owner=int(read_attribute(client, "security.owner")),
            userid=int(client.ask("broker.ping")["userid"]),
        )
