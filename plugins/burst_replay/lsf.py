# SPDX-License-Identifier: MIT
"""The accounting log of LSF, `lsb.acct`: a JOB_FINISH record a job.

Fields are separated by blanks; texts are in quotation marks, of which two stand for
one. Lists are preceded by how many they have. Source: lsb.acct(5) of IBM Spectrum LSF
10.1; the order of the last fields is that of logs: runLimit is before options3.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable

from burst_replay.collected_jobs import CollectedJobs, LoggedJob, NoTime, is_remark
from burst_replay.log_times import from_epoch
from burst_replay.trace import LeftOut, Trace

_LINE = re.compile(r'"[A-Z][A-Z0-9_]*" "[0-9.]+" \d+ ')
_KIND, _EVENT_TIME, _JOB, _USERID, _SUBMIT, _START, _USER, _QUEUE, _ASKED_HOSTS = (
    *(0, 2, 3, 4, 7),
    *(10, 11, 12, 22),
)
# From the field jStatus on, which follows the hosts.
_NAME, _PROJECT, _INDEX, _SUBMIT_EXT = 2, 24, 29, 53
_ENDED = 0x60
"""JOB_STAT_EXIT and JOB_STAT_DONE in jStatus; others may be added to them."""
_BEFORE_LIMIT = 3
"""runLimit, options3 and avgMem are before effectiveResReq, which is no number."""
_USAGE_FIELDS = 5
_INTEGER = re.compile(r"-?\d+\Z")


def is_lsf(line: str) -> bool:
    """Tell whether a line is a record of LSF."""
    return _LINE.match(line) is not None


def read_lsf(name: str, lines: Iterable[str]) -> Trace:
    """Return the jobs that ran to an end."""
    found = CollectedJobs(name)
    for number, line in enumerate(lines, 1):
        if is_remark(line):
            continue
        where = f"line {number}"
        if not is_lsf(line):
            found.leave_out_broken(where, ValueError("it is no record of LSF"))
            continue
        if not line.startswith('"JOB_FINISH" '):
            found.leave_out(LeftOut.OTHER)
            continue
        try:
            rows = csv.reader([line], delimiter=" ", skipinitialspace=True)
            _take(found, next(rows))
        except IndexError:
            found.leave_out_broken(where, ValueError("it is cut off"))
        except csv.Error as error:
            found.leave_out_broken(where, ValueError(str(error)))
        except ValueError as error:
            found.leave_out_broken(where, error)
    return found.trace()


def _take(found: CollectedJobs, fields: list[str]) -> None:
    """Take in a record. Raises ValueError or IndexError."""
    at = _ASKED_HOSTS + 1 + _length(fields, _ASKED_HOSTS)
    count = _length(fields, at)
    hosts = _slots(fields[at + 1 : at + 1 + count])
    status = at + 1 + count
    submit, start, end = (
        from_epoch(float(fields[place])) for place in (_SUBMIT, _START, _EVENT_TIME)
    )
    # Old versions end before these two.
    more = [*fields[status:], *[""] * (_INDEX + 1)]
    key = f"{fields[_JOB]}[{more[_INDEX]}]/{submit}/{start}"
    if not int(more[0]) & _ENDED:
        raise ValueError("a list in it is longer or shorter than it says")
    if not start:
        found.add(LoggedJob(submit=submit, run_time=0.0, cores=0, key=key))
        return
    if not submit:
        raise NoTime("it has no submitTime")
    found.add(
        LoggedJob(
            submit=submit,
            run_time=end - start,
            cores=sum(hosts.values()),
            start=start,
            limit=_run_limit(fields, status),
            nodes=len(hosts),
            hosts=",".join(hosts),
            user=fields[_USER],
            userid=int(fields[_USERID]),
            name=more[_NAME],
            queue=fields[_QUEUE],
            bank=more[_PROJECT],
            key=key,
        )
    )


def _length(fields: list[str], place: int) -> int:
    """Return how long the list is that follows. Raises ValueError, IndexError."""
    count = int(fields[place])
    if not 0 <= count <= len(fields) - place:
        raise IndexError
    return count


def _slots(texts: list[str]) -> Counter[str]:
    """Return the slots on each host: `a` for one, `16*a` for many (SHORT_EVENTFILE)."""
    found: Counter[str] = Counter()
    for text in texts:
        many, star, host = text.partition("*")
        if star and many.isdecimal():
            found[host] += int(many)
        else:
            found[text] += 1
    return found


def _run_limit(fields: list[str], status: int) -> float:
    """Return the run limit in seconds, 0 where there is none, as in older versions."""
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
