# SPDX-License-Identifier: MIT
"""What is known of past jobs: Flux's journal, `flux jobs -a --json`, or our recording.

The journal is that of the job manager (`job-manager.events-journal`), a response a
line: `id`, `events` (RFC 18, RFC 21), and once each `jobspec` (RFC 25) and `R` (RFC
20). What `[daemon] record` writes is the same, but one event a line, with its fields
beside `id` (`burst.model.job_record`). Of `flux jobs`: one object with `jobs`, or one
of these a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from burst.errors import MALFORMED
from burst.model.resource_set import resource_set, shape_of
from burst_replay.collected_jobs import CollectedJobs, LoggedJob
from burst_replay.trace import LONGEST_S, LeftOut, Trace, check_cores


class JournalEntry(msgspec.Struct):
    """What is known of one job."""

    times: dict[str, float] = {}
    userid: int = 0
    cores: int = 0
    nodes: int = 0
    hosts: str = ""
    limit: float = 0.0
    name: str = ""
    queue: str = ""
    bank: str = ""

    def read(self, line: Mapping[str, Any]) -> None:
        """Take in a line about it. Raises one of MALFORMED."""
        for event in line.get("events", ()):
            self.times.setdefault(event["name"], _time(event["timestamp"]))
            if event["name"] == "submit":
                self.userid = int(event["context"]["userid"])
        if line.get("R"):
            has = resource_set(line["R"])
            self.cores = check_cores(
                sum(
                    len(group.ranks) * shape_of(group.children).cores
                    for group in has.groups
                )
            )
            self.nodes = len(has.ranks)
            self.hosts = ",".join(has.execution.nodelist)
        if line.get("jobspec"):
            system = line["jobspec"].get("attributes", {}).get("system", {})
            self.limit = _time(system.get("duration") or 0.0)
            self.name = str(system.get("job", {}).get("name", ""))
            self.queue = str(system.get("queue") or "")
            self.bank = str(system.get("bank") or "")

    def add_to(self, found: CollectedJobs) -> None:
        """Count it, as a job if it ran to its end. Raises ValueError."""
        start = self.times.get("start", self.times.get("alloc"))
        end = self.times.get("finish")
        if start is None or (end is None and "clean" in self.times):
            found.leave_out(LeftOut.NEVER_RAN)
        elif end is None:
            found.leave_out(LeftOut.STILL_RAN)
        else:
            found.add(
                LoggedJob(
                    submit=self.times["submit"],
                    # Below 0 if the clock was set back while it ran.
                    run_time=end - start,
                    cores=self.cores,
                    start=start,
                    limit=self.limit,
                    nodes=self.nodes,
                    hosts=self.hosts,
                    userid=self.userid,
                    name=self.name,
                    queue=self.queue,
                    bank=self.bank,
                )
            )


def read_eventlog(name: str, lines: Iterable[str]) -> Trace:
    """Return the jobs that ran. Lines that cannot be read are counted."""
    jobs: dict[int, JournalEntry] = {}
    found = CollectedJobs(name)
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = msgspec.json.decode(text)
            if "timestamp" in line:
                line = {**line, "events": [line]}
            if "events" in line:
                number_of_job = int(line["id"])
                entry = jobs.get(number_of_job) or JournalEntry()
                entry.read(line)
                jobs[number_of_job] = entry
            else:
                for row in line.get("jobs", [line]):
                    _take_listed(found, row)
        except (msgspec.MsgspecError, *MALFORMED) as error:
            where = f"line {number}"
            found.leave_out_broken(where, ValueError(_why_broken(error)))
    for entry in jobs.values():
        if "submit" in entry.times:
            entry.add_to(found)
        else:
            # It was submitted before the journal begins.
            found.leave_out(LeftOut.NO_TIME)
    return found.trace(numbers_of_host=True)


def _take_listed(found: CollectedJobs, row: Mapping[str, Any]) -> None:
    """Take in a job of `flux jobs --json`. Raises one of MALFORMED."""
    submit = _time(row["t_submit"])
    start, end = _time(row.get("t_run") or 0), _time(row.get("t_cleanup") or 0)
    if not start:
        found.leave_out(LeftOut.NEVER_RAN)
    elif not end:
        found.leave_out(LeftOut.STILL_RAN)
    else:
        found.add(
            LoggedJob(
                submit=submit,
                run_time=end - start,
                cores=int(row.get("ncores") or 0),
                start=start,
                limit=_time(row.get("duration") or 0.0),
                nodes=int(row.get("nnodes") or 0),
                hosts=str(row.get("nodelist") or ""),
                userid=int(row.get("userid") or 0),
                name=str(row.get("name") or ""),
                queue=str(row.get("queue") or ""),
                bank=str(row.get("bank") or ""),
            )
        )


def _time(value: Any) -> float:
    """Return seconds. Raises ValueError if they cannot be."""
    seconds = float(value)
    # Also false for NaN.
    if not 0 <= seconds < LONGEST_S:
        raise ValueError("a time that cannot be")
    return seconds


def _why_broken(error: Exception) -> str:
    """Return in words why a line is none; Python's own say nothing of the trace."""
    if isinstance(error, KeyError):
        return f"it has no {error}"
    if isinstance(error, (ValueError, msgspec.MsgspecError)):
        return str(error)
    return "it is no event, response of the journal, or job"
