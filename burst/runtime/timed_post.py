# SPDX-License-Identifier: MIT
"""An HTTP post with one deadline for all of it.

The timeout of a socket is for each read: a server that sends a byte now and then could
hold the thread that posts for as long as it likes.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import urllib.error
import urllib.request
from http.client import HTTPConnection, HTTPSConnection
from typing import Any


def post(
    request: urllib.request.Request,
    seconds: float,
    context: ssl.SSLContext | None = None,
    *,
    reads: bool = False,
) -> bytes:
    """Send a request. Raises OSError (HTTPError too), HTTPException and ValueError.

    The answer's body is returned only if `reads`. The request's content is for its URL
    only, so no redirect is followed, and http goes through no proxy.
    `context` says which certificates are trusted; default: the system's.
    """
    deadline = _Deadline(context)
    handlers: list[urllib.request.BaseHandler] = [deadline, _NoRedirect()]
    if request.type == "http":
        handlers.append(urllib.request.ProxyHandler({}))
    timer = threading.Timer(seconds, deadline.cut)
    timer.daemon = True
    timer.start()
    try:
        opener = urllib.request.build_opener(*handlers)
        with opener.open(request, timeout=seconds) as answer:
            return answer.read() if reads else b""
    except urllib.error.HTTPError:
        raise
    except Exception:
        if deadline.is_over.is_set():
            raise TimeoutError("timed out") from None
        raise
    finally:
        timer.cancel()
        timer.join()
        deadline.close()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _Deadline(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    """Makes connections, and cuts them at the deadline."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__()
        self._trusted = context
        self.is_over = threading.Event()
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []

    def keep(self, connected: socket.socket) -> None:
        """Keep a duplicate of a socket, which TLS does not take over."""
        with self._lock:
            if self.is_over.is_set():
                raise TimeoutError("timed out")
            self._sockets.append(connected.dup())

    def cut(self) -> None:
        """Shut all connections down: reads return at once."""
        with self._lock:
            self.is_over.set()
            for one in self._sockets:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the duplicates."""
        for one in self._sockets:
            one.close()

    def http_open(self, request: urllib.request.Request) -> Any:
        """See `urllib.request.HTTPHandler`."""
        return self.do_open(_kept(_Connection, self), request)

    def https_open(self, request: urllib.request.Request) -> Any:
        """See `urllib.request.HTTPSHandler`."""
        connection = _kept(_TlsConnection, self)
        return self.do_open(connection, request, context=self._trusted)


class _Connection(HTTPConnection):
    deadline: _Deadline

    def connect(self) -> None:
        super().connect()
        self.deadline.keep(self.sock)


class _TlsConnection(HTTPSConnection, _Connection):
    """Its `connect` calls that of `_Connection`, and then begins TLS."""


def _kept(kind: type[_Connection], deadline: _Deadline) -> Any:
    def connection(host: str, **options: Any) -> _Connection:
        made = kind(host, **options)
        made.deadline = deadline
        return made

    return connection
