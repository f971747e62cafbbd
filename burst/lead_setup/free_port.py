# SPDX-License-Identifier: MIT
"""Chooses a free port for a lead if nobody has named one."""

from __future__ import annotations

import secrets
import socket

# Below the ports that Linux gives to connections and to sockets that ask for any
# (32768 and above, ip(7)), and below Kubernetes' NodePorts: one of those may be taken
# in the second between the choice of a port and the start of the lead.
_FIRST, _LAST = 20_000, 29_999


def free_port() -> int:
    """Return a port that is free on all addresses of this host now."""
    while True:
        port = _FIRST + secrets.randbelow(_LAST - _FIRST + 1)
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
