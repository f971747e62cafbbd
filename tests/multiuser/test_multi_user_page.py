# SPDX-License-Identifier: MIT
"""docs/multi-user.md: a system instance that is there is made one that can burst.

The commands of the page are typed as they are there. systemctl alone is done by the
test, as no systemd runs in a namespace.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli_w

from tests.docs.doc_pages import TOP, blocks
from tests.multiuser.lab import OWNER, Lab, end_process, flux_etc, imp_path
from tests.multiuser.unit_file import Unit
from tests.support.ports import free_port
from tests.support.waiting import wait_until

pytestmark = pytest.mark.multiuser

_RESOURCES = {
    "R_lite": [{"rank": "0", "children": {"core": "0-1"}}],
    "starttime": 0.0,
    "expiration": 0.0,
    "nodelist": ["lead-0"],
}


class Site:
    """A host with a system instance, as the administrator's guide of Flux has it."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.place = Path(tempfile.mkdtemp(prefix="s-", dir=lab.directory))
        self.place.chmod(0o755)
        self.units: dict[str, subprocess.Popen[bytes]] = {}
        etc = flux_etc()
        if str(etc) != "/etc/flux":
            self.root("rm", "-rf", "/etc/flux")
            self.root("ln", "-s", str(etc), "/etc/flux")
        self.root("mkdir", "-p", "/etc/flux/system/conf.d")
        for path in ("system/conf.d/zz-burst-lead.toml", "burst.toml"):
            self.root("rm", "-f", f"/etc/flux/{path}")
        self.write("system/conf.d/system.toml", tomli_w.dumps(self.tables()))
        self.write("system/R", json.dumps({"version": 1, "execution": _RESOURCES}))
        # As a careful site has them: the broker reads them by its group.
        for name in ("conf.d/system.toml", "R"):
            self.root("chgrp", OWNER, f"/etc/flux/system/{name}")
            self.root("chmod", "640", f"/etc/flux/system/{name}")
        self.root("flux", "keygen", "/etc/flux/system/curve.cert")
        self.root("chown", OWNER, "/etc/flux/system/curve.cert")
        for path, mode in (("/run/flux", "755"), (f"{self.place}/state", "700")):
            self.root("install", "-d", "-o", OWNER, "-g", OWNER, "-m", mode, path)
        self.start_lead()

    def tables(self) -> dict[str, object]:
        return {
            "access": {"allow-guest-user": True, "allow-root-owner": True},
            "exec": {"imp": str(imp_path())},
            "bootstrap": {
                "curve_cert": "/etc/flux/system/curve.cert",
                "default_port": free_port(),
                "default_bind": "tcp://127.0.0.1:%p",
                "default_connect": "tcp://127.0.0.1:%p",
                "hosts": [{"host": "lead-0"}],
            },
            # The name of the host is the machine's.
            "resource": {"path": "/etc/flux/system/R", "noverify": True},
        }

    def root(self, *command: str) -> str:
        return self.lab.run("root", *command)

    def write(self, name: str, text: str) -> None:
        self.root("sh", "-c", 'printf %s "$1" > "$2"', "sh", text, f"/etc/flux/{name}")

    def start(self, name: str, *command: str, **env: str) -> None:
        with (self.place / f"{name}.log").open("ab") as log:
            self.units[name] = self.lab.start(OWNER, *command, log=log, env=env)

    def start_lead(self) -> None:
        attributes = (
            *("hostname=lead-0", "rundir=/run/flux", f"statedir={self.place}/state"),
            *("local-uri=local:///run/flux/local", "broker.rc2_none=1"),
            *("broker.quorum=1", "broker.quorum-warn=none"),
        )
        config = "--config-path=/etc/flux/system/conf.d"
        self.start("flux", "flux", "broker", config, *(f"-S{a}" for a in attributes))
        ask = ("flux", "jobs")
        wait_until(
            lambda: not self.lab.try_run("ann", *ask).returncode,
            self.log,
        )

    def log(self) -> str:
        paths = sorted(self.place.glob("*.log"))
        return "\n".join(path.read_text(errors="replace") for path in paths)

    def systemctl(self, *words: str) -> None:
        """Do what systemd would."""
        if words == ("restart", "flux"):
            self.stop("flux")
            self.start_lead()
        elif words == ("enable", "--now", "burst"):
            unit = Unit.read(self.staged("burst.service"))
            with (self.place / "burst.log").open("ab") as log:
                self.units["burst"] = unit.start(self.lab, log)
            wait_until(lambda: " serves " in self.log(), self.log)
        else:
            assert words == ("daemon-reload",), words

    def staged(self, name: str) -> Path:
        """Return a copy of an installed unit, which lies in the lab's memory."""
        copy = self.place / name
        copy.write_text(self.root("cat", f"/etc/systemd/system/{name}"))
        return copy

    def type(self, line: str) -> str:
        """Type a line of the page as root, and return what it printed.

        With a umask that gives nobody else anything.
        """
        if line.startswith("systemctl "):
            self.systemctl(*shlex.split(line)[1:])
            return ""
        return self.root("sh", "-ec", f"umask 077\n{line}")

    def stop(self, name: str) -> None:
        end_process(self.units.pop(name))


@pytest.fixture
def site() -> Iterator[Site]:
    """Give a site in a lab of its own, since its /etc is changed."""
    with Lab() as lab:
        site = Site(lab)
        yield site
        for name in ("burst", "flux"):
            if name in site.units:
                site.stop(name)


def test_the_page_makes_an_instance_that_bursts_for_a_guest(site: Site) -> None:
    root, guest = [
        block.commands.splitlines()
        for block in blocks(TOP / "docs/multi-user.md")
        if "test_multi_user_page.py" in block.said
    ]
    said = ""
    for line in root:
        said = site.type(line)
        if line.startswith("burst setup"):
            # It found the host's own instance, whose queues and scheduler it looks at.
            assert "not known" not in said, said
    assert "\n0 wrong" in said, said
    (line,) = guest
    done = site.lab.try_run("ann", "sh", "-ec", line)
    assert done.returncode == 0, (done.stderr, site.log())
    assert done.stdout.split() == ["ann", "ann"]
    # What was typed can be typed again.
    for line in root[:2]:
        again = site.type(line)
        assert "added" not in again
        assert "kept" in again or "nothing changes" in again
