# SPDX-License-Identifier: MIT
"""How often followers that are to end get SIGTERM."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from burst_local.burst_dirs import BurstDirectory
from burst_local.cgroups import Cgroups
from burst_local.members import FollowerProcesses
from burst_local.processes import scan
from burst_local.stopping import Stopper

COUNTS = """
import signal
ours = [signal.SIGTERM, signal.SIGWINCH]
signal.pthread_sigmask(signal.SIG_BLOCK, ours)
print("up", flush=True)
while signal.sigwait(ours) == signal.SIGTERM:
    print("told", flush=True)
"""


def test_sigterm_is_sent_again_after_a_while_and_to_a_burst_that_is_there_again(
    tmp_path: Path,
) -> None:
    place, now = BurstDirectory(tmp_path / "burst-0-abc"), [0.0]
    stopper = Stopper(lambda: now[0], 1000.0, Cgroups("home", None))
    with subprocess.Popen(
        [sys.executable, "-c", COUNTS], stdout=subprocess.PIPE, start_new_session=True
    ) as child:
        assert child.stdout
        assert child.stdout.readline() == b"up\n"
        followers = {"burst-0-0": FollowerProcesses(scan()[child.pid], ())}
        stopper.stop_some(place, followers)
        assert child.stdout.readline() == b"told\n"
        for now[0] in (1.9, 2.0):
            stopper.stop_some(place, followers)
        assert child.stdout.readline() == b"told\n"
        stopper.stop_some(place, followers)
        stopper.forget(place)
        stopper.stop_some(place, followers)
        # A later number: what is sent before is told first.
        child.send_signal(signal.SIGWINCH)
        assert child.stdout.read() == b"told\n"
