# SPDX-License-Identifier: MIT
"""Read the accounting log of LSF, `lsb.acct`: each job has a JOB_FINISH record.

Fields are separated by blanks; texts are in quotation marks, and a doubled mark stands
for one. The length of a list is before it. Source: lsb.acct(5) of IBM Spectrum LSF
10.1; the order of the last fields is that of real logs: runLimit is before options3.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable

from burst_replay.collected_jobs import CollectedJobs, Row
from burst_replay.trace import LeftOut

_LINE = re.compile(r'"[A-Z][A-Z0-9_]*" "[0-9.]+" \d+ ')
_FIELDS = {"end": 2, "userid": 4, "submit": 7, "start": 10, "user": 11, "queue": 12}
_JOB, _ASKED_HOSTS = 3, 22
# Places from the field jStatus on, which follows the hosts.
_NAME, _PROJECT, _INDEX, _SUBMIT_EXT = 2, 24, 29, 53
_ENDED = 0x60
"""The bits JOB_STAT_EXIT and JOB_STAT_DONE of jStatus; others may be set, too."""
_BEFORE_LIMIT = 3
"""runLimit, options3 and avgMem are before effectiveResReq, which is not a number."""
_USAGE_FIELDS = 5
_INTEGER = re.compile(r"-?\d+\Z")


def is_lsf(line: str) -> bool:
    """Tell whether a line is a record of LSF."""
    return _LINE.match(line) is not None


def read_lsf(found: CollectedJobs, lines: Iterable[str]) -> None:
    """Read the jobs that ran to an end."""
    found.read_lines(lines, _take)


def _take(found: CollectedJobs, line: str) -> None:
    """Take in a record. Raises ValueError, IndexError or csv.Error."""
    if not is_lsf(line):
        raise ValueError("it is not a record of LSF")
    if not line.startswith('"JOB_FINISH" '):
        found.leave_out(LeftOut.OTHER)
        return
    fields = next(csv.reader([line], delimiter=" ", skipinitialspace=True))
    at = _ASKED_HOSTS + 1 + _length(fields, _ASKED_HOSTS)
    status = at + 1 + _length(fields, at)
    hosts = _slots(fields[at + 1 : status])
    if not int(fields[status]) & _ENDED:
        raise ValueError("a list in it is longer or shorter than it says")
    # Records of old versions end before these fields.
    more = [*fields[status:], *[""] * (_INDEX + 1)]
    row: Row = {
        **{name: fields[place] for name, place in _FIELDS.items()},
        "cores": sum(hosts.values()),
        "limit": _run_limit(fields, status),
        "nodes": len(hosts),
        "name": more[_NAME],
        "bank": more[_PROJECT],
    }
    times = f"{row['submit']}/{row['start']}"
    found.add(row, f"{fields[_JOB]}[{more[_INDEX]}]/{times}")


def _length(fields: list[str], place: int) -> int:
    """Return the length of the list that follows. Raises ValueError, IndexError."""
    count = int(fields[place])
    if not 0 <= count <= len(fields) - place:
        raise IndexError
    return count


def _slots(texts: list[str]) -> Counter[str]:
    """Return the slots on each host; `a` is one, `16*a` many (SHORT_EVENTFILE)."""
    found: Counter[str] = Counter()
    for text in texts:
        many, star, host = text.partition("*")
        known = star and many.isdecimal()
        found[host if known else text] += int(many) if known else 1
    return found


def _run_limit(fields: list[str], status: int) -> float:
    """Return the run limit in seconds; 0 if there is none, as in older versions."""
    try:
        place = status + _SUBMIT_EXT
        place += 1 + 2 * _length(fields, place)
        hosts = _length(fields, place)
        place += 1
        for _ in range(hosts):
            # Newer versions have a sixth field; no host has a number for a name.
            place += _USAGE_FIELDS
            if hosts > 1 and _INTEGER.match(fields[place]):
                place += 1
        while _INTEGER.match(fields[place]):
            place += 1
        return max(0.0, float(int(fields[place - _BEFORE_LIMIT])))
    except (IndexError, ValueError):
        return 0.0
