# SPDX-License-Identifier: MIT
"""A streamed answer of the API server, such as of a watch, read without waiting.

It has no thread. What comes between two reads waits in the kernel's buffer; once that
is full the API server ends the stream, and the watch is begun anew.
"""

from __future__ import annotations

import select
import ssl
import weakref
from typing import Any

import urllib3

_PART = 65536


class ApiStream:
    """The lines of an answer that has not ended. For one thread at a time."""

    def __init__(self, answer: urllib3.BaseHTTPResponse) -> None:
        """`answer` is one that was not read."""
        self._parts = answer.stream(_PART)
        # urllib3 has no way to ask what it has buffered, and a read waits. The socket
        # is no longer the connection's where the server closes it after this answer.
        self._buffer: Any = answer._fp.fp  # type: ignore[attr-defined]
        self._socket: Any = self._buffer.raw._sock
        self._begun = b""
        self.ended = False
        """Whether no more comes: the server ended it, or the connection is lost."""
        self._close = weakref.finalize(self, answer.close)

    def lines(self) -> list[bytes]:
        """Return the whole lines that have come since the last call."""
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
        """Return whether something can be read at once; note if it has ended."""
        if self._buffer.closed:
            # All of an answer of a known length was read, such as a proxy's.
            self.ended = True
            return False
        asked = select.poll()
        asked.register(self._socket, select.POLLIN)
        readable = bool(asked.poll(0))
        limit = self._socket.gettimeout()
        self._socket.setblocking(False)
        try:
            found = bool(self._buffer.peek(1))
        except (ssl.SSLWantReadError, BlockingIOError):
            return False  # a part of a TLS record
        except OSError:
            self.ended = True
            return False
        finally:
            self._socket.settimeout(limit)
        # A socket that is readable and has nothing was closed by the other side.
        self.ended = readable and not found
        return found
