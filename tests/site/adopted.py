# SPDX-License-Identifier: MIT
"""Ours added to a site's Flux, as docs/adopt.md has it, and what is seen of bursts."""

from __future__ import annotations

import json
import re
import subprocess

import tomli_w

from tests.docs.doc_pages import TOP, blocks
from tests.multiuser.lab import OWNER
from tests.site.site import Site
from tests.support.waiting import HANG_S, wait_until

PAGE = TOP / "docs/adopt.md"
SETTINGS = "/etc/flux/burst.toml"
ADOPTED = "runuser -u flux -- burst doctor"
"""The first line of the page that is typed on a site that can burst."""
LENT = 4
"""Of the page: how many nodes may be lent."""

_PLACES = "/etc/flux /etc/xdg/flux /etc/systemd/system"
# Of each file: its path, mode, owner and content.
_LIST = f"""\
find -L {_PLACES} -type f -printf '%p %m %u %g ' -exec sha256sum {{}} \\; | sort
find {_PLACES} -type d | sort
"""
_LOOK_S = 0.3
_OF_PAGE = "test_journeys.py"
_MODE = "queue"
# Nothing waits longer than a test would.
_QUICK = {
    "daemon": {"cadence": "0.5s"},
    "deadlines": {"idle": "3s", "join": "1h"},
}


def lines_of_page(*, named_queues: bool = True) -> list[str]:
    """Return what the page has root and guests type, in its order.

    `named_queues`: whether the site has some, without which some of it is otherwise.
    """
    others = "has no named queues" if named_queues else "has named queues"
    found = [
        block
        for block in blocks(PAGE)
        if _OF_PAGE in block.said and others not in block.said
    ]
    return [line for block in found for line in block.commands.splitlines()]


def files_of_page() -> list[str]:
    """Return which files of ours the page has other hosts be given."""
    text = PAGE.read_text().split("\nGive the other hosts of the instance", 1)[1]
    told, _, _ = text.partition("\n\n")
    return re.findall(r"`(/etc/[^`]+)`", told)


def type_line(site: Site, line: str) -> str:
    """Type a line of the page as root on the first host; return what it printed."""
    if line == "systemctl restart flux":
        # On all hosts, with those files of the first.
        site.for_all_hosts += set(files_of_page()).difference(site.for_all_hosts)
        site.restart()
        return ""
    return site.root("sh", "-ec", f"umask 077\n{line}")


def files(site: Site, host: int = 0) -> list[str]:
    """Return what a host has of files that adoption may touch, a line each."""
    return site.boxes[host].run("root", "sh", "-c", _LIST).splitlines()


