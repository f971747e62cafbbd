# SPDX-License-Identifier: MIT
"""The server as `[http]` asks for it: its start, its change by a reload, its end."""

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
    """Use from one thread. Nothing is imported for it unless `[http] listen` is set."""

    def __init__(self, state: DaemonState) -> None:
        self._state = state
        self._listen = ""
        self._server: HttpServer | None = None

    def prepare(self, settings: HttpSettings) -> HttpChange:
        """Listen as the settings say, and answer once the change is `commit`ted.

        What listens now goes on until then. Raises ConfigError.
        """
        token = None
        if settings.listen and settings.token_file:
            token = read_secret(settings.token_file, "http.token_file")
        if settings.listen == self._listen:
            return HttpChange(lambda: self._use_token(token))
        made = self._listen_at(settings.listen, token) if settings.listen else None

        def commit() -> None:
            self.close()
            self._listen, self._server = settings.listen, made
            if made is not None:
                made.start()
                where = f"port {made.port}" if made.port else str(made.address)
                log.say("HTTP is answered at %s (%s)", settings.listen, where)

        return HttpChange(commit, made.close if made is not None else None)

    def close(self) -> None:
        """Listen no longer."""
        server, self._server, self._listen = self._server, None, ""
        if server is not None:
            server.close()

    @property
    def port(self) -> int:
        """The port on which it listens; 0 where there is none."""
        return 0 if self._server is None else self._server.port

    def _use_token(self, token: bytes | None) -> None:
        if self._server is not None:
            self._server.token = token

    def _listen_at(self, listen: str, token: bytes | None) -> HttpServer:
        # This takes a tenth of a second, which most daemons do without.
        from burst.http.daemon_routes import daemon_routes  # noqa: PLC0415
        from burst.http.routes import Routes  # noqa: PLC0415
        from burst.http.server import HttpServer  # noqa: PLC0415

        routes = Routes(daemon_routes(self._state))
        return HttpServer(parse_listen(listen), routes, token)


class HttpChange:
    """What a reload does with the server, or leaves."""

    def __init__(
        self, commit: Callable[[], None], abandon: Callable[[], None] | None = None
    ) -> None:
        self.commit = commit
        """Goes on by the new settings."""
        self.abandon = abandon or (lambda: None)
        """Leaves all as it was."""
