# SPDX-License-Identifier: MIT
"""The HTTP server: Python's own, with a bound for all that a client can do to it.

HTTP/1.0 with one request a connection, which Prometheus, kubelets and browsers all
speak: so no idle connection takes a place.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import socketserver
import stat
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from burst import log
from burst.config import ListenAddress
from burst.errors import ConfigError
from burst.http.limits import (
    MOST_CONNECTIONS,
    READ_S,
    WRITE_S,
    DeadlineSocket,
    LimitedHead,
)
from burst.http.routes import (
    Access,
    HttpRequest,
    HttpResponse,
    Route,
    Routes,
    text_response,
)
from burst.http.token import is_token

_LONGEST_QUERY = 20
_POLL_S = 0.5


class HttpServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Answers by a table of routes, on threads of its own. `token` may be changed."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(
        self, address: ListenAddress, routes: Routes, token: bytes | None
    ) -> None:
        """Listen. Raises ConfigError where that cannot be."""
        self.address = address
        self.routes = routes
        self.token = token
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._made: tuple[int, int] | None = None
        self._thread: threading.Thread | None = None
        host: Any = (address.host, address.port)
        if address.path:
            self.address_family, host = socket.AF_UNIX, address.path
            self.allow_reuse_address = False
        elif ":" in address.host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__(host, RequestHandler)
        except OSError as error:
            raise ConfigError(
                f"http.listen: {address}: {error.strerror or error}",
                "another program listens there, or this user may not: choose another"
                " address (`ss -ltnxp` lists who listens)",
            ) from error

    @property
    def port(self) -> int:
        """The port on which it listens; 0 for a Unix socket."""
        return 0 if self.address.path else int(self.server_address[1])

    def start(self) -> None:
        """Answer from now on."""
        self._thread = threading.Thread(
            target=self.serve_forever, args=(_POLL_S,), name="http", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Listen no longer. Answers under way are given to their end, or dropped."""
        if self._thread is not None:
            self.shutdown()
            self._thread.join()
        self.server_close()
        if self._made is not None:
            with contextlib.suppress(FileNotFoundError):
                # Another may have been made there since.
                if _inode(self.address.path) == self._made:
                    os.unlink(self.address.path)

    def server_bind(self) -> None:
        """Bind; a Unix socket so that only this user can connect to it."""
        if self.address.path:
            _remove_stale(self.address.path)
            # On Linux the socket's own mode becomes that of the file.
            os.fchmod(self.fileno(), 0o600)
        super().server_bind()
        if self.address.path:
            self._made = _inode(self.address.path)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer on a thread, if there is a place; else close the connection."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # No thread could be started.
            self._places.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and free the place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do nothing: the client is gone, or what it sent cannot be answered."""


class RequestHandler(BaseHTTPRequestHandler):
    """One connection. What is parsed here is parsed by Python's own server."""

    server: HttpServer
    error_message_format = "%(code)d %(message)s\n"
    error_content_type = "text/plain; charset=utf-8"

    def setup(self) -> None:
        """Read with a deadline and a limit."""
        super().setup()
        self.rfile.close()
        self.rfile = LimitedHead(DeadlineSocket(self.connection, READ_S))

    def handle(self) -> None:
        """Answer one request."""
        try:
            super().handle()
        except http.client.LineTooLong:
            # In the request line; of headers Python's server says it.
            self.requestline = self.command = ""
            self.request_version = "HTTP/1.0"
            self.send_error(http.HTTPStatus.REQUEST_URI_TOO_LONG)

    def do_GET(self) -> None:
        """Answer GET."""
        self._answer("GET")

    def do_HEAD(self) -> None:
        """Answer HEAD, as GET without the body."""
        self._answer("GET")

    def do_POST(self) -> None:
        """Answer POST."""
        self._answer("POST")

    def version_string(self) -> str:
        """Return what the answer says of the server."""
        return "burst"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing: what clients send does not belong into the log."""

    def send_error(self, code: int, *_: str | None, **__: str | None) -> None:
        """Refuse, without the message, which has what the client sent."""
        self.connection.settimeout(WRITE_S)
        super().send_error(code)

    def end_headers(self) -> None:
        """Add what each answer has."""
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def _answer(self, method: str) -> None:
        path, _, query = self.path.partition("?")
        methods, name = self.server.routes.find(path)
        route = methods.get(method)
        if route is None and methods:
            self._send(
                HttpResponse(
                    body=b"this path does not take that method\n",
                    status=405,
                    headers={"Allow": ", ".join(_allowed(methods))},
                )
            )
            return
        if route is None:
            self._send(text_response("there is nothing here", 404))
            return
        refusal = self._refusal(route)
        if refusal is not None:
            self._send(refusal)
            return
        body = self._read_body(route)
        if body is not None:
            self._send(self._call(route, path, name, (query, body)))

    def _call(
        self, route: Route, path: str, name: str, given: tuple[str, bytes]
    ) -> HttpResponse:
        query, body = given
        try:
            pairs = parse_qsl(query, max_num_fields=_LONGEST_QUERY)
        except ValueError:
            return text_response("the query has too many fields", 400)
        request = HttpRequest(path=path, name=name, query=dict(pairs), body=body)
        try:
            return route.handler(request)
        except Exception as error:  # noqa: BLE001 - one request must not end others
            log.failure("HTTP: %s cannot be answered", route.path, error=error)
            return text_response("this failed; the daemon's log says why", 500)

    def _refusal(self, route: Route) -> HttpResponse | None:
        """Return why the client may not ask that, None if it may."""
        if route.access is Access.ANYONE:
            return None
        token = self.server.token
        if token is not None:
            # A browser sends Basic by itself, also with what another site has it post.
            header = self.headers.get("Authorization", "")
            if is_token(header, token, basic=route.method == "GET"):
                return None
            return HttpResponse(
                body=b"the token is missing or wrong\n",
                status=401,
                headers={"WWW-Authenticate": 'Basic realm="burst", charset="UTF-8"'},
            )
        if route.access is Access.OWNER and not self.server.address.path:
            return text_response(
                "any user of this host can connect here: set http.token_file, or listen"
                " on a Unix socket",
                403,
            )
        return None

    def _read_body(self, route: Route) -> bytes | None:
        """Return the body of a POST; None if it was refused."""
        if route.method != "POST":
            return b""
        length = self.headers.get("Content-Length", "")
        if "Transfer-Encoding" in self.headers or not length.isascii():
            self.send_error(411)
        elif not length.isdigit() or len(length) > 12:
            self.send_error(411 if not length else 400)
        elif int(length) > route.body_limit:
            self.send_error(413)
        else:
            body = self.rfile.read(int(length))
            if len(body) == int(length):
                return body
            self.send_error(400)
        return None

    def _send(self, response: HttpResponse) -> None:
        self.connection.settimeout(WRITE_S)
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        for key, value in response.headers.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)


def _allowed(methods: Any) -> list[str]:
    return [*methods, *(["HEAD"] if "GET" in methods else [])]


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
