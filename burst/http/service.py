# SPDX-License-Identifier: MIT
"""Starts, changes and ends the server as `[http]` of the settings says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burst import log
from burst.config import HttpSettings, parse_listen
from burst.errors import ConfigError
from burst.kits.secret_file import read_secret
from burst.runtime.daemon_state import DaemonState
from burst.runtime.reload import PreparedChange

if TYPE_CHECKING:
    from burst.http.server import HttpServer


class HttpService:
    """Runs the server if `[http] listen` is set; else nothing is imported for it.

    Use it from one thread.
    """

    def __init__(self, state: DaemonState) -> None:
        self._state = state
        self._listen = ""
        self._server: HttpServer | None = None

    def prepare(self, settings: HttpSettings) -> PreparedChange:
        """Listen as the settings say, and answer once the change is `commit`ted.

        The present server goes on until then, unless it has the port that the new one
        needs. Raises ConfigError; then everything is as before.
        """
        token = None
        if settings.listen and settings.token_file:
            token = read_secret(settings.token_file, "http.token_file")
        if settings.listen == self._listen:
            return PreparedChange(lambda: self._use_token(token))
        before, known = self._listen, self._server.token if self._server else None
        made = self._replace_port(settings.listen, token) if settings.listen else None

        def commit() -> None:
            self.close()
            self._begin(settings.listen, made)

        def abandon() -> None:
            if made is not None:
                made.close()
            if self._listen != before:
                self._begin(before, self._listen_at(before, known))

        return PreparedChange(commit, abandon)

    def close(self) -> None:
        """Stop listening."""
        server, self._server, self._listen = self._server, None, ""
        if server is not None:
            server.close()

    @property
    def port(self) -> int:
        """The port on which the server listens; 0 if there is none."""
        return 0 if self._server is None else self._server.port

    def _begin(self, listen: str, server: HttpServer | None) -> None:
        self._listen, self._server = listen, server
        if server is not None:
            server.start()
            where = f"port {server.port}" if server.port else str(server.address)
            log.say("serving HTTP at %s (%s)", listen, where)

    def _use_token(self, token: bytes | None) -> None:
        if self._server is not None:
            self._server.token = token

    def _replace_port(self, listen: str, token: bytes | None) -> HttpServer:
        """Listen at another address, which may need the port of the present server."""
        try:
            return self._listen_at(listen, token)
        except ConfigError:
            server, before = self._server, self._listen
            if server is None or server.port != parse_listen(listen).port:
                raise
        # For example 0.0.0.0 replaces 127.0.0.1: both cannot listen at the same time.
        self.close()
        try:
            return self._listen_at(listen, token)
        except ConfigError:
            self._begin(before, self._listen_at(before, server.token))
            raise

    def _listen_at(self, listen: str, token: bytes | None) -> HttpServer:
        # Imported here: it takes a tenth of a second, and most daemons do not need it.
        from burst.http.daemon_routes import daemon_routes  # noqa: PLC0415
        from burst.http.routes import Routes  # noqa: PLC0415
        from burst.http.server import HttpServer  # noqa: PLC0415

        routes = Routes(daemon_routes(self._state))
        return HttpServer(parse_listen(listen), routes, token)
