# SPDX-License-Identifier: MIT
"""The first line of what `sacct --parsable2` prints: which field is where.

Source: sacct(1), "Job Accounting Fields"; flux-fiction's `SacctReader`, whose files
have the same names, commas between them, and some of its own (`t_submit`, `elapsed_s`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from burst_replay.trace import TraceError

ASK = (
    "sacct --allusers --parsable2 --format=JobID,User,Account,Partition,JobName,State,"
    "Submit,Start,End,Elapsed,Timelimit,NNodes,NCPUS,NodeList --starttime=..."
)
"""The command that writes all that is read."""

_KNOWN = frozenset(
    (
        *("jobid", "jobidraw", "jobname", "user", "uid", "group", "gid", "account"),
        *("partition", "qos", "cluster", "state", "exitcode", "submit", "eligible"),
        *("start", "end", "elapsed", "elapsedraw", "timelimit", "timelimitraw"),
        *("nnodes", "allocnodes", "reqnodes", "ncpus", "alloccpus", "reqcpus"),
        *("alloctres", "reqtres", "nodelist", "maxrss", "reqmem", "cputime"),
        *("cputimeraw", "ntasks", "ngpus", "t_submit", "elapsed_s"),
    )
)
_FEWEST_KNOWN = 3
# Of what users write into them; a delimiter may be in it, and sacct does not say so.
_FREE = (
    *("jobname", "constraints", "comment", "admincomment", "systemcomment"),
    *("submitline", "workdir", "extra", "reason", "wckey"),
)
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)")
_BY_CSV = frozenset((",", ";", "\t"))


class Columns:
    """Where each field is. A place of -1: there is none."""

    def __init__(self, names: Sequence[str], delimiter: str) -> None:
        """Take the names of the fields. Raises TraceError if one is missing."""
        lower = [name.lower() for name in names]
        self.delimiter = delimiter
        self.count = len(names)
        self._csv = delimiter in _BY_CSV
        self._at = {name: place for place, name in reversed(list(enumerate(lower)))}
        self.job = self._place("jobid", "jobidraw")
        self.submit = self._place("t_submit", "submit", "eligible", "start")
        self.start = self._place("start")
        self.end = self._place("end")
        self.elapsed = self._place("elapsed_s", "elapsedraw", "elapsed")
        self.limit = self._place("timelimit")
        self.limit_minutes = self._place("timelimitraw")
        self.state = self._place("state")
        self.user = self._place("user")
        self.uid = self._place("uid")
        self.name = self._place("jobname")
        self.queue = self._place("partition")
        self.bank = self._place("account")
        self.cluster = self._place("cluster")
        self.hosts = self._place("nodelist")
        self.cpus = self._places("ncpus", "alloccpus")
        self.cpus_asked = self._places("reqcpus")
        self.nodes = self._places("nnodes", "allocnodes")
        self.tres = self._places("alloctres")
        self.tres_asked = self._places("reqtres")
        self._free = self._places(*_FREE)
        self._check()

    @property
    def only_nodes(self) -> bool:
        """Whether no field has a number of cores."""
        return not (self.cpus or self.cpus_asked or self.tres or self.tres_asked)

    @property
    def notes(self) -> list[str]:
        """Return in words which field stands for one that is not there."""
        found = []
        if "submit" not in self._at and "t_submit" not in self._at:
            instead = "Eligible" if "eligible" in self._at else "Start"
            found.append(f"it has no Submit: {instead} is taken for it")
        if self.only_nodes:
            found.append("it has no NCPUS: a node is counted as one core")
        return found

    def fields(self, line: str) -> list[str]:
        """Return the fields of a line, of which there may be too few or too many.

        Raises csv.Error.
        """
        if not self._csv:
            found = line.split(self.delimiter)
        else:
            rows = csv.reader([line], delimiter=self.delimiter, skipinitialspace=True)
            found = next(rows, [])
        # With --parsable, a delimiter is behind the last field, too.
        if len(found) == self.count + 1 and not found[-1].strip():
            found.pop()
        return found

    def joined(self, fields: list[str]) -> list[list[str]]:
        """Return which rows too many fields may be: a text has the delimiter in it."""
        rows = []
        if len(self.delimiter) == 1:
            rows.append(self._joined_lists(fields))
        more = len(fields) - self.count
        for place in self._free:
            text = self.delimiter.join(fields[place : place + more + 1])
            rows.append([*fields[:place], text, *fields[place + more + 1 :]])
        return [row for row in rows if len(row) == self.count]

    def _joined_lists(self, fields: list[str]) -> list[str]:
        """Join what is in brackets, and what are parts of TRES: `cpu=4,mem=2G`."""
        found: list[str] = []
        for field in fields:
            last = found[-1] if found else ""
            if last.count("[") > last.count("]") or ("=" in last and "=" in field):
                found[-1] = f"{last}{self.delimiter}{field}"
            else:
                found.append(field)
        return found

    def _place(self, *names: str) -> int:
        return next((self._at[name] for name in names if name in self._at), -1)

    def _places(self, *names: str) -> tuple[int, ...]:
        return tuple(self._at[name] for name in names if name in self._at)

    def _check(self) -> None:
        missing = []
        if self.submit < 0:
            missing.append("Submit")
        if self.elapsed < 0 and (self.start < 0 or self.end < 0):
            missing.append("Elapsed")
        if self.only_nodes and not self.nodes:
            missing.append("NCPUS")
        if missing:
            raise TraceError(
                f"what sacct printed has no {', no '.join(missing)}",
                f"write it with: {ASK}",
            )


def split_names(line: str) -> tuple[list[str], str]:
    """Return the names of a first line of sacct and what is between them.

    No names if it is none; the delimiter is blank where they are in columns.
    """
    before, *rest = _NAME.split(line.strip("\r\n").replace('"', ""))
    names, between = rest[::2], [text.strip(" ") for text in rest[1:-1:2]]
    known = sum(name.lower() in _KNOWN for name in names)
    if before.strip() or known < _FEWEST_KNOWN or len(set(between)) != 1:
        return [], ""
    return names, between[0]


def columns_of(line: str) -> Columns | None:
    """Return what a first line says, None if it is none. Raises TraceError."""
    names, delimiter = split_names(line)
    return Columns(names, delimiter) if delimiter else None


def is_header(line: str) -> bool:
    """Tell whether a line is the first of what `sacct --parsable2` printed."""
    return bool(split_names(line)[1])
