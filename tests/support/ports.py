# SPDX-License-Identifier: MIT
"""Ports for servers that tests start."""

from __future__ import annotations

import secrets
import socket
from collections import deque

# Below the ports that Linux gives to connections and to sockets that ask for any
# (32768 and above, ip(7)), and below Kubernetes' NodePorts: what begins to listen a
# second after it was asked for would find one of those taken now and then.
_FIRST, _LAST = 20_000, 29_999
# By then what asked for the first of them listens, or never will.
_MOST_CLAIMS = 100
_claims: deque[socket.socket] = deque()


def free_port() -> int:
    """Return a port that nobody has on any address of this host now.

    No other test is given it, in this process or another, until this process ends or
    has asked for many more: what is to listen there may start late, and end and start
    again.
    """
    while True:
        port = _FIRST + secrets.randbelow(_LAST - _FIRST + 1)
        claim = socket.socket(socket.AF_UNIX)
        with socket.socket() as probe:
            try:
                # Abstract: it ends with this process, however that ends (unix(7)).
                claim.bind(f"\0burst-test-port-{port}")
                probe.bind(("", port))
            except OSError:
                claim.close()
                continue
        _claims.append(claim)
        if len(_claims) > _MOST_CLAIMS:
            _claims.popleft().close()
        return port
