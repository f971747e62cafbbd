# SPDX-License-Identifier: MIT
"""Leads and daemons that keep users apart, in each intake mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.intake.user_cli import FILES, SCHEDULER
from tests.multiuser.lab import OWNER
from tests.multiuser.system_instance import DaemonRun, SystemInstance

BY_USERS = {"FLUX_CLI_PLUGINPATH_OVERRIDE": str(FILES)}
"""In the environment of users, for `flux submit --burst`."""


def load_scheduler(system: SystemInstance) -> None:
    """Have the lead use burst's scheduler, if it does not yet."""
    if "sched-simple" in system.flux(OWNER, "module", "list"):
        system.flux(OWNER, "module", "remove", "sched-simple")
        system.flux(OWNER, "module", "load", SCHEDULER)


@contextmanager
def serve(system: SystemInstance, mode: str, **tables: Any) -> Iterator[DaemonRun]:
    """Have a daemon serve that keeps users apart, in this mode."""
    plan = {"share_users": False}
    system.write_settings(intake={"mode": mode}, plan=plan, **tables)
    if mode == "scheduler":
        load_scheduler(system)
    if mode == "queue":
        system.flux(OWNER, "queue", "start", "-qbatch")
    with system.daemon() as daemon:
        yield daemon
