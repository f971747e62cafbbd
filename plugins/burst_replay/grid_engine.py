# SPDX-License-Identifier: MIT
"""Read the accounting file of Grid Engine: Sun's, Oracle's, Son of, Univa's, Altair's.

Each line is a job, or a task of an array: 45 fields with colons between, and more in
Univa's. Univa counts milliseconds. Source: accounting(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from burst_replay.collected_jobs import CollectedJobs, Row
from burst_replay.trace import LeftOut

_FIELDS = {
    "queue": 0,
    "user": 3,
    "name": 4,
    "submit": 8,
    "start": 9,
    "end": 10,
    "bank": 31,
    "cores": 34,
}
_JOB, _TASK, _PE_TASK = 5, 35, 41
_FEWEST = 36
# The limit is in the field category, where a time such as 24:00:00 has colons, too.
_LIMIT = re.compile(r"\b[hs]_rt=(\d+:\d\d:\d\d(?=[, :]|\Z)|\d+)")
_PE_TASK_ID = re.compile(r"\d+\.[^\d.]")


def is_grid_engine(line: str) -> bool:
    """Tell whether a line is a record of the accounting file."""
    fields = line.split(":", _FEWEST)
    times = fields[_FIELDS["submit"] : _FIELDS["end"] + 1]
    return len(fields) >= _FEWEST and all(text.isdecimal() for text in times)


def read_grid_engine(found: CollectedJobs, lines: Iterable[str]) -> None:
    """Read the jobs, and the tasks of arrays, that ran to an end."""
    found.read_lines(lines, _take)


def _take(found: CollectedJobs, line: str) -> None:
    """Take in a record. Raises ValueError."""
    fields = line.split(":")
    if len(fields) < _FEWEST:
        raise ValueError(f"{len(fields)} of {_FEWEST} fields")
    # A task of a tightly integrated parallel job runs on slots of that job.
    if len(fields) > _PE_TASK and _PE_TASK_ID.match(fields[_PE_TASK]):
        found.leave_out(LeftOut.STEP)
        return
    row: Row = {name: fields[place] for name, place in _FIELDS.items()}
    limit = _LIMIT.search(line)
    row["limit"] = limit[1] if limit else ""
    if row["bank"] == "NONE":
        row["bank"] = ""
    times = f"{row['submit']}/{row['start']}"
    found.add(row, f"{fields[_JOB]}.{fields[_TASK]}/{times}")
