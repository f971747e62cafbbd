# SPDX-License-Identifier: MIT
"""Records what happens to jobs in a file, for `burst replay`.

Only its owner can read the file, as it has what users submitted. At FILE_BYTES it is
renamed to `PATH.1`, the file of that name to `PATH.2`, and so on; FILES_KEPT renamed
files are kept. An event may be in the file twice, as the lead may read its jobs again.
"""

from __future__ import annotations

import errno
import io
import os
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from burst import log
from burst.decode import from_json
from burst.errors import ConfigError
from burst.model.job_record import RecordedEvent

FILE_BYTES = 64 * 2**20
FILES_KEPT = 4
CLOSE_S = 10.0
"""How long the daemon's end waits for the disk, in seconds."""
# Bytes at the end of the file that are read to find the last event in it.
_TAIL = 2**20
# An event of the last so many seconds is recorded in any case. An older one may be in
# the file already, so its time is compared.
_NEWS_S = 60.0


class JobRecorder:
    """Appends to one file, on a thread of its own."""

    def __init__(
        self,
        path: Path,
        file_bytes: int = FILE_BYTES,
        kept: int = FILES_KEPT,
        clock: Callable[[], float] = time.time,
        close_s: float = CLOSE_S,
    ) -> None:
        """Raises ConfigError if the file cannot be written."""
        self.path = path
        self._close_s = close_s
        self._file_bytes = file_bytes
        self._kept = kept
        self._clock = clock
        self._events: queue.SimpleQueue[RecordedEvent | None] = queue.SimpleQueue()
        # When it is followed, a lead first repeats the events of active jobs.
        self._recorded_until = self._newest = _last_timestamp(path)
        try:
            self._file = _open(path)
        except OSError as error:
            raise ConfigError(
                f"daemon.record: {path}: {error.strerror}",
                "name a file in a directory that the daemon may write to",
            ) from error
        self._thread = threading.Thread(
            target=self._run, name="job-recorder", daemon=True
        )
        self._thread.start()

    def record(self, event: RecordedEvent) -> None:
        """Have an event written, unless it is in the file already. From any thread.

        After the clock was set back, a new event seems older than those in the file;
        it is recorded anyway.
        """
        now = self._clock()
        if event.timestamp > min(self._recorded_until, now - _NEWS_S):
            self._newest = max(self._newest, event.timestamp)
            self._events.put(event)

    def expect_repeats(self) -> None:
        """Pass over what is recorded already: the lead repeats events once more."""
        self._recorded_until = self._newest

    def close(self) -> None:
        """Write what is left, and end; without that if the disk does not answer."""
        self._events.put(None)
        self._thread.join(self._close_s)

    def _run(self) -> None:
        try:
            _end_cut_line(self._file)
            while event := self._events.get():
                self._write(msgspec.json.encode(event) + b"\n")
        except OSError as error:
            text = "jobs are not recorded until the daemon starts again: %s: %s"
            log.warn(text, self.path, error.strerror)
            while self._events.get():
                pass
        self._file.close()

    def _write(self, line: bytes) -> None:
        if self._file.tell() + len(line) > self._file_bytes:
            self._rotate()
        if self._file.write(line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _rotate(self) -> None:
        self._file.close()
        for number in range(self._kept - 1, 0, -1):
            older = _numbered(self.path, number)
            if older.exists():
                older.replace(_numbered(self.path, number + 1))
        self.path.replace(_numbered(self.path, 1))
        self._file = _open(self.path)


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _open(path: Path) -> io.FileIO:
    """Return a file to append lines to."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    return io.FileIO(descriptor, "ab+")


def _end_cut_line(file: io.FileIO) -> None:
    """Have the next line begin after a line that was cut, so that only that is lost.

    The machine may have crashed, or the disk may have been full, in the middle of a
    line. Raises OSError, as the disk may still be full.
    """
    size = file.seek(0, os.SEEK_END)
    if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
        file.write(b"\n")


def _last_timestamp(path: Path) -> float:
    """Return when the newest event in a file happened; 0 if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            lines = file.read(_TAIL).splitlines()
    except OSError:
        return 0.0
    newest = 0.0
    for line in lines:
        try:
            newest = max(newest, from_json(line, RecordedEvent).timestamp)
        except msgspec.MsgspecError:
            continue  # the first line is cut; the last one may be, after a crash
    return newest
