# SPDX-License-Identifier: MIT
"""The system clock is set while a daemon runs, which is a process here.

Its Python adds what a file says to time.time(), and nothing to monotonic time, as after
a correction of the clock and after a machine was suspended.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.cli.cli_harness import BURST, CliHarness
from tests.support.waiting import HANG_S, wait_until

_SET = """\
import time
def ahead(real=time.time):
    with open({path!r}) as file:
        return real() + float(file.read())
time.time = ahead
"""


def test_a_lease_has_as_long_to_run_after_the_clock_was_set(
    cli: CliHarness, tmp_path: Path
) -> None:
    ahead, log = tmp_path / "ahead", tmp_path / "daemon.log"
    ahead.write_text("-7200")
    (tmp_path / "sitecustomize.py").write_text(_SET.format(path=str(ahead)))
    cli.write(deadlines={"lease": "30m", "drain": "1m"})
    command = [BURST, "daemon", "-c", str(cli.config), "--uri", cli.uri]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with log.open("wb") as file:
        daemon = subprocess.Popen(command, env=environ, stdout=file, stderr=file)
    try:
        wait_until(lambda: " serves " in log.read_text(), log.read_text)
        wait_until(cli.is_known, log.read_text)
        assert cli.run("request", "-N1").status == 0
        (before,) = (row["id"] for row in cli.status()["bursts"])
        cli.wait_for_state(before, "online")
        new = tmp_path / "new"
        new.write_text("0")
        new.replace(ahead)
        wait_until(lambda: log.read_text().count(" serves ") == 2, log.read_text)
        assert (
            "the system clock was set by 2h; the daemon starts again" in log.read_text()
        )
        wait_until(cli.is_known, log.read_text)
        assert cli.run("request", "-N1").status == 0
        (after,) = {row["id"] for row in cli.status()["bursts"]} - {before}
        cli.wait_for_state(after, "online")
        # Its followers were given the rest of the lease, too: they are still there.
        assert cli.row(before)["state"] == "online"
    finally:
        daemon.terminate()
        daemon.wait(HANG_S)
