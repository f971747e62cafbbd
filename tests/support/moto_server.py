# SPDX-License-Identifier: MIT
"""Moto's AWS over the wire, with what a test puts in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from wsgiref.types import StartResponse, WSGIEnvironment

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    create_backend_app,
)
from werkzeug.serving import WSGIRequestHandler, make_server

from tests.support.servers import served

Answer = Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]


class _Quiet(WSGIRequestHandler):
    def log_request(self, *_: object) -> None:
        """Log nothing of requests: the log of a failed test is for what went wrong."""


class MotoServer:
    """`app` is moto; `answer` is asked, which may ask that. `close` ends it."""

    answer: Answer

    def __init__(self) -> None:
        self.app = DomainDispatcherApplication(create_backend_app)
        server = make_server(
            "127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet
        )
        self.url = f"http://127.0.0.1:{server.server_port}"
        self._until_closed = ExitStack()
        self._until_closed.enter_context(served(server))

    def _answer(self, given: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        return self.answer(given, start)

    def close(self) -> None:
        self._until_closed.close()
