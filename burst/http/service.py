# SPDX-License-Identifier: MIT
"""The server as `[http]` asks for it: its start, its change by a reload, its end."""

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
    """Use from one thread. Nothing is imported for it unless `[http] listen` is set."""

    def __init__(self, state: DaemonState) -> None:
        self._state = state
        self._listen = ""
        self._server: HttpServer | None = None

    def prepare(self, settings: HttpSettings) -> PreparedChange:
        """Listen as the settings say, and answer once the change is `commit`ted.

        What listens now goes on until then, but where it has the port that the new one
        needs. Raises ConfigError; then all is as it was.
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
        """Listen no longer."""
        server, self._server, self._listen = self._server, None, ""
        if server is not None:
            server.close()

    @property
    def port(self) -> int:
        """The port on which it listens; 0 where there is none."""
        return 0 if self._server is None else self._server.port

    def _begin(self, listen: str, server: HttpServer | None) -> None:
        self._listen, self._server = listen, server
        if server is not None:
            server.start()
            where = f"port {server.port}" if server.port else str(server.address)
            log.say("HTTP is answered at %s (%s)", listen, where)

    def _use_token(self, token: bytes | None) -> None:
        if self._server is not None:
            self._server.token = token

    def _replace_port(self, listen: str, token: bytes | None) -> HttpServer:
        """Listen at another address, which may have the port of the present one."""
        try:
            return self._listen_at(listen, token)
        except ConfigError:
            server, before = self._server, self._listen
            if server is None or server.port != parse_listen(listen).port:
                raise
        # Such as 0.0.0.0 in place of 127.0.0.1: both cannot listen at a time.
        self.close()
        try:
            return self._listen_at(listen, token)
        except ConfigError:
            self._begin(before, self._listen_at(before, server.token))
            raise

    def _listen_at(self, listen: str, token: bytes | None) -> HttpServer:
        # This takes a tenth of a second, which most daemons do without.
        from burst.http.daemon_routes import daemon_routes  # noqa: PLC0415
        from burst.http.routes import Routes  # noqa: PLC0415
        from burst.http.server import HttpServer  # noqa: PLC0415

        routes = Routes(daemon_routes(self._state))
        return HttpServer(parse_listen(listen), routes, token)
