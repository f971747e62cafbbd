# SPDX-License-Identifier: MIT
"""Starts, marks, logs and ends the processes of the demo."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from burst.errors import BurstError
from burst.kits.process_environs import PROC, read_environs

MARK = "BURST_DEMO"
"""Variable of all processes of a demo; its value is the demo's directory."""
_COMMAND_S = 120.0
_STEP_S = 0.05
_KILL_S = 60.0
# Variables by which the demo's commands would find another lead or other settings.
_FOREIGN = ("FLUX_", "BURST_")


class Processes:
    """Brokers and the daemon in the background, a user's commands in the foreground.

    Each has a session of its own, so that Ctrl-C reaches only the demo, which ends them
    in order.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._background: dict[str, subprocess.Popen[bytes]] = {}
        own = {k: v for k, v in os.environ.items() if not k.startswith(_FOREIGN)}
        # A killed broker leaves its directory in TMPDIR, so TMPDIR is the demo's own.
        self.environment = {**own, MARK: str(directory), "TMPDIR": str(directory)}

    def start(self, name: str, argv: Sequence[str]) -> None:
        """Start a process in the background; it writes to NAME.log."""
        with (self._directory / f"{name}.log").open("wb") as log:
            self._background[name] = subprocess.Popen(
                _runnable(argv),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._directory,
                env=self.environment,
                start_new_session=True,
            )

    def check(self) -> None:
        """Raise BurstError with the end of its log if a background process ended."""
        for name, process in self._background.items():
            status = process.poll()
            if status is not None:
                text = (self._directory / f"{name}.log").read_text(errors="replace")
                tail = " / ".join(text.strip().splitlines())[-600:]
                raise BurstError(
                    f"{name} ended with status {status}: {tail or 'its log is empty'}"
                )

    def run(
        self, argv: Sequence[str], limit_s: float = _COMMAND_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a user's command to its end. Raises BurstError if it takes too long."""
        try:
            return subprocess.run(
                _runnable(argv),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=limit_s,
                cwd=self._directory,
                env=self.environment,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            text = f"{' '.join(argv)}: did not end within {limit_s:g} s"
            raise BurstError(text) from error

    def end(self, name: str, grace_s: float) -> None:
        """End a background process: SIGTERM, and SIGKILL after the grace."""
        process = self._background.pop(name, None)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(grace_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def marked(self) -> list[int]:
        """Return the pids of all processes of this demo, followers and jobs too."""
        # A process that was killed stays in /proc until it is waited for.
        for process in self._background.values():
            process.poll()
        return self._marked(int(pid) for pid in os.listdir(PROC) if pid.isdigit())

    def await_end(self, limit_s: float) -> int:
        """Wait until all processes have ended or time is up; return how many remain."""
        ends = time.monotonic() + limit_s
        while (left := self.marked()) and time.monotonic() < ends:
            time.sleep(_STEP_S)
        return len(left)

    def kill_all(self) -> None:
        """Kill all processes of this demo. Raises BurstError if some do not end."""
        ends = time.monotonic() + _KILL_S
        # Repeated, since the processes may start others.
        while left := self.marked():
            if time.monotonic() > ends:
                pids = " ".join(map(str, left))
                raise BurstError(f"killed processes do not end: {pids}")
            for pid in left:
                self._kill(pid)
            time.sleep(_STEP_S)

    def _kill(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            try:
                # Since it was listed, the pid may have been given to another process;
                # the handle cannot be.
                if self._marked([pid]):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            finally:
                os.close(handle)

    def _marked(self, pids: Iterable[int]) -> list[int]:
        mark = os.fsencode(f"{MARK}={self._directory}")
        environs = read_environs(pids)
        return sorted(pid for pid in environs if mark in environs[pid].split(b"\0"))


def _runnable(argv: Sequence[str]) -> list[str]:
    """Return the command with our own interpreter; `burst` may not be on PATH."""
    if argv[0] != "burst":
        return list(argv)
    return [sys.executable, "-m", "burst", *argv[1:]]
