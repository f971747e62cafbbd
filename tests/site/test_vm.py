# SPDX-License-Identifier: MIT
"""A VM of provider vm, from its user data on: cloud-init and systemd are the real ones.

One box is the head of a cluster and has an imitation of EC2; another is the VM, which
gets nothing but the user data that the cloud was given.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from tests.site import cloud_init
from tests.site.box import Box
from tests.site.box_root import REPOSITORY
from tests.site.network import address, connect
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.site, pytest.mark.xdist_group("vm")]

_SLOT = "burst-0-0"
_TABLES = {
    "intake": {"mode": "scheduler"},
    "daemon": {"cadence": "0.5s"},
    "deadlines": {"lease": "1h"},
}


class Head:
    """The host of the lead, its daemon, and the cloud."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.cloud = box.shared / "cloud"
        self.lead = box.shared / "lead"
        self.vms: list[Path] = []
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the cloud, the lead and its daemon."""
        self.cloud.mkdir()
        module = f"{sys.executable} -m tests.site.cloud_in_box {self.cloud}"
        self._run("cloud", "sh", "-c", f"cd {REPOSITORY}; exec {module}")
        table = self.cloud / "table.json"
        wait_until(table.exists, self.log)
        init = ("burst", "lead", "init", str(self.lead), "--mode", "scheduler")
        own = ("--cores", "1", "--gpus", "0", "--address", address(0))
        self.box.run("root", *init, *own, "--slot", _SLOT, "--provider", "none")
        tables = {**_TABLES, "providers": {"cloud": _provider(table)}}
        (self.lead / "burst.toml").write_text(tomli_w.dumps(tables))
        self._run("lead", str(self.lead / "start"))
        wait_until(lambda: self.burst("status").returncode == 0, self.log, pause=0.3)

    def _run(self, name: str, *command: str) -> None:
        with (self.box.directory / f"{name}.log").open("wb") as log:
            self._running.append(self.box.start("root", *command, log=log))

    def close(self) -> None:
        """End what was started; the box ends what that has started."""
        for process in self._running:
            process.kill()
            process.wait()

    def log(self) -> str:
        """Return what the cloud, the lead and the daemon printed."""
        logs = (self.box.directory / f"{each}.log" for each in ("cloud", "lead"))
        return "\n".join(
            log.read_text(errors="replace") for log in logs if log.exists()
        )

    def type(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line of a shell that uses the lead."""
        return self.box.try_run("root", "sh", "-c", f". {self.lead}/env; {line}")

    def burst(self, words: str) -> subprocess.CompletedProcess[str]:
        """Run a burst command."""
        return self.type(f"burst {words}")

    def submit(self, command: str) -> str:
        """Submit a job for a leased node, and return its id."""
        there = f"--requires=hosts:{_SLOT}"
        done = self.type(f"flux submit --burst {there} {command}")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def states(self) -> list[str]:
        """Return the states of all bursts."""
        rows = json.loads(self.burst("status --all --json").stdout)["bursts"]
        return [row["state"] for row in rows]

    def next_vm(self) -> Path:
        """Wait until the cloud is asked for one more VM; return its directory."""

        def new() -> list[Path]:
            found = self.cloud.glob("vms/*/user-data")
            return [each.parent for each in found if each.parent not in self.vms]

        wait_until(new, lambda: (self.burst("status").stdout, self.log()))
        [vm] = new()
        self.vms.append(vm)
        return vm


def _provider(table: Path) -> dict[str, Any]:
    given: dict[str, Any] = json.loads(table.read_text())
    given["offers"]["nodes"] |= {"cores": 1, "max_nodes": 1}
    # The VM has the machine's Flux, wherever that is.
    here = {"bind": address(0), "user": "root", "flux": shutil.which("flux")}
    return {**given, "type": "vm", **here}


@pytest.fixture
def packages() -> Iterator[Path]:
    try:
        place = cloud_init.fetch()
    except OSError as error:
        pytest.skip(f"want of Debian's cloud-init: {str(error).splitlines()[-1]}")
    yield place
    shutil.rmtree(place)


def test_a_vm_joins_by_its_user_data_alone_and_powers_itself_off(
    packages: Path,
) -> None:
    with ExitStack() as ends:
        boxes = [ends.enter_context(Box(name)) for name in ("head", "vm")]
        connect(boxes)
        head, vm = Head(boxes[0]), boxes[1]
        ends.callback(head.close)
        head.start()
        job = head.submit("hostname")
        there = head.next_vm()
        cloud_init.boot(vm, packages, (there / "user-data").read_text())
        # The job's own node is the VM.
        done = head.type(f"flux job attach {job}")
        assert done.stdout == "vm\n", (done, vm.journal("burst-follower"), head.log())
        assert vm.run("root", "systemctl", "is-active", "burst-end") == "active\n"
        secret = vm.read("/var/lib/burst/burst.cert").decode().split('"')[-2]
        assert secret not in (there / "user-data").read_text()
        # A follower that ends by itself leaves nothing to be paid for.
        vm.run("root", "systemctl", "kill", "--kill-whom=main", "burst-follower")
        wait_until(lambda: not vm.lives, lambda: vm.journal("burst-follower"))
        (there / "off").touch()
        wait_until(lambda: head.states() == ["inactive"], head.log, pause=0.3)
        # One that never boots is deleted, too.
        job = head.submit("true")
        never = head.next_vm()
        assert head.type(f"flux cancel {job}").returncode == 0
        wait_until((never / "gone").exists, head.log)
