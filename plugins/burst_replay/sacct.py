# SPDX-License-Identifier: MIT
"""Read the output of Slurm's `sacct --parsable2` with any fields, and flux-fiction's
CSV.

The fields are those of sacct(1); the first line names them. A job has a line, and with
`--duplicates` one for each time that it was requeued; its steps have further lines.
flux-fiction has the same names with commas between, and some of its own (`elapsed_s`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from burst_replay.collected_jobs import CollectedJobs, Row, row_of
from burst_replay.log_times import is_known, parse_count, parse_limit
from burst_replay.trace import LeftOut, TraceError

Record = Mapping[str, str]
"""The fields of a job, by sacct's names in lower case."""

ASK = (
    "sacct --allusers --parsable2 --format=JobID,User,Account,Partition,JobName,State,"
    "Submit,Start,End,Elapsed,Timelimit,NNodes,NCPUS --starttime=..."
)
"""The command that prints all fields that are read."""

_FIELDS: Mapping[str, Sequence[str]] = {
    "submit": ("t_submit", "submit", "eligible", "start"),
    "start": ("start",),
    "end": ("end",),
    "elapsed": ("elapsed_s", "elapsedraw", "elapsed"),
    "user": ("user",),
    "userid": ("uid",),
    "name": ("jobname",),
    "queue": ("partition",),
    "bank": ("account",),
}
# The first of these fields that is not 0 counts.
_CORES = ("ncpus", "alloccpus", "alloctres", "reqcpus", "reqtres")
_NODES = ("nnodes", "allocnodes", "alloctres", "reqtres")
_KNOWN = frozenset(
    (
        *("jobid", "jobidraw", "state", "cluster", "timelimit", "timelimitraw"),
        *(name for names in (*_FIELDS.values(), _CORES, _NODES) for name in names),
    )
)
_FEWEST_KNOWN = 3
# Fields with free text of users, which may have the delimiter in it: sacct does not
# escape it.
_FREE = "jobname", "comment", "admincomment", "submitline", "workdir", "extra", "reason"
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)")
_BY_CSV = frozenset((",", ";", "\t"))
# "JOB STATE CODES" of sacct(1) and squeue(1), long and short. All others have ended.
_RUNS = frozenset(
    (
        *("RUNNING", "R", "SUSPENDED", "S", "CONFIGURING", "CF", "COMPLETING", "CG"),
        *("STOPPED", "ST", "SIGNALING", "SI", "STAGE_OUT", "SO", "POWER_UP_NODE"),
    )
)
_WAITS = frozenset(
    (
        *("PENDING", "PD", "REQUEUE_HOLD", "RH", "REQUEUE_FED", "RF"),
        *("SPECIAL_EXIT", "SE", "RESV_DEL_HOLD", "RD"),
    )
)
_STEP_NAMES = frozenset(("batch", "extern", "interactive"))


def is_sacct(line: str) -> bool:
    """Tell whether a line is the first line of the output of `sacct --parsable2`."""
    return bool(_split_names(line)[1])


def read_sacct(found: CollectedJobs, lines: Iterable[str]) -> None:
    """Read the jobs that ran to an end.

    Raises TraceError if a first line lacks a field that is needed to read any job.
    """
    found.read_lines(lines, _Table().take)


