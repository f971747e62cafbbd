# SPDX-License-Identifier: MIT
"""The HTTP server: waitress, with limits on everything that a client can use.

waitress reads requests and sends answers in one thread for all connections, so a client
that sends or reads slowly takes a few kilobytes and one of MOST_CONNECTIONS. It loses
that after LONGEST_S, however much it sends meanwhile. While slow clients have all
connections, others wait for so long, and longer if more slow clients wait before them.
"""

from __future__ import annotations

import contextlib
import http
import logging
import os
import socket
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import waitress
from waitress import wasyncore

from burst import log
from burst.config import ListenAddress
from burst.errors import ConfigError
from burst.http.routes import (
    Access,
    HttpRequest,
    HttpResponse,
    Route,
    Routes,
    is_token,
    text_response,
)

MOST_CONNECTIONS = 200
"""Most connections at a time; further ones wait in the backlog. Most hosts give a
process 1,024 files."""
HEAD_BYTES = 16 * 1024
"""Largest size of request line and headers together."""
IDLE_S = 5
"""Seconds without traffic after which a connection is closed."""
LONGEST_S = 10.0
"""Seconds after which a connection is closed as soon as no request of it is answered.
An answer has as long again to be read."""
THREADS = 4
"""Number of threads that answer requests."""
_CLOSE_S = 5
"""Seconds that answers under way may take when the server ends."""
_LONGEST_QUERY = 20
_ALWAYS = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))
"""Headers of each answer."""

# Mistakes of clients do not belong in the log.
logging.getLogger("waitress").setLevel(logging.CRITICAL)

Environ = Mapping[str, Any]
"""The environment of a request, as in WSGI (PEP 3333)."""


