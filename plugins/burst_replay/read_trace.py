# SPDX-License-Identifier: MIT
"""Opens a trace, plain or compressed by gzip, in whichever format it is."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from burst_replay.collected_jobs import first_lines
from burst_replay.trace import Trace, TraceError
from burst_replay.trace_format import FIRST_LINES, reader_of

_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_PROGRESS_EVERY = 4096


def read_trace(path: Path, progress: Callable[[int], None] = lambda _: None) -> Trace:
    """Return the jobs of a file. Raises TraceError.

    `progress` is now and then called with how many bytes of the file have been read.
    """
    try:
        with path.open("rb") as file, _text_of(file) as text:
            told = file.tell if file.seekable() else int
            return _read(path, _counted(text, lambda: progress(told())))
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


def _read(path: Path, lines: Iterable[str]) -> Trace:
    """Return what a reader makes of the lines. Raises TraceError."""
    head, lines = first_lines(lines, FIRST_LINES)
    try:
        reader, lines = reader_of(head, lines)
        trace = reader(path.name, lines)
    except TraceError as error:
        raise TraceError(f"{path}: {error.what}", error.advice) from error
    if not trace.jobs:
        found = "; ".join(trace.left_out_texts)
        raise TraceError(
            f"{path}: no job in it that ran" + (f"; {found}" if found else ""),
            "docs/replay.md shows which formats are read",
        )
    return trace


def _text_of(file: io.BufferedReader) -> io.TextIOWrapper:
    """Return the lines of a file, unpacked and decoded."""
    plain = file
    if file.peek(2).startswith(_GZIP):
        plain = io.BufferedReader(gzip.GzipFile(fileobj=file))
    # Windows' shells write UTF-16; other programs begin a file with the mark of UTF-8.
    utf_16 = plain.peek(2).startswith(_UTF_16)
    encoding = "utf-16" if utf_16 else "utf-8-sig"
    return io.TextIOWrapper(plain, encoding, errors="replace")


def _counted(lines: Iterable[str], tell: Callable[[], None]) -> Iterator[str]:
    """Yield the lines without their ends; tell now and then how far it is."""
    for number, line in enumerate(lines):
        if number % _PROGRESS_EVERY == 0:
            tell()
        yield line.rstrip("\n")
