# SPDX-License-Identifier: MIT
"""flux-accounting as a site has it: its unit, its database, and guests' banks."""

from __future__ import annotations

from tests.multiuser.lab import GUESTS, OWNER, UIDS, flux_etc
from tests.site.box import Box
from tests.support.waiting import wait_until

PLUGIN = "mf_priority.so"
UNIT = "flux-accounting.service"


def create(box: Box) -> None:
    """Make the database, before Flux starts."""
    state = flux_etc().parents[1] / "var/lib/flux"
    box.run("root", "install", "-d", "-o", OWNER, "-g", OWNER, "-m", "700", str(state))
    box.run(OWNER, "flux", "account", "create-db")


def start(box: Box) -> None:
    """Start the service with Flux, now and later, and give each guest a bank."""
    box.run("root", "systemctl", "enable", "--now", UNIT)
    account = "flux account"
    wait_until(lambda: "registered" in box.journal(UNIT), "the service", pause=0.3)
    lines = ["set -e", f"{account} add-bank root 1"]
    for user in (OWNER, *GUESTS):
        lines += [
            f"{account} add-bank --parent-bank=root {user}s 1",
            f"{account} add-user --username={user} --userid={UIDS[user]}"
            f" --bank={user}s",
        ]
    lines.append("flux account-priority-update")
    box.run(OWNER, "sh", "-c", "\n".join(lines))
