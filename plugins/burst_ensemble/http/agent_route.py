# SPDX-License-Identifier: MIT
"""`POST /ensembles-agent/ENSEMBLE.MEMBER`: the agents of members report, and are told
what to do (`burst_ensemble.core.agent_report`).
"""

from __future__ import annotations

from burst.errors import BurstError
from burst.http.routes import (
    Access,
    HttpRequest,
    HttpResponse,
    Route,
    json_response,
    text_response,
)
from burst.runtime.daemon_state import DaemonState, Served
from burst_ensemble.core.agent_report import REPORT_BYTES, ReportRefused
from burst_ensemble.runtime.agent_reports import AgentReports
from burst_ensemble.runtime.package import NAME, EnsemblePackage

AGENT_PATH = "/ensembles-agent/"


def reports_of(served: Served) -> AgentReports:
    """Return what the agents of a lead's ensembles have reported."""
    package = served.packages[NAME]
    assert isinstance(package, EnsemblePackage)
    return package.reports


def agent_route(state: DaemonState) -> Route:
    """Return the route of a daemon in that state."""

    def take(request: HttpRequest) -> HttpResponse:
        served = state.served
        if served is None:
            return text_response(state.why_not_ready(), 503)
        reports = reports_of(served)
        try:
            answer = reports.take(request.name, request.body, served.snapshot())
        except ReportRefused as error:
            return text_response(str(error), error.status)
        except BurstError as error:
            return text_response(str(error), 409)
        return json_response(answer)

    return Route(
        path=f"{AGENT_PATH}{{name}}",
        handler=take,
        access=Access.OWNER,
        method="POST",
        body_limit=REPORT_BYTES,
    )
