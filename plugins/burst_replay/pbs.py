# SPDX-License-Identifier: MIT
"""The accounting logs of PBS Professional, OpenPBS and Torque; also that of Cobalt.

A line an event: `MM/DD/YYYY HH:MM:SS;TYPE;ID;key=value ...`. E is the end of a job and
has all that is known of it, with times in seconds since the epoch; PBS writes the same
with R when a job is run again. Sources: "Format of Accounting Log Messages" in the PBS
Professional Reference Guide; "Accounting records" in Torque's Administrator Guide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from burst_replay.collected_jobs import CollectedJobs, LoggedJob, NoTime, is_remark
from burst_replay.log_times import from_epoch, parse_duration, parse_limit
from burst_replay.trace import LeftOut, Trace

_LINE = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];")
_FIELDS = 4
_ENDED, _AGAIN = "E", "R"
# What the last event of a job says of it, where no end is told.
_LAST: Mapping[str, LeftOut] = {
    "Q": LeftOut.STILL_WAITED,
    "R": LeftOut.STILL_WAITED,
    "S": LeftOut.STILL_RAN,
    "T": LeftOut.STILL_RAN,
    "C": LeftOut.STILL_RAN,
    "A": LeftOut.NEVER_RAN,
    "D": LeftOut.NEVER_RAN,
}
_VALUE = re.compile(r'(?:^|(?<=\s))([^\s=]+)=(?:"([^"]*)"(?=\s|$)|(\S*))')
_NCPUS = re.compile(r"ncpus=(\d+)")
_PPN = re.compile(r"ppn=(\d+)")
_VNODE = re.compile(r"\(([^:()\[\]]+)")


def is_pbs(line: str) -> bool:
    """Tell whether a line is an accounting record."""
    return _LINE.match(line) is not None


def read_pbs(name: str, lines: Iterable[str]) -> Trace:
    """Return the jobs that ran to an end."""
    found = CollectedJobs(name)
    open_jobs: dict[str, LeftOut] = {}
    ended: set[str] = set()
    for number, line in enumerate(lines, 1):
        if is_remark(line):
            continue
        try:
            kind, job, values = _split(line)
            if kind == _ENDED or (kind == _AGAIN and "start" in values):
                _take(found, job, values)
                if kind == _ENDED:
                    ended.add(job)
                continue
        except ValueError as error:
            found.leave_out_broken(f"line {number}", error)
            continue
        found.leave_out(LeftOut.OTHER)
        last = _LAST.get(kind)
        # One that is deleted while it runs has an end, too, maybe in another file.
        runs = open_jobs.get(job) is LeftOut.STILL_RAN
        if last is not None and not (runs and last is LeftOut.NEVER_RAN):
            open_jobs[job] = last
    for job, reason in open_jobs.items():
        if job not in ended:
            # Its last event is the record of it, and not one of the others.
            found.leave_out(LeftOut.OTHER, -1)
            found.leave_out(reason)
    return found.trace()


def _split(line: str) -> tuple[str, str, Mapping[str, str]]:
    """Return the type, the job, and what is said of it. Raises ValueError."""
    parts = line.split(";", _FIELDS - 1)
    if len(parts) < _FIELDS or not is_pbs(line):
        raise ValueError("it is no accounting record")
    _, kind, job, message = parts
    values: dict[str, str] = {}
    if kind in (_ENDED, _AGAIN):
        for key, quoted, word in _VALUE.findall(message):
            values.setdefault(key, quoted or word.strip('"'))
    return kind, job, values


def _take(found: CollectedJobs, job: str, values: Mapping[str, str]) -> None:
    """Take in the end of a job. Raises ValueError."""
    if "[]" in job:
        found.leave_out(LeftOut.ARRAY)
        return
    submit = _moment(values, "ctime") or _moment(values, "qtime")
    start, end = _moment(values, "start"), _moment(values, "end")
    key = f"{job}/{start}"
    if not start:
        found.add(LoggedJob(submit=submit, run_time=0.0, cores=0, key=key))
        return
    if not submit:
        raise NoTime("it has neither ctime nor qtime")
    cores, nodes, hosts = _resources(values)
    found.add(
        LoggedJob(
            submit=submit,
            run_time=end - start if end else _used(values),
            cores=cores,
            start=start,
            limit=parse_limit(values.get("Resource_List.walltime", "")),
            nodes=nodes,
            hosts=hosts,
            user=values.get("user", ""),
            name=values.get("jobname", ""),
            queue=values.get("queue", ""),
            bank=values.get("account") or values.get("project", ""),
            key=key,
        )
    )


def _moment(values: Mapping[str, str], key: str) -> float:
    """Return a time, 0 if there is none. Raises NoTime."""
    text = values.get(key, "")
    try:
        number = float(text or 0)
    except ValueError as error:
        raise NoTime(f"{key}={text} is no time") from error
    # Cobalt writes -1 for what did not happen.
    return from_epoch(number) if number > 0 else 0.0


def _used(values: Mapping[str, str]) -> float:
    walltime = values.get("resources_used.walltime", "")
    if not walltime:
        raise NoTime("it has no end")
    return parse_duration(walltime)


def _resources(values: Mapping[str, str]) -> tuple[int, int, str]:
    """Return its cores, its nodes (0 if not known), and these as a hostlist.

    First what it had, then what it asked for. Raises ValueError.
    """
    slots, hosts = _slots(values.get("exec_host", ""))
    vnodes = values.get("exec_vnode", "")
    if vnodes:
        hosts = list(dict.fromkeys(_VNODE.findall(vnodes)))
    asked = values.get("Resource_List.nodes") or values.get("Resource_List.nodect", "")
    ppn = _PPN.search(asked)
    digits = re.match(r"\d+", asked)
    nodes_asked = int(digits[0]) if digits else 0
    cores = (
        int(values.get("total_execution_slots", 0))
        or sum(map(int, _NCPUS.findall(vnodes)))
        or slots
        or int(values.get("Resource_List.ncpus") or 0)
        or nodes_asked * (int(ppn[1]) if ppn else 1)
    )
    return cores, len(hosts) or nodes_asked, ",".join(hosts)


def _slots(text: str) -> tuple[int, list[str]]:
    """Return the slots of exec_host and its hosts, each once.

    PBS: `a/0*4+b/2*4`, host, index and number of processors (1 if there is none).
    Torque: `a/0+a/1+b/0`, or `a/0-3,6`, host and indices. Raises ValueError.
    """
    count = 0
    hosts: dict[str, None] = {}
    for part in text.split("+"):
        host, slash, index = part.partition("/")
        if not slash:
            continue  # Cobalt has a location there.
        hosts[host] = None
        _, star, many = index.partition("*")
        count += int(many) if star else sum(map(_span, index.split(",")))
    return count, list(hosts)


def _span(text: str) -> int:
    """Return how many a range such as `0-3` has."""
    first, dash, last = text.partition("-")
    return max(0, int(last) - int(first) + 1) if dash else 1
