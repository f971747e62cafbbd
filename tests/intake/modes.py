# SPDX-License-Identifier: MIT
"""The ways in which jobs come to the daemon: what each needs of a lead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from tests.cli.cli_harness import CliHarness, DaemonProcess
from tests.intake.user_cli import FROBNICATOR, UserCli
from tests.support.waiting import wait_until

PLUGINS = ["defaults", "constraints", FROBNICATOR]
QUEUES = {
    "batch": {"requires": ["local"]},
    "burst": {"requires": ["burst"]},
    "burst-ready": {"requires": ["burst"]},
}
TABLES: dict[str, dict[str, Any]] = {
    "hold": {"ingest": {"frobnicator": {"plugins": PLUGINS}}},
    "scheduler": {"ingest": {"frobnicator": {"plugins": PLUGINS}}},
    "queue": {
        "ingest": {
            "frobnicator": {"plugins": PLUGINS, "burst": {"ready": "burst-ready"}}
        },
        "queues": QUEUES,
        "policy": {"jobspec": {"defaults": {"system": {"queue": "batch"}}}},
    },
}


MODES = pytest.mark.parametrize("mode", list(TABLES))


Serve = Callable[..., AbstractContextManager[DaemonProcess]]


def make_serve(cli: CliHarness, user: UserCli) -> Serve:
    """Return what has a daemon serve in one of the modes, with what that needs."""

    @contextmanager
    def start(mode: str, **tables: Any) -> Iterator[DaemonProcess]:
        intake = {"mode": mode, "local_wait": "1h", **tables.pop("intake", {})}
        cli.write(intake=intake, **tables)
        if mode == "queue":
            user.do("queue", "start", "-qbatch")
        with cli.daemon() as daemon:
            yield daemon

    return start


def leave_nothing(cli: CliHarness) -> None:
    """Wait until no lease and no hold is left."""

    def is_over() -> bool:
        status = cli.status()
        idle = all(not burst["jobs"] for burst in status["bursts"])
        return idle and not status["held"] and not status["pending"]

    wait_until(is_over, lambda: f"no job to be counted on: {cli.status()}")
    for row in cli.status()["bursts"]:
        if row["state"] != "inactive":
            cli.run("down", row["id"])
    wait_until(
        lambda: all(b["state"] == "inactive" for b in cli.status()["bursts"]),
        "all bursts to be gone",
    )
    wait_until(
        lambda: all(slot["state"] == "free" for slot in cli.status()["slots"]),
        "all rank slots to be free",
    )
