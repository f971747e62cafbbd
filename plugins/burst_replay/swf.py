# SPDX-License-Identifier: MIT
"""Read the Standard Workload Format: 18 numbers a line for each job, `;` for comments.

Source: Chapin and others, JSSPP 1999; https://www.cs.huji.ac.il/labs/parallel/workload
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from burst_replay.collected_jobs import CollectedJobs, Row
from burst_replay.trace import LeftOut, Machine

# Numbers of fields, from 0.
_SUBMIT, _RUN_TIME, _USED, _ASKED, _LIMIT = 1, 3, 4, 7, 8
_STATUS, _USER, _PROGRAM, _QUEUE = 10, 11, 13, 14
_FIELDS = 18
_PARTS = frozenset((2, 3, 4))
"""The status of a part of a job that was stopped and continued: the line before its
parts sums them up."""


def is_swf(line: str) -> bool:
    """Tell whether a line is a job, or a comment of the header."""
    if line.startswith(";"):
        return True
    fields = line.split()
    try:
        return len(fields) >= _FIELDS and bool([float(field) for field in fields])
    except ValueError:
        return False


def read_swf(found: CollectedJobs, lines: Iterable[str]) -> None:
    """Read the jobs of a trace, and the size of the machine in its header."""
    header: dict[str, str] = {}

    def take(found: CollectedJobs, line: str) -> None:
        if line.startswith(";"):
            key, _, value = line[1:].partition(":")
            header.setdefault(key.strip().lower(), value)
        else:
            _take(found, line.split())

    found.read_lines(lines, take)
    found.started = _number(header.get("unixstarttime", ""))
    processors = int(_number(header.get("maxprocs", "")))
    # If the number of nodes is missing, each node has one processor.
    nodes = int(_number(header.get("maxnodes", ""))) or processors
    processors = max(processors, nodes)
    if nodes:
        cores = processors // nodes
        # Where nodes differ, as many as have all the processors.
        found.trace.machine = Machine(nodes=-(-processors // cores), cores=cores)
        if processors % nodes:
            note = f"its header says {nodes} nodes with {processors} processors"
            found.note(note)


def _take(found: CollectedJobs, fields: list[str]) -> None:
    """Take in a job. Raises ValueError."""
    if len(fields) < _FIELDS:
        raise ValueError(f"{len(fields)} of {_FIELDS} fields")
    submit, run_time, limit = (
        float(fields[place]) for place in (_SUBMIT, _RUN_TIME, _LIMIT)
    )
    if float(fields[_STATUS]) in _PARTS:
        found.leave_out(LeftOut.STEP)
        return
    if run_time <= 0:
        found.leave_out(LeftOut.NEVER_RAN)
        return
    cores = int(fields[_USED])
    row: Row = {
        "submit": submit,
        "elapsed": run_time,
        "limit": 0.0 if limit < 0 else limit,
        "cores": cores if cores > 0 else int(fields[_ASKED]),
        "userid": int(fields[_USER]),
    }
    for name, place in (("name", _PROGRAM), ("queue", _QUEUE)):
        if fields[place] != "-1":
            row[name] = fields[place]
    found.add(row)


def _number(text: str) -> float:
    """Return the number with which a header's value begins, 0 if it has none."""
    words = text.replace(",", "").split()
    try:
        value = float(words[0]) if words else 0.0
    except ValueError:
        return 0.0
    return value if 0 < value < math.inf else 0.0
