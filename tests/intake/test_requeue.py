# SPDX-License-Identifier: MIT
"""Jobs whose alloc requests go back to the job manager: no lease or hold is left.

Flux 0.88 requeues requests, not jobs: what runs runs on. What a restart of the lead
leaves is in tests/site and tests/flux/test_crash.py; in mode hold Flux has no request
of a job that waits.
"""

from __future__ import annotations

import pytest

from tests.cli.cli_harness import CliHarness
from tests.flux_instance import FLUX
from tests.intake.modes import Serve, leave_nothing
from tests.intake.user_cli import UserCli
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux

# Starts the broker once the gate is open.
_FLUX_AT_GATE = """#!/bin/sh
while [ -e {gate} ]; do sleep 0.02; done
exec {flux} "$@"
"""


def send_back(user: UserCli, mode: str) -> None:
    """Stop all queues and start all, then load the scheduler again."""
    user.do("queue", "stop", "-a")
    user.do("queue", "start", "-a")
    if mode == "scheduler":
        user.reload_scheduler()
        return
    asked = {"name": "burst"}
    wait_until(
        lambda: not user.instance.rpc("job-manager.queue-status", asked)["start"],
        "queue burst to be stopped again",
    )
    user.instance.reload_scheduler()


@pytest.mark.parametrize("mode", ["queue", "scheduler"])
def test_requests_that_go_back_leave_nothing_behind(
    user: UserCli, cli: CliHarness, serve: Serve, mode: str
) -> None:
    gate, program = cli.directory / "gate", cli.directory / "flux"
    program.write_text(_FLUX_AT_GATE.format(gate=gate, flux=FLUX))
    program.chmod(0o700)
    local = {**cli.options, "type": "local", "flux": str(program)}
    with serve(mode, providers={"local": local}, deadlines={"join": "1h"}):
        running = user.submit("--burst", "-N4", "sleep", "inf")
        user.event(running, "start")
        gate.touch()
        coming = user.submit("--burst", "-N4", "true")
        wait_until(lambda: len(cli.status()["bursts"]) == 2, "its burst")
        waiting = user.submit("--burst", "-N4", "true")
        wait_until(lambda: cli.status()["pending"] == 2, "all to be known")
        send_back(user, mode)
        gate.unlink()
        assert user.state(running) == "RUN"
        user.do("cancel", running)
        user.ended(running, coming, waiting)
        assert user.do("jobs", "-no{result}", coming) == "COMPLETED"
        assert user.do("jobs", "-no{result}", waiting) == "COMPLETED"
        leave_nothing(cli)
