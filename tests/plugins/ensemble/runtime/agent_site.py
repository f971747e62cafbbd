# SPDX-License-Identifier: MIT
"""An ensemble with a member that an agent tells of, and the agent's part by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from burst_ensemble.core.agent_report import AgentAnswer, AgentReport, TakenReport
from burst_ensemble.core.report import ensemble_row

from tests.plugins.ensemble.core.agents import report
from tests.plugins.ensemble.runtime.ensemble_site import MEMBER, EnsembleSite, Scripted

OUTSIDE: dict[str, Any] = {
    "name": "m",
    "provider": "",
    "mode": "external",
    "min": 0,
    "size": 0,
    "max": 1000,
    "jobs": [{"name": "step", "command": "true", "count": 0}],
}


class Outside:
    """A site with a member that an agent tells of, and the agent's part."""

    def __init__(self, **more: Any) -> None:
        self.site = EnsembleSite(ensemble={"agent": "60s"})
        members = [OUTSIDE, {**MEMBER, "name": "joined"}]
        self.says: Scripted = self.site.up(members=members, **more)["m"]
        self.number = 0

    def send(self, about: str = "sweep.m", **changes: Any) -> AgentAnswer:
        self.number += 1
        usual: dict[str, Any] = {"ensemble": "sweep", "number": self.number}
        made: AgentReport = report(**{**usual, **changes})
        body = msgspec.json.encode(made)
        settings = self.site.sim.engine.snapshot.settings
        return self.site.reports.take(about, body, self.site.store.read(), settings)

    def current(self) -> Mapping[str, TakenReport]:
        """The last reports."""
        return self.site.reports.current(self.site.store.read())

    def row(self, **changes: Any) -> Any:
        """The member as it is shown, with these changes of what the daemon tells."""
        seen = self.site.seen
        nodes = msgspec.structs.replace(seen.nodes, **changes)
        made = ensemble_row(seen._replace(nodes=nodes), "sweep", self.current())
        return made["members"]["m"]
