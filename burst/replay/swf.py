# SPDX-License-Identifier: MIT
"""The Standard Workload Format: a line of 18 numbers for each job, `;` for comments.

Source: Chapin and others, JSSPP 1999; https://www.cs.huji.ac.il/labs/parallel/workload
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from burst.replay.trace import (
    LONGEST_S,
    Machine,
    Trace,
    TraceJob,
    check_cores,
    trace_jobs,
)

# Numbers of fields, from 0.
_SUBMIT, _RUN_TIME, _USED, _ASKED, _LIMIT, _USER, _PROGRAM, _QUEUE = (
    *(1, 3, 4, 7),
    *(8, 11, 13, 14),
)
_FIELDS = 18


def read_swf(name: str, lines: Iterable[str]) -> Trace:
    """Return the jobs of a trace. Lines that cannot be read are counted.

    Left out, and counted, are jobs that did not run: their run time is 0 or not known.
    """
    header: dict[str, str] = {}
    records: list[TraceJob] = []
    broken = not_run = 0
    first_broken = ""
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
            record = _read_job(fields)
        except ValueError as error:
            broken += 1
            first_broken = first_broken or f"line {number}: {error}"
            continue
        if record is None:
            not_run += 1
        else:
            records.append(record)
    return Trace(
        name=name,
        jobs=trace_jobs(records, 0.0),
        machine=_machine(header),
        started=_number(header.get("unixstarttime", "")),
        broken=broken,
        not_run=not_run,
        first_broken=first_broken,
    )


def _read_job(fields: list[str]) -> TraceJob | None:
    """Return a job, None if it did not run. Raises ValueError."""
    if len(fields) < _FIELDS:
        raise ValueError(f"{len(fields)} of {_FIELDS} fields")
    submit, run_time = float(fields[_SUBMIT]), float(fields[_RUN_TIME])
    limit = float(fields[_LIMIT])
    # Also false for NaN, each by itself: max() leaves one out that is not the first.
    times = submit, run_time, limit
    if not (submit >= 0 and all(each < LONGEST_S for each in times)):
        raise ValueError("a time that cannot be")
    cores = int(fields[_USED])
    if cores <= 0:
        cores = int(fields[_ASKED])
    check_cores(cores)
    userid, program, queue = fields[_USER], fields[_PROGRAM], fields[_QUEUE]
    if run_time <= 0 or cores <= 0:
        return None
    return TraceJob(
        submit=submit,
        run_time=run_time,
        cores=cores,
        limit=max(0.0, limit),
        userid=int(userid),
        name="" if program == "-1" else program,
        queue="" if queue == "-1" else queue,
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
