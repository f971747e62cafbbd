# SPDX-License-Identifier: MIT
"""Collect the jobs of a log, and count by reason the records that are not jobs."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from burst.errors import MALFORMED
from burst_replay.log_times import (
    NoTime,
    is_known,
    parse_count,
    parse_duration,
    parse_limit,
    parse_moment,
)
from burst_replay.trace import (
    MOST_CORES,
    NO_ATTRIBUTES,
    LeftOut,
    Trace,
    TraceJob,
)

Row = dict[str, str | float]
"""The fields of a job, with values as its log writes them: `submit`, `start`, `end`,
`elapsed` (used before `end`), `limit`, `cores`, `nodes`, `user` and `userid`, `name`,
`queue`, `bank`, and `whole`, the heterogeneous job that it is a component of. Fields
that the log does not have are left out."""

_Record = TypeVar("_Record")

_MADE_UP = 2**32
"""Users without a number get numbers from here on, which are no user's (uid_t)."""


class CollectedJobs:
    """The jobs of a log, in its order, and the trace that they become."""

    def __init__(self, name: str) -> None:
        self.trace = Trace(name)
        self._records: list[TraceJob] = []
        self._unfinished: dict[str, tuple[LeftOut, LeftOut]] = {}
        self._wholes: dict[str, int] = {}
        self.known: set[str] = set()
        """The keys of jobs that ended."""
        self.started: float | None = None
        """When submission times count from, in seconds since the epoch; None if they
        are seconds since the epoch themselves."""
        # One object for equal attributes: a trace may have millions of jobs.
        self._attributes: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}

    def read_lines(
        self, lines: Iterable[str], take: Callable[[CollectedJobs, str], None]
    ) -> None:
        """Call `take` with each line that is not a remark."""
        for number, line in enumerate(lines, 1):
            if not is_remark(line):
                self.attempt(f"line {number}", take, line)

    def attempt(
        self,
        where: str,
        take: Callable[[CollectedJobs, _Record], None],
        record: _Record,
    ) -> None:
        """Call `take` with a record; count the record if it cannot be read."""
        try:
            take(self, record)
        except (csv.Error, msgspec.MsgspecError, *MALFORMED) as error:
            missing = isinstance(error, NoTime)
            reason = LeftOut.NO_TIME if missing else LeftOut.UNREADABLE
            self.leave_out(reason)
            self.trace.examples.setdefault(reason, f"{where}: {_why_broken(error)}")

    def note(self, text: str) -> None:
        """Note what holds for all records, once."""
        if text not in self.trace.notes:
            self.trace.notes += (text,)

    def leave_out(self, reason: LeftOut) -> None:
        """Count a record that is not a job of the trace."""
        self.trace.left_out[reason] = self.trace.left_out.get(reason, 0) + 1

    def leave_out_unfinished(
        self, reason: LeftOut, key: str, repeated: LeftOut = LeftOut.REPEATED
    ) -> None:
        """Count a job that has not ended, unless another record has its end.

        `key` is as for `add`. If several records have the key, each but the last is
        counted as `repeated`.
        """
        if not key:
            self.leave_out(reason)
            return
        if key in self._unfinished:
            self.leave_out(repeated)
        self._unfinished[key] = reason, repeated

    def unfinished(self, key: str) -> LeftOut | None:
        """Return why an unfinished job was left out; None if it was not."""
        return self._unfinished.get(key, (None, None))[0]

    def add(
        self, row: Row, key: str = "", attributes: Mapping[str, str] = NO_ATTRIBUTES
    ) -> None:
        """Add a job that ended, or count one that has no start. Raises ValueError.

        `key` is unique for this run of this job; empty if the record has none.
        """
        ran = "start" not in row or is_known(row["start"])
        its = self._attributes.setdefault(tuple(attributes.items()), attributes)
        job = _job_of(row, its) if ran else None
        nodes = parse_count(row.get("nodes", 0))
        if key and key in self.known:
            self.leave_out(LeftOut.REPEATED)
            return
        self.known.add(key)
        if job is None or job.run_time == 0:
            self.leave_out(LeftOut.NEVER_RAN)
        elif job.run_time < 0:
            self.leave_out(LeftOut.ENDED_BEFORE_START)
        elif job.cores <= 0:
            self.leave_out(LeftOut.NO_CORES)
        else:
            self._keep(job, row)
            if nodes:
                each = -(-job.cores // nodes)
                self.trace.node_cores = max(self.trace.node_cores, each)

    def finish(self) -> Trace:
        """Return the trace. Without a known start, it starts with its first job."""
        for key, (reason, repeated) in self._unfinished.items():
            self.leave_out(repeated if key in self.known else reason)
        trace, offset = self.trace, 0.0
        if self.started is None:
            offset = min((record.submit for record in self._records), default=0.0)
        trace.started = offset if self.started is None else self.started
        trace.jobs = _by_submission(self._records, offset)
        left_out = trace.left_out
        trace.left_out = {why: left_out[why] for why in LeftOut if why in left_out}
        return trace

    def _keep(self, job: TraceJob, row: Row) -> None:
        """Add a job, or add a component to its heterogeneous job.

        All components start and wait together.
        """
        whole = str(row.get("whole", ""))
        place = self._wholes.setdefault(whole, len(self._records)) if whole else None
        if place is not None and place < len(self._records):
            first = self._records[place]
            self._records[place] = msgspec.structs.replace(
                first,
                cores=_checked(first.cores + job.cores),
                run_time=max(first.run_time, job.run_time),
                limit=max(first.limit, job.limit),
            )
            self.leave_out(LeftOut.COMPONENT)
            return
        user = str(row.get("user", ""))
        if user:
            number = job.userid or _MADE_UP + len(self.trace.users)
            known = self.trace.users.setdefault(user, number)
            job = msgspec.structs.replace(job, userid=known)
        self._records.append(job)


def is_remark(line: str) -> bool:
    """Tell whether a line of a log is empty, a comment or a rule such as `----`."""
    return line.startswith("#") or not line.strip(" \t-=_*+|~")


def row_of(record: Mapping[str, Any], fields: Mapping[str, Sequence[str]]) -> Row:
    """Return a record as a row. `fields` has the record's keys for each name; the first
    that is there counts.
    """
    row: Row = {}
    for name, places in fields.items():
        for place in places:
            if record.get(place) is not None:
                row[name] = record[place]
                break
    return row


def _job_of(row: Row, attributes: Mapping[str, str]) -> TraceJob:
    """Return the job of a row, before `_by_submission`. Raises ValueError."""
    userid = row.get("userid", 0)
    if isinstance(userid, str):
        userid = userid if userid.isdecimal() else 0
    submit = row.get("submit", "")
    if isinstance(submit, str) and not is_known(submit):
        raise NoTime("it has no time of submission")
    cores = parse_count(row.get("cores", 0))
    name, queue, bank = (
        # One object for equal texts: a trace may have millions of jobs.
        sys.intern(str(row.get(key) or ""))
        for key in ("name", "queue", "bank")
    )
    return TraceJob(
        submit=parse_moment(submit),
        run_time=_run_time(row),
        # Each node has at least one core, even if the log counts fewer.
        cores=_checked(max(cores, parse_count(row.get("nodes", 0))) if cores else 0),
        limit=parse_limit(row.get("limit", 0)),
        userid=int(userid),
        name=name,
        queue=queue,
        bank=bank,
        attributes=attributes,
    )


def _run_time(row: Row) -> float:
    """Return how long a job ran; below 0 if the clock was set back meanwhile."""
    elapsed, end = row.get("elapsed", ""), row.get("end", "")
    if elapsed in (0, "0") or is_known(elapsed):
        return parse_duration(elapsed)
    if not is_known(end):
        raise NoTime("it has neither a run time nor an end")
    return parse_moment(end) - parse_moment(row["start"])


def _checked(cores: int) -> int:
    if cores > MOST_CORES:
        raise ValueError(f"{cores} cores, which no machine has")
    return cores


def _why_broken(error: Exception) -> str:
    """Return what is wrong with a record; Python's own words do not mention it."""
    if isinstance(error, KeyError):
        return f"it has no {error}"
    if isinstance(error, IndexError):
        return "it is cut off"
    if isinstance(error, (ValueError, csv.Error, msgspec.MsgspecError)):
        return str(error)
    return "it is not a record of a job"


def _by_submission(read: list[TraceJob], started: float) -> tuple[TraceJob, ...]:
    """Return the jobs in order of submission, with times from `started` on.

    A job without a time limit gets the longest limit or run time of all, as in many
    schedulers. A job that ran longer than its limit is cut to it, as Flux would do.
    """
    longest = max((max(job.limit, job.run_time) for job in read), default=0.0)
    return tuple(
        msgspec.structs.replace(
            job,
            submit=job.submit - started,
            run_time=min(job.run_time, job.limit or longest),
            limit=job.limit or longest,
            limited=job.limit > 0,
        )
        for job in sorted(read, key=lambda job: job.submit)
    )
