# SPDX-License-Identifier: MIT
"""What a client may send, and how long it may take.

A client that sends a byte a minute, or headers without end, has a connection for a few
seconds and costs a few kilobytes.
"""

from __future__ import annotations

import http.client
import io
import socket
import time

HEAD_BYTES = 16 * 1024
"""Of request line and headers together."""
READ_S = 5.0
"""To send the whole request."""
WRITE_S = 10.0
"""To take the whole answer."""
MOST_CONNECTIONS = 16
"""At a time. One more is closed at once."""


class DeadlineSocket(io.RawIOBase):
    """Reads a socket until a moment. Raises TimeoutError past it."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        super().__init__()
        self._connection = connection
        self._ends = time.monotonic() + seconds

    def readable(self) -> bool:
        """See `io.RawIOBase`."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """See `io.RawIOBase`. The time that is left is that of all reads together."""
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request came too slowly")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class LimitedHead(io.BufferedReader):
    """Lines of a request's head. Raises LineTooLong past HEAD_BYTES of them."""

    _left = HEAD_BYTES

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return a line."""
        most = self._left + 1
        line = super().readline(most if size is None or size < 0 else min(size, most))
        self._left -= len(line)
        if self._left < 0:
            raise http.client.LineTooLong("head of the request")
        return line
