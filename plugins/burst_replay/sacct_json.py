# SPDX-License-Identifier: MIT
"""What `sacct --json` of Slurm prints, since 21.08.

Numbers are plain, or since 23.02 `{"set": .., "infinite": .., "number": ..}`; a state
is a text, or since 23.11 a list of flags. Limits are minutes. Steps are in their jobs.
Source: PARSER_ARRAY(JOB) in src/plugins/data_parser/v0.0.*/parsers.c of Slurm.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from burst.decode import from_json
from burst_replay.collected_jobs import CollectedJobs, LoggedJob, NoTime
from burst_replay.log_times import from_epoch
from burst_replay.sacct import RUNS, WAITS
from burst_replay.trace import LeftOut, Trace

_NO_VAL = 0xFFFFFFFE


class _Number(msgspec.Struct, gc=False):
    set: bool = True
    infinite: bool = False
    number: int | float = 0

    @property
    def value(self) -> float:
        return float(self.number) if self.set and not self.infinite else 0.0


_AnyNumber = int | float | _Number | None


class _Times(msgspec.Struct, gc=False):
    submission: _AnyNumber = None
    start: _AnyNumber = None
    end: _AnyNumber = None
    elapsed: _AnyNumber = None
    limit: _AnyNumber = None


class _State(msgspec.Struct, gc=False):
    current: str | list[str] | None = None


class _Count(msgspec.Struct, gc=False):
    type: str | None = None
    count: _AnyNumber = None


class _Tres(msgspec.Struct, gc=False):
    allocated: list[_Count] | None = None
    requested: list[_Count] | None = None

    def count(self, kind: str) -> int:
        """Return how many of a type, `cpu` or `node`, were allocated, else asked."""
        for counts in (self.allocated, self.requested):
            for each in counts or ():
                if each.type == kind and _value(each.count) > 0:
                    return int(_value(each.count))
        return 0


class _Required(msgspec.Struct, gc=False):
    CPUs: _AnyNumber = None


class _Het(msgspec.Struct, gc=False):
    job_id: _AnyNumber = None


class _Association(msgspec.Struct, gc=False):
    user: str | None = None
    account: str | None = None


class _Job(msgspec.Struct, gc=False):
    time: _Times
    job_id: _AnyNumber = None
    state: _State | str | list[str] | None = None
    tres: _Tres | None = None
    required: _Required | None = None
    het: _Het | None = None
    association: _Association | None = None
    allocation_nodes: _AnyNumber = None
    nodes: str | None = None
    user: str | None = None
    account: str | None = None
    partition: str | None = None
    name: str | None = None
    cluster: str | None = None

    @property
    def states(self) -> frozenset[str]:
        """Return its state and the flags of it."""
        state = self.state.current if isinstance(self.state, _State) else self.state
        texts = [state] if isinstance(state, str) else state or ()
        return frozenset(text.upper() for text in texts)


class _Answer(msgspec.Struct):
    jobs: list[msgspec.Raw]


def read_sacct_json(name: str, documents: Iterable[str]) -> Trace:
    """Return the jobs that ran to an end, of each document."""
    found = CollectedJobs(name)
    for number, document in enumerate(documents, 1):
        if not document.strip():
            continue
        try:
            rows = _rows(document)
        except (msgspec.MsgspecError, RecursionError) as error:
            found.leave_out_broken(f"line {number}", ValueError(str(error)))
            continue
        for place, row in enumerate(rows, 1):
            where = f"line {number}" if len(rows) == 1 else f"job {place}"
            try:
                _take(found, from_json(row, _Job))
            except (msgspec.MsgspecError, RecursionError) as error:
                found.leave_out_broken(where, ValueError(str(error)))
            except ValueError as error:
                found.leave_out_broken(where, error)
    return found.trace()


def _rows(document: str) -> list[msgspec.Raw]:
    """Return the jobs of an answer or a list, or the one job. Raises MsgspecError."""
    raw = from_json(document, msgspec.Raw)
    if document.lstrip().startswith("["):
        return from_json(raw, list[msgspec.Raw])
    keys = from_json(raw, dict[str, msgspec.Raw])
    return from_json(raw, _Answer).jobs if "jobs" in keys else [raw]


def _take(found: CollectedJobs, job: _Job) -> None:
    """Take in a job. Raises ValueError."""
    times, states = job.time, job.states
    submit, start, end = map(_value, (times.submission, times.start, times.end))
    number = int(_value(job.job_id))
    run = f"{submit}/{job.cluster or ''}"
    key = f"{number}/{run}" if number else ""
    if states & WAITS and not states & {"REQUEUED"}:
        found.leave_out_unfinished(LeftOut.STILL_WAITED, key)
    elif states & RUNS or (not states and start > 0 and end <= 0):
        found.leave_out_unfinished(LeftOut.STILL_RAN, key)
    elif not submit:
        raise NoTime("it has no time.submission")
    else:
        logged = LoggedJob(
            submit=from_epoch(submit),
            run_time=_run_time(times, start, end),
            cores=0,
            start=from_epoch(start),
            limit=_limit(times),
            key=key,
        )
        _describe(logged, job)
        whole = int(_value(job.het.job_id)) if job.het else 0
        logged.whole = f"{whole}/{run}" if whole else ""
        found.add(logged)


def _run_time(times: _Times, start: float, end: float) -> float:
    if times.elapsed is not None:
        return _value(times.elapsed)
    return end - start if start > 0 and end > 0 else 0.0


def _limit(times: _Times) -> float:
    minutes = _value(times.limit)
    return 60.0 * minutes if 0 < minutes < _NO_VAL else 0.0


def _describe(logged: LoggedJob, job: _Job) -> None:
    """Add what a job says besides times."""
    tres, association = job.tres or _Tres(), job.association or _Association()
    required = job.required or _Required()
    logged.nodes = int(_value(job.allocation_nodes)) or tres.count("node")
    logged.cores = tres.count("cpu") or int(_value(required.CPUs))
    logged.user = job.user or association.user or ""
    logged.bank = job.account or association.account or ""
    logged.queue = job.partition or ""
    logged.name = job.name or ""
    logged.hosts = job.nodes or ""


def _value(number: _AnyNumber) -> float:
    """Return a number, 0 where it is not set."""
    if isinstance(number, _Number):
        return number.value
    return float(number or 0)
