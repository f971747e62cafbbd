# SPDX-License-Identifier: MIT
from __future__ import annotations

import subprocess
import time
from pathlib import Path

from burst.kits.process_environs import read_environs
from tests.support.waiting import HANG_S, wait_until


def test_a_process_has_its_environment_while_it_calls_execve(tmp_path: Path) -> None:
    script = tmp_path / "again.sh"
    script.write_text(f"sleep 0.01; exec /bin/sh {script}\n")
    with subprocess.Popen(["/bin/sh", script], env={"BURST_ID": "x"}) as process:
        pid, met = process.pid, 0
        try:
            wait_until(lambda: b"BURST_ID=x" in read_environs([pid])[pid], "its exec")
            ends = time.monotonic() + HANG_S
            while met < 3:
                assert b"BURST_ID=x" in read_environs([pid])[pid].split(b"\0")
                # Of both reads it is chance whether they meet it within execve(2).
                met += Path(f"/proc/{pid}/environ").read_bytes() == b""
                assert time.monotonic() < ends, met
        finally:
            process.kill()


def test_what_has_ended_has_none_and_is_left_out_once_it_is_waited_for() -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        process.kill()
        # Of a zombie some versions of Linux show none, and others nothing.
        wait_until(lambda: not read_environs([process.pid]).get(process.pid), "its end")
    assert read_environs([process.pid]) == {}
