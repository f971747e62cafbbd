# SPDX-License-Identifier: MIT
"""Run ensembles in the daemon's process (`[ensemble] in_daemon`, the default)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from burst.errors import BurstError
from burst.lead import ServiceRequest
from burst.runtime.daemon_package import Method, PackageHost
from burst.runtime.service_answers import Row
from burst.runtime.snapshot import Snapshot
from burst_ensemble.config.settings import ensemble_settings
from burst_ensemble.runtime.client import IN_DAEMON, DaemonClient, load_external
from burst_ensemble.runtime.service import EnsembleService

NAME = "ensemble"
"""The name of the entry point."""


class EnsemblePackage:
    """Adds ensembles to the daemon and its service.

    If ensembles run in a process of their own, requests about them are refused.
    """

    def __init__(self, host: PackageHost) -> None:
        self._host = host
        daemon = DaemonClient(
            call=host.call,
            lead=host.lead,
            settings=lambda: host.snapshot().settings,
            clock=host.clock,
        )
        self.service = EnsembleService(daemon, load_external(daemon))

    @cached_property
    def runs_here(self) -> bool:
        """Whether ensembles run in this process, by the settings at its start.

        The service answers even before `start`. A process of ensembles asks for this
        value, and ends if ensembles run here.
        """
        return ensemble_settings(self._host.snapshot().settings).in_daemon

    def methods(self) -> Mapping[str, Method]:
        """Return the methods of the service."""
        own = dict.fromkeys(self.service.methods, self._answer)
        return {**own, IN_DAEMON: lambda _, __: {"in_daemon": self.runs_here}}

    def start(self) -> None:
        """Begin to run the ensembles on record and those that start later."""
        if self.runs_here:
            self.service.ensembles.start()

    def close(self) -> None:
        """End after the present step, and wait up to two seconds for that."""
        self.service.ensembles.close()

    def check_here(self) -> None:
        """Raise BurstError if ensembles run in a process of their own."""
        if not self.runs_here:
            raise BurstError(
                "ensembles do not run in the daemon (ensemble.in_daemon = false)",
                "`burst ensemble run` runs them; commands beside it ask it",
            )

    def _answer(self, request: ServiceRequest, _: Snapshot) -> Row:
        self.check_here()
        return self.service.answer(request.method, request.payload)
