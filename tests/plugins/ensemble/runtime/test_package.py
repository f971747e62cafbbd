# SPDX-License-Identifier: MIT
"""What the daemon's process says of where ensembles run."""

from __future__ import annotations

from typing import Any

import pytest
from burst_ensemble.runtime.client import IN_DAEMON
from burst_ensemble.runtime.package import EnsemblePackage

from burst.lead import ServiceRequest
from tests.plugins.ensemble.runtime.ensemble_site import USER, host_of
from tests.sim import Sim


@pytest.mark.parametrize("in_daemon", [True, False])
def test_where_they_run_is_told_before_they_are_started(in_daemon: bool) -> None:
    # The daemon serves a moment before: a process of ensembles may ask just then, and
    # ends where it is told that the daemon runs them.
    sim = Sim(ensemble={"in_daemon": in_daemon})
    package = EnsemblePackage(host_of(sim))
    asked: Any = ServiceRequest(IN_DAEMON, {}, USER, owner=True)
    told = package.methods()[IN_DAEMON](asked, sim.engine.snapshot)
    assert told == {"in_daemon": in_daemon}
