# SPDX-License-Identifier: MIT
"""A streamed answer of the API server, such as of a watch, read without blocking.

It has no thread. Data that arrives between two reads stays in the kernel's buffer. Once
that is full, the API server ends the stream, and the watch has to be started again.
"""

from __future__ import annotations

import select
import ssl
import weakref
from typing import Any

import urllib3

_PART = 65536


class ApiStream:
    """Reads the lines of an answer as they arrive. For one thread at a time."""

    def __init__(self, answer: urllib3.BaseHTTPResponse) -> None:
        """`answer` is an answer whose body was not read yet."""
        self._parts = answer.stream(_PART)
        # urllib3 cannot tell what it has buffered, and its read blocks. The socket is
        # taken from the answer, as the connection has none any more if the server
        # closes it after this answer.
        self._buffer: Any = answer._fp.fp  # type: ignore[attr-defined]
        self._socket: Any = self._buffer.raw._sock
        self._begun = b""
        self.ended = False
        """Whether nothing more will arrive, as the stream has ended or was lost."""
        self._close = weakref.finalize(self, answer.close)

    def lines(self) -> list[bytes]:
        """Return the complete lines that have arrived since the last call."""
        parts = [self._begun]
        while not self.ended and self._has_come():
            try:
                parts.append(next(self._parts))
            except (StopIteration, urllib3.exceptions.HTTPError, OSError):
                self.ended = True
        *lines, self._begun = b"".join(parts).split(b"\n")
        return [line for line in lines if line]

    def close(self) -> None:
        """Close the connection."""
        self.ended = True
        self._close()

    def _has_come(self) -> bool:
        """Return whether data can be read at once. Sets `ended` at the end."""
        if self._buffer.closed:
            # An answer with a known length, as of a proxy, was read completely.
            self.ended = True
            return False
        asked = select.poll()
        asked.register(self._socket, select.POLLIN)
        readable = bool(asked.poll(0))
        limit = self._socket.gettimeout()
        self._socket.settimeout(0)  # TLS inside TLS has no `setblocking`
        try:
            found = bool(self._buffer.peek(1))
        except (ssl.SSLWantReadError, BlockingIOError):
            return False  # only a part of a TLS record has arrived
        except OSError:
            self.ended = True
            return False
        finally:
            self._socket.settimeout(limit)
        # A socket that is readable but has no data was closed by the other side.
        self.ended = readable and not found
        return found
