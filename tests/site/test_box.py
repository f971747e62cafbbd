# SPDX-License-Identifier: MIT
"""A box is a host of its own, and leaves nothing behind however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.site.box import Box
from tests.site.box_root import REPOSITORY
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.site, pytest.mark.xdist_group("vm")]

# Its directory and its control group are printed once it runs.
_MAKE = """\
from tests.site.box import Box
box = Box("lost")
print(box.directory, box.cgroup, box.pid, flush=True)
input()
"""


def test_what_is_done_in_a_box_does_not_reach_the_machine() -> None:
    with Box("one") as box:
        box.write("/etc/burst-site-test", "of the box")
        box.run("root", "systemctl", "start", "systemd-logind")
        assert box.run("root", "hostname").strip() == "one"
        assert box.read("/etc/burst-site-test") == b"of the box"
        assert not Path("/etc/burst-site-test").exists()
        assert box.run("root", "cat", "/proc/1/comm") == "systemd\n"
    _assert_gone(str(box.directory), str(box.cgroup), str(box.pid))


def test_nothing_is_left_of_a_box_whose_maker_is_killed() -> None:
    maker = subprocess.Popen(
        [sys.executable, "-c", _MAKE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
        text=True,
    )
    assert maker.stdout
    places = maker.stdout.readline().split()
    assert all(Path(place).exists() for place in places[:2])
    os.kill(maker.pid, signal.SIGKILL)
    maker.communicate()
    _assert_gone(*places)


def _assert_gone(directory: str, cgroup: str, pid: str) -> None:
    left = (Path(directory), Path(cgroup), Path("/proc") / pid)
    wait_until(lambda: not any(path.exists() for path in left), str(left))
    assert directory not in Path("/proc/self/mountinfo").read_text()