class Adopted:
    """A site that can burst."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.waited: list[str] = []
        """Bob's ordinary jobs that waited over the restart which adopted it."""
        self.files = files(site), files(site, host=-1)
        """Those of the first and of the last host, from before it was adopted."""
        self._settings = ""

    def adopt(self, mode: str) -> None:
        """Type what the page says, up to the doctor, for this intake mode."""
        lines = lines_of_page()
        for line in lines[: lines.index(ADOPTED)]:
            said = type_line(
                self.site, line.replace(f"--mode {_MODE}", f"--mode {mode}")
            )
            if line.startswith("burst setup"):
                assert "The other hosts of the instance, and those where" in said
            if "flux queue stop" in line:
                first = self.site.flux("bob", "submit", "-N1", "true")
                after = f"--dependency=afterok:{first}"
                second = self.site.flux("bob", "submit", after, "-N1", "true")
                self.waited = [first, second]
        self._settings = self.site.head.read(SETTINGS).decode()
        self._configure(f"{self._settings}\n{tomli_w.dumps(_QUICK)}")
        self.wait_until_served()

    def take_back_settings(self) -> None:
        """Have the settings be as the page has them."""
        self._configure(self._settings)

    def _configure(self, text: str) -> None:
        self.site.head.write(SETTINGS, text)
        self.site.root("systemctl", "reload", "burst")

    def wait_until_served(self) -> None:
        """Return once a daemon answers and has asked its providers."""
        wait_until(self._is_served, self.site.log, pause=_LOOK_S)

    def _is_served(self) -> bool:
        try:
            providers = self.site.rpc("burst.status", {})["providers"]
        except OSError:
            return False
        return bool(providers) and all(each.get("offers") for each in providers)

    def pid(self) -> int:
        """Return the process of the daemon in its box, 0 if there is none."""
        show = ("systemctl", "show", "-P", "MainPID", "burst")
        return int(self.site.root(*show))

    def doctor(self) -> str:
        """Return what the doctor finds wrong or has to note."""
        found = self.site.head.try_run(OWNER, "burst", "doctor", "--json").stdout
        findings = json.loads(found)["findings"]
        told = (f"{each['level']} {each['what']}" for each in findings)
        return "\n".join(line for line in told if not line.startswith("ok"))

    def submit(self, user: str, *words: str) -> str:
        """Submit a job that may burst, and return its id."""
        return self.site.flux(user, "submit", "--burst", "-t", "5m", *words)

    def wait_for_end(self, user: str, job: str) -> subprocess.CompletedProcess[str]:
        """Wait until a user's job has ended; return its output and how it ended."""
        self.wait_for_event(user, job, "clean")
        return self.site.try_flux(user, "job", "attach", "--read-only", job)

    def wait_for_event(self, user: str, job: str, event: str) -> None:
        """Wait until a user's job has had an event; fails with what is known of it."""
        asked = ("job", "wait-event", f"--timeout={HANG_S:g}", job, event)
        done = self.site.head.try_run(user, "flux", *asked, limit=HANG_S)
        assert done.returncode == 0, self.tell(user, job)

    def explain(self, user: str, job: str) -> str:
        """Return why a user's job waits."""
        return self.site.head.try_run(user, "burst", "explain", job).stdout

    def tell(self, user: str, job: str) -> str:
        """Return all that is known of a job that does not go on."""
        head = self.site.head
        said = [
            head.try_run(user, "burst", "explain", job),
            head.try_run(OWNER, "burst", "status", "-a"),
            head.try_run(user, "flux", "job", "eventlog", job),
            head.try_run(OWNER, "flux", "resource", "list"),
        ]
        return "\n\n".join([*(f"{e.stdout}{e.stderr}" for e in said), self.site.log()])

    def states(self) -> dict[str, str]:
        """Return the state of each burst."""
        return {row["id"]: row["state"] for row in self.site.bursts()}

    def online_burst(self) -> str:
        """Wait until one burst is online, which may be later than its job's start."""
        found: list[str] = []

        def is_there() -> bool:
            found[:] = [name for name, at in self.states().items() if at == "online"]
            return len(found) == 1

        wait_until(is_there, lambda: self.tell(OWNER, "none"), pause=_LOOK_S)
        return found[0]

    def wait_until_reaped(self) -> None:
        """Wait until no burst lives, and nothing of one is left on the host."""
        wait_until(
            lambda: not set(self.states().values()) - {"inactive"},
            lambda: self.tell(OWNER, "none"),
            pause=_LOOK_S,
        )
        assert self.followers() == []

    def followers(self) -> list[int]:
        """Return the processes of followers on the first host, as it numbers them.

        The first has not been forked by another a moment ago.
        """
        found = self.site.head.try_run("root", "pgrep", "-f", "Shostname=burst-0-")
        return [int(word) for word in found.stdout.split()]

    def empty(self) -> None:
        """End all jobs and bursts."""
        self.site.flux(OWNER, "cancel", "--all", "--user=all", "--quiet")
        for name, state in self.states().items():
            if state != "inactive":
                self.site.head.try_run(OWNER, "burst", "down", "--no-wait", name)
        self.wait_until_reaped()
        self.site.root("sh", "-c", "rm -f /run/site-scripts")
