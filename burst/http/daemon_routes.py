# SPDX-License-Identifier: MIT
"""The routes of the daemon. Add others here; the server needs no change for them."""

from __future__ import annotations

import json

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from burst.errors import BurstError, StoreError
from burst.extensions import load_all
from burst.http.metrics.collector import DaemonCollector
from burst.http.routes import (
    HTML,
    JSON,
    Access,
    HttpRequest,
    HttpResponse,
    Route,
    text_response,
)
from burst.report_page import render_report
from burst.runtime import service_answers
from burst.runtime.daemon_state import DaemonState
from burst.runtime.service_requests import ReportRequest

# How often a browser loads the page again, in seconds.
_REFRESH_S = 30


def daemon_routes(state: DaemonState) -> list[Route]:
    """Return the routes of a daemon in that state."""
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

    def report(request: HttpRequest) -> HttpResponse:
        served = state.served
        if served is None:
            return _verdict(state.why_not_ready())
        try:
            asked = _asked(request)
            row = service_answers.report_of(served.snapshot(), asked)
        except StoreError as error:
            return _verdict(str(error))
        except BurstError as error:
            return text_response(f"{error}", 400)
        page = render_report(row, refresh=_REFRESH_S)
        return HttpResponse(body=page.encode(), content_type=HTML)

    of_packages = load_all("burst.http_routes").values()
    return [
        *(route for routes in of_packages for route in routes(state)),
        Route(path="/healthz", handler=healthz, access=Access.ANYONE),
        Route(path="/readyz", handler=readyz, access=Access.ANYONE),
        Route(path="/metrics", handler=metrics, access=Access.TOKEN),
        Route(path="/status", handler=status, access=Access.OWNER),
        Route(path="/", handler=report, access=Access.OWNER),
    ]


def _asked(request: HttpRequest) -> ReportRequest:
    """Return what a page is asked for. Raises BurstError in words for a browser."""
    try:
        return msgspec.convert(dict(request.query), ReportRequest)
    except msgspec.ValidationError as error:
        raise BurstError("since is no day", "such as 2026-11-01") from error


def _verdict(trouble: str) -> HttpResponse:
    return text_response(trouble or "ok", 503 if trouble else 200)