class HttpServer:
    """Answers by a table of routes, on threads of its own. `token` may be changed."""

    def __init__(
        self,
        address: ListenAddress,
        routes: Routes,
        token: bytes | None,
        longest_s: float = LONGEST_S,
    ) -> None:
        """Listen at the address. Raises ConfigError if that is not possible."""
        self.address = address
        self.routes = routes
        self.token = token
        self._longest_s = longest_s
        try:
            listening = _listen(address)
        except OSError as error:
            raise ConfigError(
                f"http.listen: {address}: {error.strerror or error}",
                "another program listens there, or this user may not: choose another"
                " address (`ss -ltnxp` lists who listens)",
            ) from error
        self._made = _inode(address.path) if address.path else None
        self.port = 0 if address.path else int(listening.getsockname()[1])
        """The port on which it listens; 0 for a Unix socket."""
        self._sockets: dict[int, Any] = {}
        self._thread: threading.Thread | None = None
        self._server = waitress.create_server(
            self._answer,
            map=self._sockets,
            sockets=[listening],
            threads=THREADS,
            connection_limit=MOST_CONNECTIONS,
            channel_timeout=IDLE_S,
            max_request_header_size=HEAD_BYTES,
            # waitress accepts only fewer bytes than this.
            max_request_body_size=routes.longest_body + 1,
            log_socket_errors=False,
            asyncore_use_poll=True,
            ident="burst",
        )
        self._first_seen = weakref.WeakKeyDictionary[Any, float]()
        """Since when connections exist, by the monotonic clock."""
        self._close_idle = self._server.maintenance
        self._server.maintenance = self._close_slow

    def start(self) -> None:
        """Begin to answer requests."""
        self._thread = threading.Thread(
            target=self._server.run, name="http", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening. Answers under way have five seconds to finish."""
        self._server.task_dispatcher.shutdown(timeout=_CLOSE_S)
        if self._thread is None:
            self._close_sockets()
        else:
            pulled = threading.Event()

            def close_sockets() -> None:
                # A task that ends may wake the thread before `pull_trigger` has written
                # to the trigger, which is one of the sockets to close.
                pulled.wait()
                self._close_sockets()

            # Closed in the server's own thread, which ends when no socket is left.
            self._server.trigger.pull_trigger(close_sockets)
            pulled.set()
            self._thread.join()
        if self._made is not None:
            with contextlib.suppress(FileNotFoundError):
                # Another socket may have been made there since.
                if _inode(self.address.path) == self._made:
                    os.unlink(self.address.path)

    def _close_slow(self, now: float) -> None:
        """Close connections that are idle or too old; called at least each second.

        Its own way sees only how long nothing at all came or went, by the clock of the
        host, which may be set back.
        """
        # Else waitress waits until that clock has come so far. Its loop takes a second
        # at most, and looks at all connections anyway.
        self._server.next_channel_cleanup = 0
        self._close_idle(now)
        seen = time.monotonic()
        for connection in list(self._server.active_channels.values()):
            age = seen - self._first_seen.setdefault(connection, seen)
            answering = bool(connection.requests)
            if age > self._longest_s and not answering:
                # First an answer that is being read is sent.
                connection.close_when_flushed = True
            unread = connection.total_outbufs_len > 0
            if age > 2 * self._longest_s and (unread or not answering):
                # waitress closes when it can send, so never while nobody reads, and a
                # thread may wait for that with further answers.
                with contextlib.suppress(OSError):
                    connection.socket.shutdown(socket.SHUT_RDWR)

    def _close_sockets(self) -> None:
        for connection in list(self._server.active_channels.values()):
            connection.handle_close()
        wasyncore.close_all(self._sockets)

    def _answer(
        self, environ: Environ, start: Callable[[str, list[tuple[str, str]]], object]
    ) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""
        method = environ["REQUEST_METHOD"]
        response = self._respond("GET" if method == "HEAD" else method, environ)
        length = str(len(response.body))
        start(
            f"{response.status} {_reason(response.status)}",
            [
                ("Content-Type", response.content_type),
                ("Content-Length", length),
                *response.headers.items(),
                *_ALWAYS,
            ],
        )
        return [] if method == "HEAD" else [response.body]

    def _respond(self, method: str, environ: Environ) -> HttpResponse:
        # As the client wrote it: PATH_INFO has escapes decoded.
        path, _, query = environ["REQUEST_URI"].partition("?")
        methods, name = self.routes.find(path)
        route = methods.get(method)
        if route is None and methods:
            allowed = [*methods, *(["HEAD"] if "GET" in methods else [])]
            return HttpResponse(
                body=b"this path does not take that method\n",
                status=405,
                headers={"Allow": ", ".join(allowed)},
            )
        if route is None:
            return text_response("there is nothing here", 404)
        refusal = self._refusal(route, environ.get("HTTP_AUTHORIZATION", ""))
        if refusal is not None:
            return refusal
        # The body is here already: waitress reads all of it before it calls this.
        body = environ["wsgi.input"].read() if method == "POST" else b""
        if len(body) > route.body_limit:
            return text_response(f"at most {route.body_limit} bytes are accepted", 413)
        given = HttpRequest(path=path, name=name, body=body)
        return _call(route, given, query)

    def _refusal(self, route: Route, authorization: str) -> HttpResponse | None:
        """Return the response that refuses the client; None if it may ask."""
        if route.access is Access.ANYONE:
            return None
        if self.token is not None:
            # A browser adds Basic by itself, also to a POST that another site makes it
            # send, so Basic is only for GET.
            if is_token(authorization, self.token, basic=route.method == "GET"):
                return None
            return HttpResponse(
                body=b"the token is missing or wrong\n",
                status=401,
                headers={"WWW-Authenticate": 'Basic realm="burst", charset="UTF-8"'},
            )
        if route.access is Access.OWNER and not self.address.path:
            return text_response(
                "any user of this host can connect here: set http.token_file, or listen"
                " on a Unix socket",
                403,
            )
        return None


def _call(route: Route, given: HttpRequest, query: str) -> HttpResponse:
    try:
        pairs = parse_qsl(query, max_num_fields=_LONGEST_QUERY)
    except ValueError:
        return text_response("the query has too many fields", 400)
    try:
        return route.handler(msgspec.structs.replace(given, query=dict(pairs)))
    except Exception as error:  # noqa: BLE001 - one request must not end others
        log.failure("HTTP: %s cannot be answered", route.path, error=error)
        return text_response("this failed; the daemon's log says why", 500)


def _listen(address: ListenAddress) -> socket.socket:
    """Return a socket that is bound. Raises OSError."""
    if not address.path:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        return socket.create_server((address.host, address.port), family=family)
    _remove_stale(address.path)
    made = socket.socket(socket.AF_UNIX)
    # On Linux the socket's mode becomes that of the file: only this user can connect.
    os.fchmod(made.fileno(), 0o600)
    try:
        made.bind(address.path)
    except OSError:
        made.close()
        raise
    return made


def _reason(status: int) -> str:
    return http.HTTPStatus(status).phrase


def _inode(path: str) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def _remove_stale(path: str) -> None:
    """Remove the socket of a daemon that died. Raises OSError for anything else."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
        raise FileExistsError(17, "something else is there")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            Path(path).unlink(missing_ok=True)
            return
    raise OSError(98, "another process answers there")
