# SPDX-License-Identifier: MIT
"""The clients of a port that have not sent their request yet: a bounded number.

Anybody who reaches the port can connect and send nothing. So a newcomer is never
refused: it takes the place of the client that has waited longest, one of its own
address if that has many.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading

MOST = 128
"""The most clients that wait; each has a thread."""
MOST_OF_ONE = 32
"""The most clients that wait of one address, or of one IPv6 network of a host. VMs
behind one router have one address, and may start at the same time."""
_HOST_PREFIX = 64


class WaitingClients:
    """The connections that wait, the oldest first. Use it from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._origins: dict[socket.socket, str] = {}

    def enter(self, connection: socket.socket, address: str) -> None:
        """Add a connection from an address; shut another down if there are too many."""
        origin = _origin(address)
        with self._lock:
            same = [each for each, its in self._origins.items() if its == origin]
            candidates = same if len(same) >= MOST_OF_ONE else list(self._origins)
            if candidates is same or len(candidates) >= MOST:
                del self._origins[candidates[0]]
                # Not the method of SSLSocket, which would go on without TLS.
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(candidates[0], socket.SHUT_RDWR)
            self._origins[connection] = origin

    def leave(self, connection: socket.socket) -> bool:
        """Remove a connection; tell whether it was there, and so was not shut down."""
        with self._lock:
            return self._origins.pop(connection, None) is not None


def _origin(address: str) -> str:
    """Return an address without what a host can choose: the end of IPv6 addresses."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv4Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    network = ipaddress.ip_network((found, _HOST_PREFIX), strict=False)
    return str(network)
