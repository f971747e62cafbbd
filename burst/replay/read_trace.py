# SPDX-License-Identifier: MIT
"""Opens a trace, plain or compressed by gzip, in whichever format it is."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from burst.errors import BurstError
from burst.replay.eventlog import read_eventlog
from burst.replay.swf import read_swf
from burst.replay.trace import Trace

_GZIP = b"\x1f\x8b"
_PROGRESS_EVERY = 4096


class TraceError(BurstError):
    """A trace cannot be used: replay nothing."""


def read_trace(path: Path, progress: Callable[[int], None] = lambda _: None) -> Trace:
    """Return the jobs of a file. Raises TraceError.

    `progress` is now and then called with how many bytes of the file have been read.
    """
    try:
        data = path.read_bytes()
        size = len(data)
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
    except OSError as error:
        why = error.strerror or str(error)
        raise TraceError(
            f"{path}: cannot be read: {why}",
            "name a file in one of the formats of docs/replay.md",
        ) from error
    except (EOFError, zlib.error) as error:
        raise TraceError(
            f"{path}: is not whole: {error}", "copy the file again"
        ) from error
    # Without the byte order mark with which some programs begin a file.
    lines = data.decode("utf-8-sig", errors="replace").splitlines()
    if lines and lines[0].strip() == "{":
        lines = [" ".join(lines)]  # one object, written over many lines
    first = next((line for line in lines if line.strip()), "")
    read = read_eventlog if first.lstrip().startswith("{") else read_swf
    counted = _counted(lines, lambda part: progress(int(part * size)))
    trace = read(path.name, counted)
    if not trace.jobs:
        lines_are = "1 line" if trace.broken == 1 else f"{trace.broken} lines"
        found = f"{lines_are} cannot be read, such as {trace.first_broken}"
        raise TraceError(
            f"{path}: no job in it that ran" + (f"; {found}" if trace.broken else ""),
            "docs/replay.md shows which formats are read",
        )
    return trace


def _counted(lines: Sequence[str], told: Callable[[float], None]) -> Iterator[str]:
    """Yield the lines; tell now and then which part of them was taken."""
    for number, line in enumerate(lines):
        if number % _PROGRESS_EVERY == 0:
            told(number / len(lines))
        yield line
