# SPDX-License-Identifier: MIT
"""A private directory for one demo, and what is still there of the demo after it."""

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def short_directory() -> Iterator[Path]:
    """Yield a directory whose path leaves room for sockets in it.

    All processes that name it in their environment are killed in the end.
    """
    directory = Path(tempfile.mkdtemp(prefix="bd-", dir="/tmp"))
    try:
        yield directory
    finally:
        for pid in pids_with(str(directory)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(directory)


def pids_with(text: str) -> list[int]:
    """Return the processes in whose environment the text is, except this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if text.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found
