# SPDX-License-Identifier: MIT
"""Read the accounting logs of PBS Professional, OpenPBS and Torque.

Each line is an event: `MM/DD/YYYY HH:MM:SS;TYPE;ID;key=value ...`. E is the end of a
job and has all its values, with times in seconds since the epoch; PBS writes the same
with R when a job is run again. Sources: "Format of Accounting Log Messages" in the PBS
Professional Reference Guide; "Accounting records" in Torque's Administrator Guide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from burst_replay.collected_jobs import CollectedJobs, Row, row_of
from burst_replay.trace import LeftOut

_LINE = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;([A-Za-z]);([^;]*);(.*)")
_FIELDS = {
    "submit": ("ctime", "qtime"),
    "start": ("start",),
    "end": ("end",),
    "elapsed": ("resources_used.walltime",),
    "limit": ("Resource_List.walltime",),
    "user": ("user",),
    "name": ("jobname",),
    "queue": ("queue",),
    "bank": ("account", "project"),
}
# How a job without an end is left out, by the type of its last event.
_LAST: Mapping[str, LeftOut] = {
    **dict.fromkeys("QR", LeftOut.STILL_WAITED),
    **dict.fromkeys("STC", LeftOut.STILL_RAN),
    **dict.fromkeys("AD", LeftOut.NEVER_RAN),
}
_VALUE = re.compile(r'(?:^|(?<=\s))([^\s=]+)=(?:"([^"]*)"(?=\s|$)|(\S*))')
_NCPUS = re.compile(r"ncpus=(\d+)")
_VNODE = re.compile(r"\(([^:()\[\]]+)")
_NODES = re.compile(r"(\d+)(?:.*?ppn=(\d+))?")


def is_pbs(line: str) -> bool:
    """Tell whether a line is an accounting record."""
    return _LINE.match(line) is not None


def read_pbs(found: CollectedJobs, lines: Iterable[str]) -> None:
    """Read the jobs that ran to an end."""
    found.read_lines(lines, _take)


def _take(found: CollectedJobs, line: str) -> None:
    """Take in a record. Raises ValueError."""
    parts = _LINE.match(line)
    if parts is None:
        raise ValueError("it is not an accounting record")
    kind, job, message = parts.groups()
    values: dict[str, str] = {}
    for key, quoted, word in _VALUE.findall(message) if kind in "ER" else ():
        values.setdefault(key, quoted or word.strip('"'))
    if kind == "E" or (kind == "R" and "start" in values):
        if "[]" in job:
            found.leave_out(LeftOut.ARRAY)
        else:
            found.add(_row_of(values), f"{job}/{values.get('start', '')}")
        if kind == "E":
            found.known.add(job)
        return
    last = _LAST.get(kind)
    # A job that is deleted while it runs has an end, too, maybe in another file.
    runs = found.unfinished(job) is LeftOut.STILL_RAN
    if last is None or (runs and last is LeftOut.NEVER_RAN):
        found.leave_out(LeftOut.OTHER)
    else:
        found.leave_out_unfinished(last, job, LeftOut.OTHER)


def _row_of(values: Mapping[str, str]) -> Row:
    """Return the row of a job from the values of its end. Raises ValueError."""
    row = {"start": "", **row_of(values, _FIELDS)}
    row["cores"], row["nodes"] = _resources(values)
    if "end" in row:
        row.pop("elapsed", None)
    return row


def _resources(values: Mapping[str, str]) -> tuple[int, int]:
    """Return the cores of a job, and its nodes (0 if not known).

    Values that it had come before those that it asked for. Raises ValueError.
    """
    slots, hosts = _slots(values.get("exec_host", ""))
    vnodes = values.get("exec_vnode", "")
    if vnodes:
        hosts = set(_VNODE.findall(vnodes))
    asked = values.get("Resource_List.nodes") or values.get("Resource_List.nodect", "")
    found = _NODES.match(asked)
    nodes = int(found[1]) if found else 0
    cores = (
        int(values.get("total_execution_slots", 0))
        or sum(map(int, _NCPUS.findall(vnodes)))
        or slots
        or int(values.get("Resource_List.ncpus") or 0)
        or nodes * int(found[2] or 1 if found else 1)
    )
    return cores, len(hosts) or nodes


def _slots(text: str) -> tuple[int, set[str]]:
    """Return the number of slots in exec_host, and its hosts.

    PBS: `a/0*4+b/2*4`, with host, index and number of processors (1 if there is none).
    Torque: `a/0+a/1+b/0`, or `a/0-3,6`, with host and indices. Raises ValueError.
    """
    count = 0
    hosts = set()
    for part in filter(None, text.split("+")):
        host, _, index = part.partition("/")
        hosts.add(host)
        _, star, many = index.partition("*")
        count += int(many) if star else sum(map(_span, index.split(",")))
    return count, hosts


def _span(text: str) -> int:
    """Return how many indices a range such as `0-3` has."""
    first, dash, last = text.partition("-")
    return max(0, int(last) - int(first) + 1) if dash else 1
