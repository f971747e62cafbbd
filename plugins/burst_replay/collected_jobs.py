# SPDX-License-Identifier: MIT
"""Collects the jobs of a log, and counts by reason what is none."""

from __future__ import annotations

import itertools
from array import array
from collections import Counter
from collections.abc import Iterable

import msgspec

from burst.model.ranks import parse_hostlist
from burst_replay.trace import (
    LONGEST_S,
    LeftOut,
    Machine,
    SeenUse,
    Trace,
    TraceJob,
    check_cores,
    trace_jobs,
)

_MADE_UP = 2**32
"""Users without a number get one from here on, which no user has (uid_t)."""
_MOST_HOSTLISTS = 50_000
"""So many are looked at: how many nodes are named is a lower bound anyway."""
_NO_HOSTS = "None assigned"
"""What sacct shows of a job without nodes."""
_MOST_HOSTS = 100_000


class NoTime(ValueError):
    """A time is not there or cannot be read: leave the job out as such."""


class LoggedJob(msgspec.Struct, gc=False):
    """A job as its record tells it. Times are in seconds since the epoch."""

    submit: float
    run_time: float
    cores: int
    start: float = 0.0
    """0 where it is not known."""
    limit: float = 0.0
    """0 for none."""
    nodes: int = 0
    """0 where it is not known."""
    hosts: str = ""
    """The names of its nodes, as a hostlist (RFC 29)."""
    user: str = ""
    userid: int = 0
    name: str = ""
    queue: str = ""
    bank: str = ""
    key: str = ""
    """Of this run of this job alone; empty where the record does not say which."""
    whole: str = ""
    """The heterogeneous job of which it is a component, else empty."""


