# SPDX-License-Identifier: MIT
"""flux-accounting itself at a lead: its database, its service, its priority plugin.

It is found where it is installed beside Flux (`flux account`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from burst.flux.accounting import PLUGIN
from tests.flux_instance import FLUX
from tests.support.waiting import HANG_S, wait_until


def _is_installed() -> bool:
    commands = Path(FLUX).resolve().parent.parent / "libexec/flux/cmd"
    return bool(FLUX) and (commands / "flux-account-service.py").exists()


INSTALLED = _is_installed()
MISSING = "no flux-accounting beside flux"


class RealAccounting:
    """What an administrator does with it; `flux` runs a command as he does."""

    def __init__(self, flux: Callable[..., str], database: Path) -> None:
        self.flux, self.database = flux, database

    def account(self, *words: str) -> str:
        """Run `flux account`."""
        return self.flux("account", "-p", str(self.database), *words)

    def add_bank(self, name: str) -> None:
        """Add a bank below the root bank."""
        self.account("add-bank", "--parent-bank=root", name, "1")

    def add_user(self, name: str, userid: int, bank: str, *limits: str) -> None:
        """Add an association; `limits` are options such as `--max-nodes=4`."""
        who = f"--username={name}", f"--userid={userid}", f"--bank={bank}"
        self.account("add-user", *who, *limits)

    def edit_user(self, name: str, bank: str, *limits: str) -> None:
        """Change limits of an association, in the plugin as well."""
        self.account("edit-user", name, f"--bank={bank}", *limits)
        self.update()

    def update(self) -> None:
        """Send what is in the database to the plugin."""
        self.flux("account-priority-update", "-p", str(self.database))

    def association(self, userid: int, bank: str) -> dict[str, Any]:
        """Return what the plugin has of one."""
        answer = json.loads(self.flux("jobtap", "query", PLUGIN))
        for user in answer["mf_priority_map"]:
            for each in user["banks"]:
                if (user["userid"], each["bank_name"]) == (userid, bank):
                    return dict(each)
        raise AssertionError(f"no association of {userid} and {bank}: {answer}")

    def usage(self) -> str:
        """Take finished jobs into the database; return its report, in node-seconds."""
        self.flux("account-fetch-job-records", "-p", str(self.database))
        return self.account("view-usage-report")


@contextmanager
def real_accounting(
    flux: Callable[..., str],
    start: Callable[..., subprocess.Popen[bytes]],
    directory: Path,
    given: Path | None = None,
) -> Iterator[RealAccounting]:
    """Run the service on a new database with the root bank, and load the plugin.

    Or on a copy of the database that is `given`, which costs no command.

    `flux` runs a flux command as the instance owner and returns what it printed;
    `start` starts one whose output goes to the file `log`, and returns its process.
    """
    database, log = directory / "accounting.db", directory / "accounting.log"
    its = RealAccounting(flux, database)
    if given:
        shutil.copy(given, database)
    else:
        its.account("create-db")
    with log.open("wb") as file:
        service = start("account-service", "-p", str(database), log=file)
    try:
        wait_until(lambda: "registered" in log.read_text(), log.read_text)
        if not given:
            its.account("add-bank", "root", "1")
        flux("jobtap", "load", PLUGIN)
        yield its
    finally:
        service.terminate()
        service.wait(HANG_S)
