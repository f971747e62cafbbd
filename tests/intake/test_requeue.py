# SPDX-License-Identifier: MIT
"""Jobs whose alloc requests go back to the job manager: no lease or hold is left.

Flux 0.88 requeues requests, not jobs: what runs either runs on or has ended.
"""

from __future__ import annotations

from contextlib import ExitStack

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


class Requeue:
    """Jobs of each kind at one instance, and what sends their requests back."""

    def __init__(self, user: UserCli, cli: CliHarness, serve: Serve, mode: str) -> None:
        self._user = user
        self._cli = cli
        self._serve = serve
        self._mode = mode
        self._stack = ExitStack()
        self.gate = cli.directory / "gate"
        self._program = cli.directory / "flux"
        text = _FLUX_AT_GATE.format(gate=self.gate, flux=FLUX)
        self._program.write_text(text)
        self._program.chmod(0o700)

    def __enter__(self) -> Requeue:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self) -> None:
        """Have a daemon serve."""
        local = {
            **self._cli.options,
            "type": "local",
            "flux": str(self._program),
        }
        times = {"rejoin": "1s", "join": "1h"}
        tables = {"providers": {"local": local}, "deadlines": times}
        self._stack.enter_context(self._serve(self._mode, **tables))

    def send_back(self) -> None:
        """Stop all queues and start all, then load the scheduler again."""
        self._user.do("queue", "stop", "-a")
        self._user.do("queue", "start", "-a")
        if self._mode == "queue":
            wait_until(self._waits_again, "queue burst to be stopped again")
        if self._mode == "scheduler":
            self._user.reload_scheduler()
        else:
            self._user.instance.reload_scheduler()

    def _waits_again(self) -> bool:
        asked = {"name": "burst"}
        status = self._user.instance.rpc("job-manager.queue-status", asked)
        return not status["start"]

    def restart(self) -> None:
        """Restart the lead, and the daemon with it."""
        self._user.do("queue", "stop", "-a")
        self._stack.close()
        self._user.instance.stop()
        self._user.instance.start()
        if self._mode == "scheduler":
            self._user.use_scheduler()
        self.start()
        if self._mode != "queue":
            self._user.do("queue", "start")


@pytest.mark.parametrize(
    ("mode", "how"),
    [
        ("hold", "send_back"),
        ("queue", "send_back"),
        ("queue", "restart"),
        ("scheduler", "send_back"),
        ("scheduler", "restart"),
    ],
)
def test_requests_that_go_back_leave_nothing_behind(
    user: UserCli, cli: CliHarness, serve: Serve, mode: str, how: str
) -> None:
    with Requeue(user, cli, serve, mode) as place:
        running = user.submit("--burst", "-N4", "sleep", "inf")
        user.event(running, "start")
        place.gate.touch()
        coming = user.submit("--burst", "-N4", "true")
        wait_until(lambda: len(cli.status()["bursts"]) == 2, "its burst")
        waiting = user.submit("--burst", "-N4", "true")
        wait_until(lambda: cli.status()["pending"] == 2, "all to be known")
        getattr(place, how)()
        place.gate.unlink()
        if how == "restart":
            user.ended(running)
            why = user.do("jobs", "-no{exception.type}", running)
            assert why in {"cancel", "exec"}, "Flux ends it, and does not requeue it"
        else:
            assert user.state(running) == "RUN"
            user.do("cancel", running)
        user.ended(running, coming, waiting)
        assert user.do("jobs", "-no{result}", coming) == "COMPLETED"
        assert user.do("jobs", "-no{result}", waiting) == "COMPLETED"
        leave_nothing(cli)
