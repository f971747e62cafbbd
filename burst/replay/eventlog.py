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
from burst.replay.trace import LONGEST_S, Trace, TraceJob, check_cores, trace_jobs


class JournalEntry(msgspec.Struct):
    """What is known of one job."""

    times: dict[str, float] = {}
    userid: int = 0
    cores: int = 0
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
            groups = resource_set(line["R"]).groups
            self.cores = check_cores(
                sum(
                    len(group.ranks) * shape_of(group.children).cores
                    for group in groups
                )
            )
        if line.get("jobspec"):
            system = line["jobspec"].get("attributes", {}).get("system", {})
            self.limit = _time(system.get("duration") or 0.0)
            self.name = str(system.get("job", {}).get("name", ""))
            self.queue = str(system.get("queue") or "")
            self.bank = str(system.get("bank") or "")

    @property
    def start(self) -> float | None:
        """When it started; None if it did not."""
        return self.times.get("start", self.times.get("alloc"))

    @property
    def runs(self) -> bool:
        """Whether it had started, and its end is not told."""
        ended = "finish" in self.times or "clean" in self.times
        return self.start is not None and not ended

    def record(self) -> TraceJob | None:
        """Return the job, None if it did not run to its end.

        Its run time is below 0 if the clock was set back while it ran.
        """
        start, end = self.start, self.times.get("finish")
        if start is None or end is None or end == start or self.cores <= 0:
            return None
        return TraceJob(
            submit=self.times["submit"],
            run_time=end - start,
            cores=self.cores,
            limit=self.limit,
            userid=self.userid,
            name=self.name,
            queue=self.queue,
            bank=self.bank,
        )


def read_eventlog(name: str, lines: Iterable[str]) -> Trace:
    """Return the jobs that ran. Lines that cannot be read are counted."""
    jobs: dict[int, JournalEntry] = {}
    listed: list[TraceJob | None] = []
    broken = running = 0
    first_broken = ""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = msgspec.json.decode(line)
            if "timestamp" in found:
                found = {**found, "events": [found]}
            if "events" in found:
                jobs.setdefault(int(found["id"]), JournalEntry()).read(found)
            else:
                rows = found.get("jobs", [found])
                listed += [_listed(row) for row in rows]
                running += sum(map(_runs, rows))
        except (msgspec.MsgspecError, *MALFORMED) as error:
            broken += 1
            first_broken = first_broken or f"line {number}: {_why_broken(error)}"
    # What was submitted before the journal begins is not known.
    entries = [entry for entry in jobs.values() if "submit" in entry.times]
    found_all = [*listed, *(entry.record() for entry in entries)]
    ran = [record for record in found_all if record is not None]
    records = [record for record in ran if record.run_time > 0]
    running += sum(entry.runs for entry in entries)
    started = min((record.submit for record in records), default=0.0)
    return Trace(
        name=name,
        jobs=trace_jobs(records, started),
        numbers_of_host=True,
        started=started,
        broken=broken,
        not_run=len(jobs) + len(listed) - len(ran) - running,
        running=running,
        backwards=len(ran) - len(records),
        first_broken=first_broken,
    )


def _listed(row: Mapping[str, Any]) -> TraceJob | None:
    """Return a job of `flux jobs --json`, None if it did not run to its end."""
    submit = _time(row["t_submit"])
    start, end = _time(row.get("t_run") or 0), _time(row.get("t_cleanup") or 0)
    cores = check_cores(int(row.get("ncores") or 0))
    if not start or not end or end == start or cores <= 0:
        return None
    return TraceJob(
        submit=submit,
        run_time=end - start,
        cores=cores,
        limit=_time(row.get("duration") or 0.0),
        userid=int(row.get("userid") or 0),
        name=str(row.get("name") or ""),
        queue=str(row.get("queue") or ""),
        bank=str(row.get("bank") or ""),
    )


def _runs(row: Mapping[str, Any]) -> bool:
    """Tell whether a job of `flux jobs --json` had started, and has not ended."""
    return bool(row.get("t_run")) and not row.get("t_cleanup")


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
