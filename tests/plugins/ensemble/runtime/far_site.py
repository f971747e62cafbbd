# SPDX-License-Identifier: MIT
"""An ensemble with an isolated member, on an engine that is run by hand."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from burst_ensemble.algorithm import MemberDecision
from burst_ensemble.runtime.read_file import providers_of_daemon

from burst.model.burst import Burst
from burst.model.jobid import JobId
from burst.model.lead import JobView
from burst.model.request import BurstPreferences, ResourceRequest
from burst.testing import FakeProvider
from tests.core.isolation import BOTH
from tests.plugins.ensemble.runtime.ensemble_site import (
    MEMBER,
    USER,
    WINDOWS,
    EnsembleSite,
    Scripted,
    nodes_of,
)
from tests.sim import Sim

FAR: dict[str, Any] = {
    **MEMBER,
    "mode": "isolated",
    "jobs": [
        {"name": "md", "command": "run --fast", "count": 0},
        {"name": "wide", "command": "run --wide", "count": 0, "nodes": 2},
    ],
}


class Endless(FakeProvider):
    """Programs go on until the test says so."""

    ends_with = None


class FarSim(Sim):
    """A tick takes `pace` seconds."""

    provider_type = Endless
    pace = 1.0

    def tick(self, ticks: int = 1, seconds: float = 0.0) -> None:
        super().tick(ticks, seconds or self.pace)


class Far(EnsembleSite):
    """A daemon with an ensemble whose member `a` is isolated."""

    def __init__(self, *others: dict[str, Any], **tables: Any) -> None:
        of_ensemble = {**WINDOWS, **tables.pop("of_ensemble", {})}
        member = {**FAR, **tables.pop("of_member", {})}
        super().__init__(FarSim, modes=BOTH, **tables)
        self.says: Scripted = self.up(members=[member, *others], **of_ensemble)["a"]

    def pace(self, seconds: float) -> None:
        """Have each tick take so long."""
        assert isinstance(self.sim, FarSim)
        self.sim.pace = seconds

    def wants(self, nodes: int, *jobs: str) -> None:
        """Have the algorithm say a size and jobs, once."""
        self.says.says = MemberDecision(nodes=nodes, submit=jobs)
        self.step()
        self.says.says = MemberDecision(nodes=nodes)

    def end_programs(self, status: int = 0) -> None:
        """Have what runs elsewhere end."""
        self.sim.provider.ends_with = status
        self.sim.tick(2)
        self.sim.provider.ends_with = None

    def abilities(self) -> Collection[str]:
        """What the daemon knows of its provider."""
        return providers_of_daemon(nodes_of(self.sim)).abilities("local")

    @property
    def bursts(self) -> list[Burst]:
        return [b for b in self.sim.engine.snapshot.records.live if b.lease.tag]

    @property
    def row(self) -> Any:
        (row,) = self.rows()
        return row["members"]["a"]

    def job(self, number: int) -> JobView:
        found: JobView = self.sim.lead.jobs[sorted(self.sim.lead.jobs)[number]]
        return found

    def users(self, request: ResourceRequest, **preferences: Any) -> JobId:
        """A job that a user submits for the member."""
        wanted = BurstPreferences(tag="sweep/a", urgency=16, **preferences)
        number: JobId = self.sim.lead.submit(
            request, userid=USER, urgency=0, held_at_submit=True, preferences=wanted
        )
        return number
