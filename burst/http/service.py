# SPDX-License-Identifier: MIT
"""Starts and ends the server as `[http]` of the settings says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from burst import log
from burst.config import HttpSettings, parse_listen
from burst.kits.secret_file import read_secret
from burst.runtime.daemon_state import DaemonState

if TYPE_CHECKING:
    from burst.http.server import HttpServer


class HttpService:
    """Runs the server if `[http] listen` is set; else nothing is imported for it.

    Use it from one thread.
    """

    def __init__(self, state: DaemonState) -> None:
        self._state = state
        self._server: HttpServer | None = None

    def prepare(self, settings: HttpSettings) -> Callable[[], None]:
        """Listen, unless the server does already, and read the token.

        Return a function that starts to answer, or to require the token just read.
        Raises ConfigError; then everything is as before.
        """
        token = None
        if settings.listen and settings.token_file:
            token = read_secret(settings.token_file, "http.token_file")
        if settings.listen and self._server is None:
            server = self._server = self._listen_at(settings.listen, token)
            return lambda: _start(server, settings.listen)
        return lambda: self._use_token(token)

    def close(self) -> None:
        """Stop listening."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    @property
    def port(self) -> int:
        """The port on which the server listens; 0 if there is none."""
        return 0 if self._server is None else self._server.port

    def _use_token(self, token: bytes | None) -> None:
        if self._server is not None:
            self._server.token = token

    def _listen_at(self, listen: str, token: bytes | None) -> HttpServer:
        # Imported here: it takes a tenth of a second, and most daemons do not need it.
        from burst.http.daemon_routes import daemon_routes  # noqa: PLC0415
        from burst.http.routes import Routes  # noqa: PLC0415
        from burst.http.server import HttpServer  # noqa: PLC0415

        routes = Routes(daemon_routes(self._state))
        return HttpServer(parse_listen(listen), routes, token)


def _start(server: HttpServer, listen: str) -> None:
    server.start()
    where = f"port {server.port}" if server.port else str(server.address)
    log.say("serving HTTP at %s (%s)", listen, where)
