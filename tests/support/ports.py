# SPDX-License-Identifier: MIT
"""Ports for servers that tests start."""

from __future__ import annotations

import os
import socket
from collections import deque

from burst.lead_setup import own_host as product

# By then what asked for the first of them listens, or never will.
_MOST_CLAIMS = 100
_claims: deque[int] = deque()
"""Descriptors of sockets."""


def free_port() -> int:
    """Return a port that nobody has on any address of this host now.

    No other test is given it, in this process or another, until this process ends or
    has asked for many more: what is to listen there may start late, and end and start
    again.
    """
    while True:
        port = product.free_port()
        claim = socket.socket(socket.AF_UNIX)
        try:
            # Abstract: it ends with this process, however that ends (unix(7)).
            claim.bind(f"\0burst-test-port-{port}")
        except OSError:
            claim.close()
            continue
        _claims.append(claim.detach())
        if len(_claims) > _MOST_CLAIMS:
            os.close(_claims.popleft())
        return port
