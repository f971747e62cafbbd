# SPDX-License-Identifier: MIT
"""The page of a report over HTTP, at `/`, by the last tick of the daemon."""

from __future__ import annotations

import msgspec

from burst.decode import from_plain
from burst.errors import BurstError, StoreError
from burst.http.routes import (
    HTML,
    Access,
    HttpRequest,
    HttpResponse,
    Route,
    text_response,
)
from burst.runtime import service_answers
from burst.runtime.daemon_state import DaemonState
from burst.runtime.service_requests import ReportRequest
from burst_report import NEEDS, can_render

# How often a browser loads the page again, in seconds.
_REFRESH_S = 30


def report_routes(state: DaemonState) -> list[Route]:
    """Return the route for the page of a daemon."""

    def report(request: HttpRequest) -> HttpResponse:
        if not can_render():
            return text_response("; ".join(NEEDS), 501)
        served = state.served
        if served is None:
            return text_response(state.why_not_ready(), 503)
        from burst_report.page import render_report  # noqa: PLC0415 - an extra

        try:
            row = service_answers.report_of(served.snapshot(), _asked(request))
        except StoreError as error:
            return text_response(f"{error}", 503)
        except BurstError as error:
            return text_response(f"{error}", 400)
        page = render_report(row, refresh=_REFRESH_S)
        return HttpResponse(body=page.encode(), content_type=HTML)

    return [Route(path="/", handler=report, access=Access.OWNER)]


def _asked(request: HttpRequest) -> ReportRequest:
    """Return the options in the query. Raises BurstError in words for a browser."""
    try:
        return from_plain(dict(request.query), ReportRequest)
    except msgspec.ValidationError as error:
        raise BurstError("since is not a day", "such as 2026-11-01") from error
