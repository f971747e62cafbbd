# SPDX-License-Identifier: MIT
"""Addresses of gateways, at which the hosts of a rank slot reach its first host."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from burst.errors import ConfigError
from burst.lead_setup.lead_plan import PlannedSlot, uri_host

_ADDRESS = re.compile(
    r"(?:tcp://)?(?:\[(?P<six>[^]]+)\]|(?P<host>[^:/\[\]]+))(?::(?P<port>[0-9]{1,5}))?"
)


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
