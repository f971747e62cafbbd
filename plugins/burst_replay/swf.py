# SPDX-License-Identifier: MIT
"""The Standard Workload Format: a line of 18 numbers for each job, `;` for comments.

Source: Chapin and others, JSSPP 1999; https://www.cs.huji.ac.il/labs/parallel/workload
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from burst_replay.collected_jobs import CollectedJobs, LoggedJob
from burst_replay.trace import LeftOut, Machine, Trace

# Numbers of fields, from 0.
_SUBMIT, _WAIT, _RUN_TIME, _USED, _ASKED, _LIMIT, _USER, _PROGRAM, _QUEUE = (
    *(1, 2, 3, 4, 7),
    *(8, 11, 13, 14),
)
_FIELDS = 18


def is_swf(line: str) -> bool:
    """Tell whether a line is a job, or a comment of the header."""
    if line.startswith(";"):
        return True
    fields = line.split()
    try:
        return len(fields) >= _FIELDS and bool([float(field) for field in fields])
    except ValueError:
        return False


def read_swf(name: str, lines: Iterable[str]) -> Trace:
    """Return the jobs of a trace. Lines that cannot be read are counted.

    Left out, and counted, are jobs that did not run: their run time is 0 or not known.
    """
    header: dict[str, str] = {}
    found = CollectedJobs(name)
    for number, line in enumerate(lines, 1):
        if line.startswith(";"):
            key, colon, value = line[1:].partition(":")
            if colon:
                header.setdefault(key.strip().lower(), value.strip())
            continue
        fields = line.split()
        if not fields:
            continue
        try:
            _take(found, fields)
        except ValueError as error:
            found.leave_out_broken(f"line {number}", error)
    started = _number(header.get("unixstarttime", ""))
    return found.trace(_machine(header), started)


def _take(found: CollectedJobs, fields: list[str]) -> None:
    """Take in a job. Raises ValueError."""
    if len(fields) < _FIELDS:
        raise ValueError(f"{len(fields)} of {_FIELDS} fields")
    submit, wait, run_time, limit = (
        float(fields[place]) for place in (_SUBMIT, _WAIT, _RUN_TIME, _LIMIT)
    )
    if run_time <= 0:
        found.leave_out(LeftOut.NEVER_RAN)
        return
    cores = int(fields[_USED])
    if cores <= 0:
        cores = int(fields[_ASKED])
    program, queue = fields[_PROGRAM], fields[_QUEUE]
    found.add(
        LoggedJob(
            submit=submit,
            run_time=run_time,
            cores=cores,
            start=submit + wait if wait >= 0 else 0.0,
            # Not max(), which leaves NaN out.
            limit=0.0 if limit < 0 else limit,
            userid=int(fields[_USER]),
            name="" if program == "-1" else program,
            queue="" if queue == "-1" else queue,
        )
    )


def _machine(header: dict[str, str]) -> Machine | None:
    """Return what MaxNodes and MaxProcs say; without nodes, nodes of one processor."""
    processors = int(_number(header.get("maxprocs", "")))
    nodes = int(_number(header.get("maxnodes", ""))) or processors
    if not nodes:
        return None
    return Machine(nodes=nodes, cores=max(1, processors // nodes))


def _number(text: str) -> float:
    """Return the number with which a header's value begins, 0 if it has none."""
    words = text.replace(",", "").split()
    try:
        value = float(words[0]) if words else 0.0
    except ValueError:
        return 0.0
    return value if 0 < value < math.inf else 0.0
