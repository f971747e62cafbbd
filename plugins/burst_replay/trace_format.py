# SPDX-License-Identifier: MIT
"""Recognises by what is in a file in which format it is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from burst.decode import from_json
from burst_replay.collected_jobs import is_remark
from burst_replay.eventlog import read_eventlog
from burst_replay.grid_engine import is_grid_engine, read_grid_engine
from burst_replay.lsf import is_lsf, read_lsf
from burst_replay.pbs import is_pbs, read_pbs
from burst_replay.sacct import read_sacct
from burst_replay.sacct_columns import ASK, is_header, split_names
from burst_replay.sacct_json import read_sacct_json
from burst_replay.swf import is_swf, read_swf
from burst_replay.trace import Trace, TraceError

Reader = Callable[[str, Iterable[str]], Trace]

FIRST_LINES = 200
"""Among so many there is one that tells the format: others may be before it."""
_SHOWN = 60
_BY_LINE: Sequence[tuple[Callable[[str], bool], Reader]] = (
    (is_lsf, read_lsf),
    (is_pbs, read_pbs),
    (is_header, read_sacct),
    (is_grid_engine, read_grid_engine),
    (is_swf, read_swf),
)
_FORMATS = (
    "the Standard Workload Format; sacct --parsable2 with its first line, or --json;"
    " accounting logs of PBS and Torque, LSF (lsb.acct) and Grid Engine; flux-fiction's"
    " CSV; flux jobs --json, a journal of Flux, or what [daemon] record wrote"
)
# An opening bracket alone may be the prompt of a shell: [ann@login1 ~]$ sacct
_JSON = re.compile(r'\s*(\{\s*("|\}|\Z)|\[\s*(\{|\Z))')
_OF_SLURM = re.compile(r'"submission"\s*:')
_RULE = re.compile(r"\s*-+(\s+-+)+\s*\Z")
_FEWEST_BARS = 4


def reader_of(
    head: Sequence[str], lines: Iterable[str]
) -> tuple[Reader, Iterable[str]]:
    """Return what reads a file, and the lines, or documents of JSON, that it reads.

    `head` are its first lines, which `lines` has, too. Raises TraceError.
    """
    for place, line in enumerate(head):
        if _JSON.match(line):
            rest = iter(lines)
            for _ in range(place):
                next(rest)
            return _reader_of_json(line, rest)
        if line.startswith("#"):
            continue
        for recognises, reader in _BY_LINE:
            if recognises(line):
                return reader, lines
    raise _unknown(head)


def _reader_of_json(first: str, lines: Iterable[str]) -> tuple[Reader, Iterable[str]]:
    """Return what reads JSON, in one object or list, several, or one a line."""
    documents: Iterable[str] = lines
    if not _is_whole(first):
        documents = _documents("\n".join(lines))
        first = next(iter(documents))
    reader = read_sacct_json if _OF_SLURM.search(first) else read_eventlog
    return reader, documents


def _is_whole(text: str) -> bool:
    try:
        from_json(text, msgspec.Raw)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _documents(text: str) -> list[str]:
    """Return the documents of which there may be several one after the other.

    What is none is the last: its reader says why.
    """
    if _is_whole(text):
        return [text]
    return list(_split_documents(text)) or [text]


def _split_documents(text: str) -> Iterator[str]:
    decoder = json.JSONDecoder()
    at = 0
    while at < len(text):
        try:
            _, end = decoder.raw_decode(text, at)
        except (RecursionError, ValueError):
            end = len(text)
        yield text[at:end]
        at = end + len(text[end:]) - len(text[end:].lstrip())


def _unknown(head: Sequence[str]) -> TraceError:
    """Return the error for a file that is in none of the formats."""
    lines = [line for line in head if not is_remark(line)]
    if not lines:
        return TraceError("there is no job in it", f"read are: {_FORMATS}")
    if any(_RULE.match(line) for line in head) or any(map(_in_columns, lines)):
        return TraceError(
            "it is in columns, in which sacct cuts off texts", f"write it with: {ASK}"
        )
    shown = f"its first line is {lines[0][:_SHOWN]!r}"
    if all(line.count("|") >= _FEWEST_BARS for line in lines):
        return TraceError(
            f"no first line names its fields; {shown}",
            "write it without --noheader, or put the names that --format had before"
            " it, as in JobID|User|State",
        )
    return TraceError(
        f"its format is not known; {shown}",
        f"read are: {_FORMATS} (docs/replay.md)",
    )


def _in_columns(line: str) -> bool:
    names, delimiter = split_names(line)
    return bool(names) and not delimiter
