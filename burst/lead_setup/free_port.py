# SPDX-License-Identifier: MIT
"""A port for a lead that nobody has chosen one for."""

from __future__ import annotations

import secrets
import socket

# Below the ports that Linux gives to connections and to sockets that ask for any
# (32768 and above, ip(7)), and below Kubernetes' NodePorts: what begins to listen a
# second after it was asked for would find one of those taken now and then.
_FIRST, _LAST = 20_000, 29_999


def free_port() -> int:
    """Return a port that nobody has on any address of this host now."""
    while True:
        port = _FIRST + secrets.randbelow(_LAST - _FIRST + 1)
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