class CollectedJobs:
    """The jobs of a log, in its order."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._records: list[TraceJob] = []
        self._starts = array("d")
        self._keys: set[str] = set()
        self._unfinished: dict[str, LeftOut] = {}
        self._wholes: dict[str, int] = {}
        self._users: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self._hosts: set[str] = set()
        self._node_cores = 0
        self._left_out: Counter[LeftOut] = Counter()
        self._examples: dict[LeftOut, str] = {}

    def leave_out(self, reason: LeftOut, count: int = 1) -> None:
        """Count records that are no jobs."""
        self._left_out[reason] += count

    def leave_out_unfinished(self, reason: LeftOut, key: str) -> None:
        """Count a job that has not ended, unless a later record tells its end.

        `key` is as in `LoggedJob`.
        """
        if not key:
            self._left_out[reason] += 1
            return
        if key in self._unfinished:
            self._left_out[LeftOut.REPEATED] += 1
        self._unfinished[key] = reason

    def leave_out_broken(self, where: str, error: Exception) -> None:
        """Count what cannot be read. `where` is a place such as `line 4`."""
        missing = isinstance(error, NoTime)
        reason = LeftOut.NO_TIME if missing else LeftOut.UNREADABLE
        self._left_out[reason] += 1
        self._examples.setdefault(reason, f"{where}: {error}")

    def add(self, found: LoggedJob) -> None:
        """Take a job that ended. Raises ValueError if it cannot be one."""
        # Also false for NaN, each by itself: a sum or maximum may leave it out.
        if not (
            0 <= found.submit < LONGEST_S
            and 0 <= found.start < LONGEST_S
            and -LONGEST_S < found.run_time < LONGEST_S
            and 0 <= found.limit < LONGEST_S
        ):
            raise NoTime("a time that cannot be")
        check_cores(found.cores)
        if found.key:
            if found.key in self._keys:
                self._left_out[LeftOut.REPEATED] += 1
                return
            self._keys.add(found.key)
        if found.run_time <= 0:
            back = found.run_time < 0
            reason = LeftOut.ENDED_BEFORE_START if back else LeftOut.NEVER_RAN
            self._left_out[reason] += 1
        elif found.cores <= 0:
            self._left_out[LeftOut.NO_CORES] += 1
        elif found.whole in self._wholes:
            self._join(self._wholes[found.whole], found)
        else:
            self._append(found)

    def trace(
        self,
        machine: Machine | None = None,
        started: float | None = None,
        numbers_of_host: bool = False,
        notes: Iterable[str] = (),
    ) -> Trace:
        """Return all; it starts at `started`, else when its first job was submitted."""
        for key, reason in self._unfinished.items():
            ended = key in self._keys
            self._left_out[LeftOut.REPEATED if ended else reason] += 1
        self._unfinished.clear()
        records = self._records
        first = min((record.submit for record in records), default=0.0)
        return Trace(
            name=self._name,
            jobs=trace_jobs(records, first if started is None else 0.0),
            machine=machine,
            numbers_of_host=numbers_of_host,
            users=self._users,
            started=first if started is None else started,
            left_out={
                why: self._left_out[why] for why in LeftOut if why in self._left_out
            },
            examples=self._examples,
            seen=SeenUse(self._most_cores(), self._named_nodes(), self._node_cores),
            notes=tuple(notes),
        )

    def _append(self, found: LoggedJob) -> None:
        if found.whole:
            self._wholes[found.whole] = len(self._records)
        self._starts.append(found.start)
        self._records.append(
            TraceJob(
                submit=found.submit,
                run_time=found.run_time,
                cores=found.cores,
                limit=found.limit,
                userid=self._userid(found),
                name=self._shared(found.name),
                queue=self._shared(found.queue),
                bank=self._shared(found.bank),
            )
        )
        self._note_nodes(found)

    def _join(self, place: int, found: LoggedJob) -> None:
        """Add a component to its heterogeneous job: it starts and waits with it."""
        first = self._records[place]
        self._records[place] = msgspec.structs.replace(
            first,
            cores=check_cores(first.cores + found.cores),
            run_time=max(first.run_time, found.run_time),
            limit=max(first.limit, found.limit),
        )
        self._left_out[LeftOut.COMPONENT] += 1
        self._note_nodes(found)

    def _note_nodes(self, found: LoggedJob) -> None:
        if found.nodes > 0:
            cores = -(-found.cores // found.nodes)
            self._node_cores = max(self._node_cores, cores)
        if found.hosts and len(self._hosts) < _MOST_HOSTLISTS:
            self._hosts.add(found.hosts)

    def _userid(self, found: LoggedJob) -> int:
        if not found.user:
            return found.userid
        number = found.userid or _MADE_UP + len(self._users)
        return self._users.setdefault(found.user, number)

    def _shared(self, text: str) -> str:
        """Return one object for all equal texts: a trace may have millions."""
        return self._texts.setdefault(text, text)

    def _most_cores(self) -> int:
        """Return how many cores were in use at once, at most."""
        spans = [
            (start, start + record.run_time, record.cores)
            for start, record in zip(self._starts, self._records, strict=True)
            if start > 0
        ]
        ends = sorted((end, cores) for _, end, cores in spans)
        spans.sort()
        # A job of which the start is not known may have been alone.
        most = max((record.cores for record in self._records), default=0)
        used = ended = 0
        for start, _, cores in spans:
            while ends[ended][0] <= start:
                used -= ends[ended][1]
                ended += 1
            used += cores
            most = max(most, used)
        return most

    def _named_nodes(self) -> int:
        """Return how many hosts the records name."""
        names: set[str] = set()
        for text in self._hosts:
            try:
                found = parse_hostlist(text, _MOST_HOSTS)
            except ValueError:
                continue  # What is no hostlist names no node.
            if text != _NO_HOSTS:
                names.update(found)
        return len(names)


def is_remark(line: str) -> bool:
    """Tell whether a line of a log is empty, a comment or a rule such as `----`."""
    return line.startswith("#") or not line.strip(" \t-=_*+|~")


def first_lines(lines: Iterable[str], most: int) -> tuple[list[str], Iterable[str]]:
    """Return the first lines, and all of them again."""
    rest = iter(lines)
    head = list(itertools.islice(rest, most))
    return head, itertools.chain(head, rest)
