# SPDX-License-Identifier: MIT
"""The plan of a lead: its own hosts, its rank slots, the address to reach it."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

import msgspec

from burst.errors import ConfigError
from burst.model.host import is_host_name, is_loopback
from burst.model.ranks import parse_hostlist
from burst.model.shape import Shape

DEFAULT_PORT = 8050
OWN_PROPERTY = "local"
"""The property of the lead's own ranks."""
NO_PROVIDER = "none"
"""The word in place of a type of provider if no provider is wanted."""
_NAMES = "use DNS labels: letters, digits and inner dashes, up to 63 characters each"
_ADDRESS = re.compile(
    r"(?:tcp://)?(?:\[(?P<six>[^]]+)\]|(?P<host>[^:/\[\]]+))(?::(?P<port>[0-9]{1,5}))?"
)
_REACH = "give the name or address at which followers will reach the lead"


class PlannedSlot(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks that bursts can lease, and the nodes that a burst must bring for them."""

    hosts: str
    """A hostlist such as `burst-0-[0-3]`."""
    shape: Shape
    gateway: str = ""
    """With gateways, the address at which the other hosts reach the first one, as
    `tcp://ADDRESS:PORT`; if empty, its name and the lead's port."""
    provider: str = ""
    """Name of the provider that the slot is for, which becomes a property of its ranks;
    empty for any."""


class LeadPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `burst lead init`."""

    hosts: str
    """The lead's own hosts as a hostlist; the first is rank 0."""
    shape: Shape
    """The shape of each own host."""
    slots: tuple[PlannedSlot, ...]
    address: str
    """Host name or address at which followers reach rank 0."""
    port: int = DEFAULT_PORT
    gateways: bool = False
    """Whether the hosts of each rank slot join through the slot's first host, so that
    only one host of a burst needs to reach the lead."""


class HostGroup(msgspec.Struct, frozen=True):
    """Hosts of successive ranks, in rank order, that are declared alike."""

    names: tuple[str, ...]
    shape: Shape
    gateway: str = ""
    """Where the others reach the first, `tcp://ADDRESS:PORT`; empty if not needed."""
    provider: str = ""

    @property
    def slot(self) -> str:
        """`burst-0` of burst-0-0, burst-0-1 and so on; the name if it has no number."""
        return self.names[0].rstrip("0123456789").rstrip("-") or self.names[0]


def resolve_plan(plan: LeadPlan) -> tuple[HostGroup, ...]:
    """Return the lead's own hosts and then each rank slot.

    Raises ConfigError for a plan that cannot work: names that are no host names or
    appear twice, no slot, or an impossible port, address or shape.
    """
    if not 0 < plan.port < 65536:
        raise ConfigError(f"port {plan.port} is out of range", "use 1 to 65535")
    uri_host(plan.address)
    if not plan.slots:
        raise ConfigError(
            "there is no rank slot, so no burst could ever join",
            "give at least one, such as burst-0-[0-3]",
        )
    own = HostGroup(_hosts(plan.hosts), plan.shape)
    port = plan.port if plan.gateways else None
    groups = (own, *(_group(slot, port) for slot in plan.slots))
    _refuse_twice(groups)
    for shape in {group.shape for group in groups}:
        _check_shape(shape)
    return groups


def resolve_slots(
    known: Sequence[str], slots: Sequence[PlannedSlot], gateway_port: int | None = None
) -> list[HostGroup]:
    """Return further slots for a lead that has these hosts. Raises ConfigError.

    `gateway_port` is the port of gateways that have no address; None for no gateways.
    """
    groups = [_group(slot, gateway_port) for slot in slots]
    _refuse_twice((HostGroup(tuple(known), Shape(1)), *groups))
    for group in groups:
        _check_shape(group.shape)
    return groups


def parse_slot(text: str, shape: Shape, provider: str = "") -> PlannedSlot:
    """Return the slot in `HOSTLIST[:CORES[:GPUS]]`, for this provider.

    Without GPUS its nodes have none; without CORES, too, they have the given shape.
    Raises ConfigError if the text has another form; `resolve_plan` checks the hosts.
    """
    hosts, *counts = text.split(":")
    # int() would take blanks, signs and underscores too.
    if len(counts) > 2 or not all(re.fullmatch("[0-9]{1,6}", n) for n in counts):
        raise ConfigError(
            f"not a rank slot: {text!r}",
            "write HOSTLIST[:CORES[:GPUS]], such as burst-0-[0-3]:8:1",
        )
    if counts:
        cores, gpus = (int(count) for count in (*counts, "0")[:2])
        shape = Shape(cores, gpus)
    if provider == OWN_PROPERTY:
        raise ConfigError(
            f"ranks with the property {OWN_PROPERTY} are the lead's own",
            "leave the provider out, so that the slot is for any; or give it another"
            " name",
        )
    if not re.fullmatch("[A-Za-z0-9._-]*", provider):
        raise ConfigError(
            f"not a provider's name: {provider!r}", "use letters, digits, dots, dashes"
        )
    return PlannedSlot(hosts=hosts, shape=shape, provider=provider)


def slot_provider(kind: str) -> str:
    """Return the provider of the slots for the type `kind`; empty for any provider.

    A provider with the name of the own ranks' property cannot have slots of its own.
    """
    return "" if kind in {OWN_PROPERTY, NO_PROVIDER} else kind


def uri_host(address: str) -> str:
    """Return the address in the form of URIs, IPv6 in brackets. Raises ConfigError."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        if is_host_name(address):
            return address
        raise ConfigError(f"not a host name or address: {address!r}", _REACH) from None
    if parsed.is_unspecified:
        raise ConfigError(f"{address} is not an address to connect to", _REACH)
    return f"[{address}]" if parsed.version == 6 else address


def bind_uri(connect: str) -> str:
    """Return the URI to bind in order to be reached at `tcp://ADDRESS:PORT`.

    It binds all interfaces, since the address may be that of a NAT, except for a
    loopback address, for which there is no reason to listen anywhere else.
    """
    address, _, port = connect.removeprefix("tcp://").rpartition(":")
    # ZeroMQ binds to numeric addresses and to interfaces, not to host names.
    local = is_loopback(address) and address != "localhost"
    return f"tcp://{address if local else '*'}:{port}"


def _group(slot: PlannedSlot, gateway_port: int | None) -> HostGroup:
    names = _hosts(slot.hosts)
    if gateway_port is None or len(names) == 1:
        return HostGroup(names, slot.shape, provider=slot.provider)
    gateway = slot.gateway or f"tcp://{names[0]}:{gateway_port}"
    address, _, port = gateway.removeprefix("tcp://").rpartition(":")
    if not (gateway.startswith("tcp://") and address and port.isdigit()):
        raise ConfigError(
            f"not a gateway's address: {gateway!r}", "such as tcp://10.0.0.7:8050"
        )
    return HostGroup(names, slot.shape, gateway, slot.provider)


def _hosts(text: str) -> tuple[str, ...]:
    try:
        hosts = parse_hostlist(text)
    except ValueError as error:
        raise ConfigError(str(error), "such as burst-0-[0-3]") from error
    if not hosts:
        raise ConfigError("a list of hosts is empty", "such as burst-0-[0-3]")
    for host in hosts:
        if not is_host_name(host):
            raise ConfigError(f"not a host name: {host!r} in {text!r}", _NAMES)
    return hosts


def _check_shape(shape: Shape) -> None:
    if shape.gpus < 0:
        raise ConfigError(
            f"no node has {shape.gpus} GPUs", "give 0 for nodes without any"
        )
    if shape.cores < 1:
        raise ConfigError(f"no node has {shape}", "give at least one core")


def _refuse_twice(groups: tuple[HostGroup, ...]) -> None:
    seen: set[str] = set()
    for name in (name for group in groups for name in group.names):
        if name in seen:
            raise ConfigError(
                f"{name} is declared twice",
                "a host has one rank: own hosts and rank slots may not overlap",
            )
        seen.add(name)


def gateway_uri(text: str, port: int) -> str:
    """Return `[tcp://]ADDRESS[:PORT]` as a URI; IPv6 is in brackets if it has a port.

    `port` is used if the text has none. Raises ConfigError.
    """
    match = _ADDRESS.fullmatch(text)
    # Without brackets, an address with several colons is IPv6 and has no port.
    host = (match["six"] or match["host"]) if match else text
    number = int(match["port"]) if match and match["port"] else port
    if not 0 < number < 65536:
        raise ConfigError(f"port {number} of gateway {text} is out of range")
    return f"tcp://{uri_host(host)}:{number}"


def with_gateways(
    slots: Sequence[PlannedSlot], addresses: Sequence[str], port: int
) -> tuple[PlannedSlot, ...]:
    """Return the slots with these addresses of their first hosts, in order.

    Without addresses, the first hosts are reached by their names. Raises ConfigError.
    """
    if not addresses:
        return tuple(slots)
    if len(addresses) != len(slots):
        raise ConfigError(
            f"{len(addresses)} gateways for {len(slots)} rank slots",
            "give one address for each slot in order, or none: then it is the name of"
            " the slot's first host",
        )
    return tuple(
        msgspec.structs.replace(slot, gateway=gateway_uri(text, port))
        for slot, text in zip(slots, addresses, strict=True)
    )
