# SPDX-License-Identifier: MIT
"""Everything that the demo starts: marked, logged, and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from burst.demo.stop import Stop
from burst.errors import BurstError

MARK = "BURST_DEMO"
"""Variable that all processes of a demo have; its value is the demo's directory."""
COMMAND_S = 20.0
"""A command of a user answers within a second; one that takes so long hangs."""
_STEP_S = 0.05
_KILL_S = 5.0
_PROC = Path("/proc")
_WORDS = 600
# What would lead the demo's commands to another lead, or to other settings.
_FOREIGN = ("FLUX_", "BURST_")


class Processes:
    """Brokers and the daemon in the background, commands in the foreground.

    Each is in a session of its own, since Ctrl-C at a terminal goes to all of a
    session: they are ended in order instead.
    """

    def __init__(
        self, directory: Path, stop: Stop, patience: float = COMMAND_S
    ) -> None:
        self._directory = directory
        self._patience = patience
        self._stop = stop
        self._background: dict[str, subprocess.Popen[bytes]] = {}
        own = {k: v for k, v in os.environ.items() if not k.startswith(_FOREIGN)}
        self._environment = {**own, MARK: str(directory)}

    def start(self, name: str, argv: Sequence[str]) -> None:
        """Start a process in the background; it writes to NAME.log."""
        with self._log(name).open("wb") as log:
            self._background[name] = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._directory,
                env=self._environment,
                start_new_session=True,
            )

    def check(self) -> None:
        """Raise BurstError if one in the background has ended, with its last words."""
        for name, process in self._background.items():
            status = process.poll()
            if status is not None:
                words = self.last_words(name) or "it said nothing"
                raise BurstError(f"{name} ended with status {status}: {words}")

    def last_words(self, name: str) -> str:
        """Return the end of its log on one line."""
        text = self._log(name).read_text(errors="replace").strip()
        return " / ".join(text.splitlines())[-_WORDS:]

    def run(self, argv: Sequence[str], uri: str, *, failing: bool = False) -> str:
        """Run a user's command with FLUX_URI, and return what it prints.

        Raises BurstError if it fails, unless `failing` is as good, or if it hangs;
        Interrupted.
        """
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._directory,
            env={**self._environment, "FLUX_URI": uri},
            start_new_session=True,
        )
        try:
            output, errors = self._wait_for(process, argv)
        finally:
            if process.poll() is None:
                # With what it started, which may hold its end of the pipe.
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        if process.returncode and not failing:
            said = errors.decode(errors="replace").strip()
            raise BurstError(f"{' '.join(argv)}: status {process.returncode}: {said}")
        return output.decode(errors="replace")

    def end(self, name: str, grace: float) -> None:
        """End one in the background: SIGTERM, and SIGKILL after the grace."""
        process = self._background.pop(name, None)
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        ends = time.monotonic() + grace
        while process.poll() is None:
            if time.monotonic() > ends or self._stop.hurried:
                process.kill()
                process.wait()
            else:
                time.sleep(_STEP_S)

    def _wait_for(
        self, process: subprocess.Popen[bytes], argv: Sequence[str]
    ) -> tuple[bytes, bytes]:
        ends = time.monotonic() + self._patience
        while True:
            self._stop.check()
            try:
                return process.communicate(timeout=_STEP_S)
            except subprocess.TimeoutExpired:
                if time.monotonic() > ends or self._stop.hurried:
                    raise BurstError(
                        f"{' '.join(argv)}: no end within {self._patience:g} s"
                    ) from None

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"


def find(marks: Mapping[str, str], proc: Path = _PROC) -> list[int]:
    """Return the processes that have one of these variables with this very value."""
    return sorted(pid for pid in _pids(proc) if _bears(proc / str(pid), marks))


def kill_all(marks: Mapping[str, str], patience: float = _KILL_S) -> None:
    """Kill all that have one of these variables with this very value.

    Again and again, since they may start others. Raises BurstError if that is no use.
    """
    ends = time.monotonic() + patience
    while left := find(marks):
        if time.monotonic() > ends:
            pids = " ".join(map(str, left))
            raise BurstError(f"processes that do not end, even killed: {pids}")
        for pid in left:
            _kill(pid, marks)
        time.sleep(_STEP_S)


def _kill(pid: int, marks: Mapping[str, str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            # The handle stays with one process, whatever becomes of the pid; so that
            # it is the one we mean has to be looked up once more.
            if _bears(_PROC / str(pid), marks):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def _pids(proc: Path) -> Iterator[int]:
    return (int(name) for name in os.listdir(proc) if name.isdigit())


def _bears(process: Path, marks: Mapping[str, str]) -> bool:
    try:
        content = (process / "environ").read_bytes()
    except OSError:
        # It is gone, or another user's: nobody else's process is of the demo.
        return False
    wanted = {os.fsencode(f"{key}={value}") for key, value in marks.items()}
    return not wanted.isdisjoint(content.split(b"\0"))
