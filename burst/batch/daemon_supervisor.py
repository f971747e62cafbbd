# SPDX-License-Identifier: MIT
"""Runs the daemon as a child process, and starts it again if it fails."""

from __future__ import annotations

import contextlib
import subprocess
import threading

from burst.batch.lead_directory import LeadDirectory
from burst.batch.reap import PrintLine
from burst.kits.own_command import own_command

RESTART_DELAY_S = 5.0
"""Seconds from a failure to the next start."""
_PREFIX = "burst: ERROR: "


class DaemonSupervisor:
    """A process `burst daemon` with the settings and the log of a lead directory."""

    def __init__(
        self,
        directory: LeadDirectory,
        tell: PrintLine,
        again_s: float = RESTART_DELAY_S,
    ) -> None:
        self._directory = directory
        self._tell = tell
        self._again_s = again_s
        self._ending = threading.Event()
        self._lock = threading.Lock()
        """Held to start a process, and to forbid further starts."""
        self._process = self._start()
        self._thread: threading.Thread | None = None

    def attend(self) -> None:
        """From now on, start the process again if it ends before `end` was called."""
        self._thread = threading.Thread(target=self._attend, daemon=True)
        self._thread.start()

    def is_running(self) -> bool:
        """Return whether the process runs."""
        return self._process.poll() is None

    def last_words(self) -> str:
        """Return the last line of its log."""
        lines = self._directory.log.read_text(errors="replace").splitlines()
        return lines[-1].removeprefix(_PREFIX) if lines else "it said nothing"

    def end(self) -> None:
        """Send SIGTERM, and start no more processes.

        A second SIGTERM ends the process at once.
        """
        with self._lock:
            self._ending.set()
        self._process.terminate()

    def wait(self, seconds: float) -> bool:
        """Wait for its end, at most that long; return whether it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return not self.is_running()

    def kill(self) -> None:
        """Send SIGKILL, after `end`."""
        self._process.kill()
        self._process.wait()
        if self._thread is not None:
            self._thread.join()

    def _attend(self) -> None:
        while True:
            status = self._process.wait()
            if self._ending.is_set():
                return
            self._tell(f"the daemon ended with status {status}: {self.last_words()}")
            self._ending.wait(self._again_s)
            with self._lock:
                if self._ending.is_set():
                    return
                self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        command = own_command("daemon")
        with self._directory.log.open("ab") as log:
            return subprocess.Popen(
                [*command, "-c", str(self._directory.settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Signals to all processes of the job must reach it only through `end`.
                start_new_session=True,
            )
