# SPDX-License-Identifier: MIT
"""Ensembles in the daemon's process."""

from __future__ import annotations

from collections.abc import Mapping

from burst.core.records import Records
from burst.lead import JobSubmitter
from burst.model.burst import BurstId
from burst.runtime.daemon_package import CarryOut, Method, PackageHost
from burst_ensemble.core.over import unsettled_bursts
from burst_ensemble.runtime.agent_reports import AgentReports
from burst_ensemble.runtime.algorithm_registry import load_algorithms
from burst_ensemble.runtime.ensembles import Ensembles
from burst_ensemble.runtime.service import EnsembleApi

NAME = "ensemble"
"""Of the entry point."""


class EnsemblePackage:
    """Runs ensembles beside the ticks of a daemon, and answers requests about them.

    At a lead to which no jobs can be submitted none runs.
    """

    def __init__(self, host: PackageHost) -> None:
        self.reports = AgentReports(host.clock)
        self._ensembles = (
            Ensembles(host.engine, host.lead, load_algorithms, host.wake, self.reports)
            if isinstance(host.lead, JobSubmitter)
            else None
        )

    def methods(self, carry_out: CarryOut) -> Mapping[str, Method]:
        """Return the methods of the service."""
        return EnsembleApi(carry_out, self.reports).methods

    def start(self) -> None:
        """Begin to run the ensembles on record, and those that are started later."""
        if self._ensembles is not None:
            self._ensembles.start()

    def needed(self, records: Records) -> frozenset[BurstId]:
        """Return the bursts whose cost is yet to be counted."""
        return unsettled_bursts(records)

    def close(self) -> None:
        """End once the step that is under way is done; wait for that for a moment."""
        if self._ensembles is not None:
            self._ensembles.close()
