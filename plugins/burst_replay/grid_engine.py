# SPDX-License-Identifier: MIT
"""The accounting file of Grid Engine: Sun's, Oracle's, Son of, Univa's and Altair's.

A line a job, or a task of an array; 45 fields with colons between, and Univa's have
more. Univa counts milliseconds. Source: accounting(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from burst_replay.collected_jobs import CollectedJobs, LoggedJob, NoTime, is_remark
from burst_replay.log_times import from_epoch, parse_duration
from burst_replay.trace import LeftOut, Trace

_QUEUE, _HOST, _OWNER, _NAME, _JOB, _SUBMIT, _START, _END = 0, 1, 3, 4, 5, 8, 9, 10
_PROJECT, _SLOTS, _TASK, _PE_TASK = 31, 34, 35, 41
_FEWEST = 36
# In the category, which may have colons of its own in a time such as 24:00:00.
_LIMIT = re.compile(r"\b[hs]_rt=(\d+:\d\d:\d\d(?=[, :]|\Z)|\d+)")
_PE_TASK_ID = re.compile(r"\d+\.[^\d.]")


def is_grid_engine(line: str) -> bool:
    """Tell whether a line is a record of the accounting file."""
    fields = line.split(":", _FEWEST)
    numbers = fields[_SUBMIT : _END + 1]
    return len(fields) >= _FEWEST and all(text.isdecimal() for text in numbers)


def read_grid_engine(name: str, lines: Iterable[str]) -> Trace:
    """Return the jobs and tasks of arrays that ran to an end."""
    found = CollectedJobs(name)
    for number, line in enumerate(lines, 1):
        if is_remark(line):
            continue
        try:
            _take(found, line)
        except ValueError as error:
            found.leave_out_broken(f"line {number}", error)
    return found.trace()


def _take(found: CollectedJobs, line: str) -> None:
    """Take in a record. Raises ValueError."""
    fields = line.split(":")
    if len(fields) < _FEWEST:
        raise ValueError(f"{len(fields)} of {_FEWEST} fields")
    # A task of a tightly integrated parallel job runs on slots of that job.
    if len(fields) > _PE_TASK and _PE_TASK_ID.match(fields[_PE_TASK]):
        found.leave_out(LeftOut.STEP)
        return
    submit, start, end = (
        from_epoch(float(fields[place])) for place in (_SUBMIT, _START, _END)
    )
    key = f"{fields[_JOB]}.{fields[_TASK]}/{submit}/{start}"
    if not start or not end:
        found.add(LoggedJob(submit=submit, run_time=0.0, cores=0, key=key))
        return
    if not submit:
        raise NoTime("it has no submission_time")
    limit = _LIMIT.search(line)
    project = fields[_PROJECT]
    found.add(
        LoggedJob(
            submit=submit,
            run_time=end - start,
            cores=int(fields[_SLOTS]),
            start=start,
            limit=parse_duration(limit[1]) if limit else 0.0,
            hosts=fields[_HOST],
            user=fields[_OWNER],
            name=fields[_NAME],
            queue=fields[_QUEUE],
            bank="" if project == "NONE" else project,
            key=key,
        )
    )
