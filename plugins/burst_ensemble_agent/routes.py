# SPDX-License-Identifier: MIT
"""The HTTP route of agents: `POST /ensembles-agent/ENSEMBLE.MEMBER` has a report about
a member; the answer is what the agent has to do (`burst_ensemble_agent.report`).
"""

from __future__ import annotations

from burst_ensemble.http.routes import answer_by
from burst_ensemble.runtime.service import EnsembleService

from burst.http.routes import Access, HttpRequest, Route
from burst.runtime.daemon_state import DaemonState
from burst_ensemble_agent.report import AGENT_PATH, REPORT_BYTES, AgentAnswer
from burst_ensemble_agent.reports import AgentReports


def agent_routes(state: DaemonState) -> list[Route]:
    """Return the route for the agents of a daemon."""
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
