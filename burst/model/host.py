# SPDX-License-Identifier: MIT
"""Names and addresses of hosts."""

from __future__ import annotations

import ipaddress
import re

_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\Z")
_LONGEST_LABEL = 63
_LONGEST_NAME = 253


def is_host_name(name: str) -> bool:
    """Tell whether Flux accepts the name of a host: DNS labels (RFC 1123)."""
    return len(name) <= _LONGEST_NAME and all(map(_LABEL.match, name.split(".")))


def dns_label(text: str, default: str, longest: int = _LONGEST_LABEL) -> str:
    """Return the text as one DNS label in lower case, at most `longest` characters.

    Other characters become dashes. `default` is returned for a text without a letter or
    digit.
    """
    label = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")
    return label[:longest].rstrip("-") or default


def is_loopback(host: str) -> bool:
    """Tell whether the address is a loopback address, or the name is localhost.

    Names are not looked up. An IPv6 address may be in brackets and have a zone.
    """
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"
