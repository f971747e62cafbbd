# SPDX-License-Identifier: MIT
"""A policy that asks for what a test says."""

from __future__ import annotations

from collections.abc import Mapping

from burst.replay.policies import Asks
from burst.replay.trace import TraceJob


class Rule:
    """Asks the same of all jobs, but for those of some numbers of cores."""

    name = "rule"
    by_hours = False

    def __init__(
        self,
        asks: Asks,
        by_cores: Mapping[int, Asks] | None = None,
        *,
        forecasts: bool = True,
    ) -> None:
        self._asks, self._by_cores, self.forecasts = asks, by_cores or {}, forecasts

    def asks(self, job: TraceJob, now: float) -> Asks:
        return self._by_cores.get(job.cores, self._asks)
