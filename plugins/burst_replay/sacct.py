# SPDX-License-Identifier: MIT
"""What `sacct --parsable2` of Slurm prints, with any fields, and flux-fiction's CSV.

The fields are as sacct(1) has them; the first line names them. A job has a line, and
with `--duplicates` one for each time that it was requeued; its steps have others.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator

from burst_replay.collected_jobs import CollectedJobs, LoggedJob, NoTime, is_remark
from burst_replay.log_times import is_known, parse_duration, parse_limit, parse_moment
from burst_replay.sacct_columns import Columns, columns_of
from burst_replay.trace import LeftOut, Trace

# "JOB STATE CODES" of sacct(1) and squeue(1), long and short. All others have ended.
RUNS = frozenset(
    (
        *("RUNNING", "R", "SUSPENDED", "S", "CONFIGURING", "CF", "COMPLETING", "CG"),
        *("STOPPED", "ST", "SIGNALING", "SI", "STAGE_OUT", "SO", "POWER_UP_NODE"),
    )
)
WAITS = frozenset(
    (
        *("PENDING", "PD", "REQUEUE_HOLD", "RH", "REQUEUE_FED", "RF"),
        *("SPECIAL_EXIT", "SE", "RESV_DEL_HOLD", "RD"),
    )
)
_STEP_NAMES = frozenset(("batch", "extern", "interactive"))
_UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}
_TRES_CPU = re.compile(r"(?:^|,)cpu=([0-9.]+[KMG]?)")
_TRES_NODE = re.compile(r"(?:^|,)node=([0-9.]+[KMG]?)")


def read_sacct(name: str, lines: Iterable[str]) -> Trace:
    """Return the jobs that ran to an end.

    Raises TraceError if a first line lacks a field without which no job can be read.
    """
    found = CollectedJobs(name)
    notes: dict[str, None] = {}
    for where, columns, fields in _rows(found, lines):
        notes.update(dict.fromkeys(columns.notes))
        try:
            _take_row(found, columns, fields)
        except ValueError as error:
            found.leave_out_broken(where, error)
    return found.trace(notes=notes)


def parse_count(text: str) -> int:
    """Return a number such as `64` or `2K`, 0 for none. Raises ValueError."""
    if text.isdecimal():
        return int(text)
    if not is_known(text):
        return 0
    unit = _UNITS.get(text[-1:].upper(), 1)
    try:
        return int(float(text if unit == 1 else text[:-1]) * unit)
    except (OverflowError, ValueError) as error:
        raise ValueError(f"{text!r} is no number") from error


def _rows(
    found: CollectedJobs, lines: Iterable[str]
) -> Iterator[tuple[str, Columns, list[str]]]:
    """Yield where each record is, which fields it has, and these.

    A text in it may have an end of line, such as a comment: lines that are too short
    are joined, if that makes a whole one.
    """
    columns: Columns | None = None
    held: list[str] = []
    held_at = ""
    for number, line in enumerate(lines, 1):
        if is_remark(line):
            continue
        where = f"line {number}"
        # Where files were put together, their first lines are in the middle.
        if columns is None or "Submit" in line or "Elapsed" in line:
            header = columns_of(line)
            if header is not None:
                columns = header
                continue
        if columns is None:
            found.leave_out_broken(
                where, ValueError("it is before the names of fields")
            )
            continue
        try:
            fields = columns.fields(line)
            if len(fields) < columns.count:
                held_at = held_at if held else where
                held.append(line)
                fields = columns.fields(" ".join(held))
                if len(fields) < columns.count:
                    continue
                held.clear()
                where = held_at
        except csv.Error as error:
            found.leave_out_broken(where, ValueError(str(error)))
            continue
        _leave_out_short(found, columns, held, held_at)
        yield where, columns, fields
    if columns is not None:
        _leave_out_short(found, columns, held, held_at)


def _leave_out_short(
    found: CollectedJobs, columns: Columns, held: list[str], where: str
) -> None:
    """Count lines that were too short and made no record together."""
    if held:
        count = len(columns.fields(held[0]))
        found.leave_out_broken(where, ValueError(f"{count} of {columns.count} fields"))
        found.leave_out(LeftOut.UNREADABLE, len(held) - 1)
        held.clear()


def _take_row(found: CollectedJobs, columns: Columns, fields: list[str]) -> None:
    """Take in a record. Raises ValueError."""
    if len(fields) == columns.count:
        _take(found, columns, fields)
        return
    for row in columns.joined(fields):
        try:
            _take(found, columns, row)
        except ValueError:
            continue
        return
    raise ValueError(f"{len(fields)} fields instead of {columns.count}")


def _take(found: CollectedJobs, columns: Columns, fields: list[str]) -> None:
    """Take in a record with a value for each field. Raises ValueError."""
    job_id = _cell(fields, columns.job)
    if _is_step(columns, fields, job_id):
        found.leave_out(LeftOut.STEP)
        return
    submit, start = _cell(fields, columns.submit), _cell(fields, columns.start)
    run = f"/{submit}/{_cell(fields, columns.cluster)}"
    key = f"{job_id}{run}" if job_id else ""
    # Such as `CANCELLED by 1000`, and `CANCELLED+` where it was cut off.
    state = _cell(fields, columns.state).partition(" ")[0].rstrip("+").upper()
    has_end = columns.end < 0 or is_known(_cell(fields, columns.end))
    if state in WAITS:
        found.leave_out_unfinished(LeftOut.STILL_WAITED, key)
    elif state in RUNS:
        found.leave_out_unfinished(LeftOut.STILL_RAN, key)
    elif columns.start >= 0 and not is_known(start):
        found.add(LoggedJob(submit=0.0, run_time=0.0, cores=0, key=key))
    elif not state and not has_end:
        found.leave_out_unfinished(LeftOut.STILL_RAN, key)
    else:
        job = LoggedJob(
            submit=parse_moment(submit),
            run_time=_run_time(columns, fields, start),
            cores=0,
            start=parse_moment(start) if start else 0.0,
            key=key,
        )
        _describe(job, columns, fields)
        base, plus, offset = job_id.partition("+")
        if plus and offset.isdecimal():
            job.whole = f"{base}{run}"
        found.add(job)


def _is_step(columns: Columns, fields: list[str], job_id: str) -> bool:
    """Tell whether a record is of a step: `12.batch`, `12_3.0`. Steps have no user."""
    if job_id:
        return "." in job_id
    if _cell(fields, columns.name) in _STEP_NAMES:
        return True
    return columns.user >= 0 and not _cell(fields, columns.user)


def _run_time(columns: Columns, fields: list[str], start: str) -> float:
    elapsed = _cell(fields, columns.elapsed)
    if elapsed == "0" or is_known(elapsed):
        return parse_duration(elapsed)
    end = _cell(fields, columns.end)
    if not is_known(end):
        raise NoTime("it has neither Elapsed nor End")
    return parse_moment(end) - parse_moment(start)


def _describe(job: LoggedJob, columns: Columns, fields: list[str]) -> None:
    """Add what a record says besides times. Raises ValueError."""
    job.nodes = _count(fields, columns.nodes) or _tres(fields, columns.tres, _TRES_NODE)
    cores = (
        _count(fields, columns.cpus)
        or _tres(fields, columns.tres, _TRES_CPU)
        or _count(fields, columns.cpus_asked)
        or _tres(fields, columns.tres_asked, _TRES_CPU)
    )
    if columns.only_nodes:
        cores = job.nodes
    # Each node has a core at least, also where one is counted for all.
    job.cores = max(cores, job.nodes) if cores else 0
    if columns.limit_minutes >= 0:
        job.limit = parse_limit(_cell(fields, columns.limit_minutes), 60.0)
    else:
        job.limit = parse_limit(_cell(fields, columns.limit), 60.0)
    uid = _cell(fields, columns.uid)
    job.userid = int(uid) if uid.isdecimal() else 0
    job.user = _cell(fields, columns.user)
    job.name = _cell(fields, columns.name)
    job.queue = _cell(fields, columns.queue)
    job.bank = _cell(fields, columns.bank)
    job.hosts = _cell(fields, columns.hosts)


def _cell(fields: list[str], place: int) -> str:
    return fields[place].strip() if place >= 0 else ""


def _count(fields: list[str], places: tuple[int, ...]) -> int:
    """Return the first number that is not 0."""
    for place in places:
        count = parse_count(fields[place].strip())
        if count > 0:
            return count
    return 0


def _tres(fields: list[str], places: tuple[int, ...], kind: re.Pattern[str]) -> int:
    """Return how many of a kind trackable resources have: `cpu=64,mem=4G,node=2`."""
    for place in places:
        found = kind.search(fields[place])
        if found:
            return parse_count(found[1])
    return 0
