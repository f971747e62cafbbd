# SPDX-License-Identifier: MIT
"""Agents over HTTP: `POST /ensembles-agent/ENSEMBLE.MEMBER` reports about a member, and
is answered what the agent is to do (`burst_ensemble_agent.report`).
"""

from __future__ import annotations

from burst_ensemble.http.routes import answer_by
from burst_ensemble.runtime.service import EnsembleService

from burst.http.routes import Access, HttpRequest, Route
from burst.runtime.daemon_state import DaemonState
from burst_ensemble_agent.report import AGENT_PATH, REPORT_BYTES, AgentAnswer
from burst_ensemble_agent.reports import AgentReports


def agent_routes(state: DaemonState) -> list[Route]:
    """Return the route of agents of a daemon in that state."""
    return [
        Route(
            path=f"{AGENT_PATH}{{name}}",
            handler=answer_by(state, _take, 409),
            access=Access.OWNER,
            method="POST",
            body_limit=REPORT_BYTES,
        )
    ]


def _take(service: EnsembleService, request: HttpRequest) -> AgentAnswer:
    reports = service.external
    assert isinstance(reports, AgentReports)
    return reports.take(request.name, request.body, service.store.read())
