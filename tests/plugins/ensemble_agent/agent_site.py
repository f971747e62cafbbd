# SPDX-License-Identifier: MIT
"""An ensemble with a member that an agent tells of, and the agent's part by hand."""

from __future__ import annotations

from typing import Any

import msgspec
from burst_ensemble.core.record import Member
from burst_ensemble.core.report import ensemble_row
from burst_ensemble_agent.report import AgentAnswer, AgentReport
from burst_ensemble_agent.reports import AgentReports

from tests.plugins.ensemble.runtime.ensemble_site import (
    MEMBER,
    EnsembleSite,
    Scripted,
    nodes_of,
)
from tests.plugins.ensemble_agent.agents import report

OUTSIDE: dict[str, Any] = {
    "name": "m",
    "provider": "",
    "mode": "external",
    "min": 0,
    "size": 0,
    "max": 1000,
    "jobs": [{"name": "step", "command": "true", "count": 0}],
}


class OutsideSite(EnsembleSite):
    """A daemon to which agents report."""

    make_external = AgentReports


class Outside:
    """A site with a member that an agent tells of, and the agent's part."""

    def __init__(self, **more: Any) -> None:
        self.site = OutsideSite()
        members = [OUTSIDE, {**MEMBER, "name": "joined"}]
        self.says: Scripted = self.site.up(members=members, **more)["m"]
        self.number = 0

    def send(self, about: str = "sweep.m", **changes: Any) -> AgentAnswer:
        self.number += 1
        made: AgentReport = report(**{"number": self.number, **changes})
        body = msgspec.json.encode(made)
        return self.reports.take(about, body, self.site.store.read())

    @property
    def reports(self) -> AgentReports:
        assert isinstance(self.site.external, AgentReports)
        return self.site.external

    def row(self, **changes: Any) -> Any:
        """The member as it is shown, with these changes of what the daemon tells."""
        one = self.site.store.read()["sweep"]
        nodes = msgspec.structs.replace(nodes_of(self.site.sim), **changes)
        made = ensemble_row(one, nodes, {"m": self.reports.show(Member(one, "m"))})
        return made["members"]["m"]
