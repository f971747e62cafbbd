# SPDX-License-Identifier: MIT
"""Makes reports of agents, and members that have agents, for the tests."""

from __future__ import annotations

from typing import Any

from burst_ensemble.core.controller import new_record
from burst_ensemble.core.intents import JobRef
from burst_ensemble.core.job_rows import JobRow
from burst_ensemble.core.member_job import run_of
from burst_ensemble.core.record import Ensemble, EnsembleStart, MemberRecord
from burst_ensemble_agent.report import (
    REPORT_VERSION,
    AgentMember,
    AgentNodes,
    AgentReport,
)

from burst.model.lead import JobState
from tests.plugins.ensemble.core import ensembles
from tests.plugins.ensemble.core.ensembles import NOW, ensemble, jobs, member

__all__ = ["NOW", "agent_member", "report", "row"]


def row(
    number: int,
    state: JobState = JobState.RUN,
    *,
    run: str = run_of(NOW),
    group: str = "step",
    **changes: Any,
) -> JobRow:
    """A job in a report; one without a group is not the ensemble's."""
    return ensembles.row(number, state, group=group and f"{group}{run}", **changes)


def report(**changes: Any) -> AgentReport:
    """A report of an agent."""
    usual: dict[str, Any] = {
        "version": REPORT_VERSION,
        "instance": "flux-1",
        "began": 10.0,
        "number": 1,
        "nodes": AgentNodes(up=2, free=1, cores_up=8, cores_free=5),
    }
    return AgentReport(**{**usual, **changes})


def agent_member(
    *unconfirmed: JobRef, known: MemberRecord | None = None, **own: Any
) -> AgentMember:
    """Member m of ensemble e, with jobs `step` of its own."""
    its = member("m", mode="external", jobs=(jobs("step", nodes=2, **own),))
    spec = ensemble(its, jobs=(jobs("shared"),))
    record = new_record(spec, NOW).with_member("m", unconfirmed=unconfirmed)
    if known is not None:
        record = record.with_members({"m": known})
    return AgentMember(Ensemble(EnsembleStart(spec=spec, userid=100), record), "m")