class _Table:
    """Reads records by the field names of the last header line above them."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._delimiter = ""

    def take(self, found: CollectedJobs, line: str) -> None:
        """Take in a line. Raises ValueError, csv.Error or TraceError."""
        # If files were concatenated, header lines are in the middle, too.
        if not self._names or "Submit" in line or "Elapsed" in line:
            names, delimiter = _split_names(line)
            if delimiter:
                self._names, self._delimiter = names, delimiter
                for note in _notes(names):
                    found.note(note)
                return
        if not self._names:
            raise ValueError("it comes before the names of the fields")
        fields = self._fields(line)
        if len(fields) == len(self._names):
            take_record(found, self._record(fields))
            return
        for row in self._joined(fields):
            try:
                take_record(found, self._record(row))
            except ValueError:
                continue
            return
        raise ValueError(f"{len(fields)} fields instead of {len(self._names)}")

    def _record(self, fields: Sequence[str]) -> Record:
        values = map(str.strip, reversed(fields))
        # The first of two with the same name counts.
        return dict(zip(reversed(self._names), values, strict=True))

    def _fields(self, line: str) -> list[str]:
        """Return the fields of a line, maybe too few or too many. Raises csv.Error."""
        if self._delimiter in _BY_CSV:
            rows = csv.reader([line], delimiter=self._delimiter, skipinitialspace=True)
            fields = next(rows, [])
        else:
            fields = line.split(self._delimiter)
        # With --parsable, the last field has a delimiter behind it, too.
        if len(fields) == len(self._names) + 1 and not fields[-1].strip():
            fields.pop()
        return fields

    def _joined(self, fields: list[str]) -> Iterator[Sequence[str]]:
        """Yield the rows that a line with too many fields may mean, if a text has the
        delimiter in it.
        """
        more = len(fields) - len(self._names)
        if more > 0:
            lists = _joined_lists(fields, self._delimiter)
            if len(lists) == len(self._names):
                yield lists
            for name in set(_FREE).intersection(self._names):
                at = self._names.index(name)
                behind = at + more + 1
                text = self._delimiter.join(fields[at:behind])
                yield [*fields[:at], text, *fields[behind:]]


def _joined_lists(fields: Iterable[str], delimiter: str) -> list[str]:
    """Join fields that are in brackets, and the parts of TRES: `cpu=4,mem=2G`."""
    found: list[str] = []
    for field in fields:
        last = found[-1] if found else ""
        if last.count("[") > last.count("]") or ("=" in last and "=" in field):
            found[-1] = f"{last}{delimiter}{field}"
        else:
            found.append(field)
    return found


def _split_names(line: str) -> tuple[list[str], str]:
    """Return the names in a header line of sacct, and the delimiter.

    Both are empty if the line is not a header line.
    """
    before, *rest = _NAME.split(line.strip("\r\n").replace('"', "").lower())
    names, between = rest[::2], {text.strip(" ") for text in rest[1:-1:2]}
    known = sum(name in _KNOWN for name in names)
    if before.strip() or known < _FEWEST_KNOWN or len(between) != 1:
        return [], ""
    return names, between.pop()


def _notes(names: Sequence[str]) -> Iterator[str]:
    """Yield in words which field is used in place of a missing one.

    Raises TraceError if a field is missing and none can replace it.
    """
    has, times = set(names), _FIELDS
    only_nodes = not has.intersection(_CORES)
    missing = []
    if not has.intersection(times["submit"]):
        missing.append("Submit")
    if not (has.intersection(times["elapsed"]) or has.issuperset(("start", "end"))):
        missing.append("Elapsed")
    if only_nodes and not has.intersection(_NODES):
        missing.append("NCPUS")
    if missing:
        raise TraceError(
            f"what sacct printed has no {', no '.join(missing)}",
            f"write it with: {ASK}",
        )
    if not has.intersection(("submit", "t_submit")):
        instead = "Eligible" if "eligible" in has else "Start"
        yield f"it has no Submit: {instead} is used instead"
    if only_nodes:
        yield "it has no NCPUS: a node is counted as one core"


def take_record(found: CollectedJobs, record: Record) -> None:
    """Add the job of a record of Slurm, or count the record. Raises ValueError."""
    job_id = record.get("jobid") or record.get("jobidraw", "")
    if _is_step(record, job_id):
        found.leave_out(LeftOut.STEP)
        return
    row = row_of(record, _FIELDS)
    run = f"/{row.get('submit', '')}/{record.get('cluster', '')}"
    key = f"{job_id}{run}" if job_id else ""
    # A state may be `CANCELLED by 1000`, or `CANCELLED+` if it is cut off.
    states = set(record.get("state", "").upper().replace("+", "").split())
    started = is_known(row.get("start", "?"))
    ended = is_known(row.get("end", "?"))
    if states & _WAITS and "REQUEUED" not in states:
        found.leave_out_unfinished(LeftOut.STILL_WAITED, key)
    elif states & _RUNS or (not states and started and not ended):
        found.leave_out_unfinished(LeftOut.STILL_RAN, key)
    else:
        if started:
            _describe(row, record)
        base, plus, offset = job_id.partition("+")
        whole = base if plus and offset.isdecimal() else record.get("hetjobid", "")
        row["whole"] = f"{whole}{run}" if whole else ""
        found.add(row, key)


def _is_step(record: Record, job_id: str) -> bool:
    """Tell whether a record is a step: `12.batch`, `12_3.0`. Steps have no user."""
    if job_id:
        return "." in job_id
    return record.get("jobname", "") in _STEP_NAMES or not record.get("user", "?")


def _describe(row: Row, record: Record) -> None:
    """Add nodes, cores and limit, which have several fields. Raises ValueError."""
    row["nodes"] = _count(record, _NODES, "node")
    row["cores"] = _count(record, _CORES, "cpu")
    if not record.keys() & set(_CORES):
        row["cores"] = row["nodes"]
    limit = record.get("timelimitraw", record.get("timelimit", ""))
    row["limit"] = parse_limit(limit, 60.0)


def _count(record: Record, names: Iterable[str], kind: str) -> int:
    """Return the first of these fields that is not 0. Raises ValueError.

    A field of trackable resources has several numbers: `cpu=64,mem=4G,node=2`.
    """
    for name in names:
        text = record.get(name, "")
        if name.endswith("tres"):
            found = re.search(rf"(?:^|,){kind}=([0-9.]+[KMG]?)", text)
            text = found[1] if found else ""
        count = parse_count(text)
        if count > 0:
            return count
    return 0
