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
BATCH = {"jobspec": {"defaults": {"system": {"queue": "batch"}}}}


def ingest(**burst: Any) -> dict[str, Any]:
    """Return the table that has the frobnicator, with this table of burst's."""
    return {"frobnicator": {"plugins": PLUGINS, "burst": burst}}


def _tables(**by_mode: Any) -> dict[str, dict[str, Any]]:
    tables = {mode: {"ingest": table} for mode, table in by_mode.items()}
    tables["queue"].update(queues=QUEUES, policy=BATCH)
    return tables


TABLES = _tables(hold=ingest(), scheduler=ingest(), queue=ingest(ready="burst-ready"))
"""Tables of the lead's configuration, by mode."""
CONFINING = _tables(
    hold=ingest(mode="hold"),
    queue=ingest(mode="queue", queue="burst", ready="burst-ready"),
    scheduler=ingest(mode="scheduler"),
)
"""The same of leads with guests, whose jobs the frobnicator confines."""
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
