# SPDX-License-Identifier: MIT
"""A daemon with an ensemble, as its routes see it, run by hand."""

from __future__ import annotations

from typing import Any

from burst_ensemble.runtime.package import NAME, EnsemblePackage

from burst.lead import ServiceRequest
from burst.runtime.daemon_state import DaemonState, Served
from burst.runtime.tally import Tally
from tests.plugins.ensemble.runtime.ensemble_site import EnsembleSite, host_of


def no_answer(_: ServiceRequest) -> dict[str, Any]:
    raise AssertionError("the service is not asked")


def served_by(site: EnsembleSite) -> DaemonState:
    """The state of the daemon of a site."""
    state, sim = DaemonState(Tally()), site.sim
    package = EnsemblePackage(host_of(sim))
    package.service = site.service
    state.serve(Served(lambda: sim.engine.snapshot, {}, no_answer, {NAME: package}))
    return state
