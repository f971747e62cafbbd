# SPDX-License-Identifier: MIT
"""The routes of the daemon. Add others here; the server needs no change for them."""

from __future__ import annotations

import json

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from burst.extensions import load_all, naming_package
from burst.http.metrics.collector import DaemonCollector
from burst.http.routes import (
    JSON,
    Access,
    HttpRequest,
    HttpResponse,
    Route,
    text_response,
)
from burst.runtime import service_answers
from burst.runtime.daemon_state import DaemonState


def daemon_routes(state: DaemonState) -> list[Route]:
    """Return the routes of the daemon with this state, and those of packages."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(DaemonCollector(state))

    def healthz(_: HttpRequest) -> HttpResponse:
        return _verdict(state.why_stuck())

    def readyz(_: HttpRequest) -> HttpResponse:
        return _verdict(state.why_stuck() or state.why_not_ready())

    def metrics(_: HttpRequest) -> HttpResponse:
        text = generate_latest(registry)
        return HttpResponse(body=text, content_type=CONTENT_TYPE_PLAIN_0_0_4)

    def status(_: HttpRequest) -> HttpResponse:
        served = state.served
        if served is None:
            return _verdict(state.why_not_ready())
        row = service_answers.status(served.snapshot(), dict(served.process))
        # As `burst status --json` prints it.
        text = json.dumps(row, indent=2, ensure_ascii=False)
        return HttpResponse(body=f"{text}\n".encode(), content_type=JSON)

    of_packages: list[Route] = []
    for name, routes in load_all("burst.http_routes").items():
        with naming_package("burst.http_routes", name):
            of_packages += routes(state)
    return [
        *of_packages,
        Route(path="/healthz", handler=healthz, access=Access.ANYONE),
        Route(path="/readyz", handler=readyz, access=Access.ANYONE),
        Route(path="/metrics", handler=metrics, access=Access.TOKEN),
        Route(path="/status", handler=status, access=Access.OWNER),
    ]


def _verdict(trouble: str) -> HttpResponse:
    return text_response(trouble or "ok", 503 if trouble else 200)
