# SPDX-License-Identifier: MIT
"""Read a trace in any of the known formats, plain or compressed by gzip."""

from __future__ import annotations

import gzip
import io
import itertools
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from burst_replay.collected_jobs import CollectedJobs, is_remark
from burst_replay.grid_engine import is_grid_engine, read_grid_engine
from burst_replay.json_jobs import is_json, read_json
from burst_replay.lsf import is_lsf, read_lsf
from burst_replay.pbs import is_pbs, read_pbs
from burst_replay.sacct import ASK, is_sacct, read_sacct
from burst_replay.swf import is_swf, read_swf
from burst_replay.trace import Trace, TraceError

Reader = Callable[[CollectedJobs, Iterable[str]], None]

FORMATS: Sequence[tuple[Callable[[str], bool], Reader]] = (
    (is_json, read_json),
    (is_lsf, read_lsf),
    (is_pbs, read_pbs),
    (is_sacct, read_sacct),
    (is_grid_engine, read_grid_engine),
    (is_swf, read_swf),
)
"""The formats: a function that recognises a line, and the reader of a file."""
_FIRST_LINES = 200
"""How many lines are searched for one that tells the format: others may precede it."""
_SHOWN = 60
_ADVICE = (
    "it can be: the Standard Workload Format; accounting logs of PBS and Torque, LSF"
    " (lsb.acct) and Grid Engine; flux-fiction's CSV; flux jobs -a -A --count=0 --json,"
    " a journal of Flux, or what [daemon] record wrote; sacct --json, or --parsable2"
    f" with its first line: {ASK} (docs/replay.md)"
)
_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def read_trace(path: Path) -> Trace:
    """Return the jobs of a file. Raises TraceError."""
    try:
        with path.open("rb") as file, _text_of(file) as text:
            return read_lines(path.name, (line.rstrip("\n") for line in text))
    except OSError as error:
        why = error.strerror or str(error)
        raise TraceError(
            f"{path}: cannot be read: {why}",
            "name a file in one of the formats of docs/replay.md",
        ) from error
    except (EOFError, zlib.error) as error:
        raise TraceError(
            f"{path}: is incomplete: {error}", "copy the file again"
        ) from error
    except TraceError as error:
        raise TraceError(f"{path}: {error.what}", error.advice) from error


def read_lines(name: str, lines: Iterable[str]) -> Trace:
    """Return the jobs of the lines of a file. Raises TraceError."""
    rest = iter(lines)
    head = list(itertools.islice(rest, _FIRST_LINES))
    found = CollectedJobs(name)
    reader_of(head)(found, itertools.chain(head, rest))
    trace = found.finish()
    if not trace.jobs:
        told = filter(None, ("no job in it ran", trace.left_out_text))
        raise TraceError("; ".join(told), _ADVICE)
    return trace


def reader_of(head: Sequence[str]) -> Reader:
    """Return the reader of a file, found by its first lines. Raises TraceError."""
    lines = [line for line in head if not is_remark(line)]
    for line in lines:
        for recognises, reader in FORMATS:
            if recognises(line):
                return reader
    if not lines:
        raise TraceError("there is no job in it", _ADVICE)
    shown = lines[0][:_SHOWN]
    raise TraceError(f"its format is not known; its first line is {shown!r}", _ADVICE)


def _text_of(file: io.BufferedReader) -> io.TextIOWrapper:
    """Return the text of a file, decompressed and decoded."""
    plain = file
    if file.peek(2).startswith(_GZIP):
        plain = io.BufferedReader(gzip.GzipFile(fileobj=file))
    # Windows' shells write UTF-16; other programs begin a file with a UTF-8 mark.
    utf_16 = plain.peek(2).startswith(_UTF_16)
    encoding = "utf-16" if utf_16 else "utf-8-sig"
    return io.TextIOWrapper(plain, encoding, errors="replace")
