# SPDX-License-Identifier: MIT
"""Read jobs in JSON, from Flux and from Slurm's `sacct --json`.

From Flux: the output of `flux jobs --json`; the journal of the job manager
(`job-manager.events-journal`), one response a line: `id`, `events` (RFC 18, RFC 21),
and once each `jobspec` (RFC 25) and `R` (RFC 20); and the file of `[daemon] record`,
which is the same with one event a line, whose fields are beside `id`
(`burst.model.job_record`).

From Slurm, since 21.08: numbers are plain, or since 23.02 `{"set": .., "infinite": ..,
"number": ..}`; a state is a text, or since 23.11 a list of flags. Limits are minutes.
Steps are in their jobs. Source: PARSER_ARRAY(JOB) in
src/plugins/data_parser/v0.0.*/parsers.c of Slurm.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from burst.decode import from_json
from burst.model.request import parse_attributes
from burst.model.resource_set import resource_set, shape_of
from burst_replay.collected_jobs import CollectedJobs, row_of
from burst_replay.sacct import take_record
from burst_replay.trace import NO_ATTRIBUTES, LeftOut

# An opening bracket alone may be the prompt of a shell: [ann@login1 ~]$ sacct
_JSON = re.compile(r'\s*(\{\s*("|\}|\Z)|\[\s*(\{|\Z))')
# The keys of `flux jobs`.
_LISTED = {
    # When its dependencies were met and its begin time was over: the daemon judges it
    # from then on. `flux jobs` tells that since 0.88.
    "submit": ("t_priority", "t_submit"),
    "start": ("t_run",),
    "end": ("t_cleanup",),
    "limit": ("duration",),
    "cores": ("ncores",),
    "nodes": ("nnodes",),
    **{name: (name,) for name in ("userid", "name", "queue", "bank")},
}
_COUNT = 1000
"""How many jobs `flux jobs` lists at most, unless --count is given."""


def is_json(line: str) -> bool:
    """Tell whether a line begins an object or a list of objects."""
    return _JSON.match(line) is not None


def read_json(found: CollectedJobs, lines: Iterable[str]) -> None:
    """Read the jobs of one or several JSON documents, or of one document on each line.

    Other lines before the first document are skipped.
    """
    rest = iter(lines)
    first = next(filter(is_json, rest), "")
    documents: Iterable[str] = itertools.chain((first,), rest)
    if not _is_whole(first):
        documents = _split_documents("\n".join(documents))
    journal: dict[int, dict[str, Any]] = {}

    def take(found: CollectedJobs, raw: msgspec.Raw) -> None:
        row = from_json(raw, dict[str, Any])
        if "events" in row or "timestamp" in row:
            number = int(row["id"])
            journal[number] = _noted(journal.get(number, {}), row)
        elif "time" in row:
            take_record(found, dict(_record_of(row)))
        else:
            _take_listed(found, row)

    def take_all(found: CollectedJobs, document: str) -> None:
        rows = _rows(document)
        if len(rows) == _COUNT and '"t_submit"' in document:
            note = f"it has exactly {_COUNT} jobs: list all by flux jobs --count=0"
            found.note(note)
        for place, row in enumerate(rows, 1):
            if len(rows) == 1:
                take(found, row)
            else:
                found.attempt(f"job {place}", take, row)

    found.read_lines(documents, take_all)
    for number, row in journal.items():
        found.attempt(f"job {number}", _take_listed, row)


def _is_whole(text: str) -> bool:
    try:
        from_json(text, msgspec.Raw)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _split_documents(text: str) -> Iterator[str]:
    """Yield the JSON documents that follow one another in a text.

    A rest that is not JSON is yielded last: its reader says what is wrong.
    """
    decoder = json.JSONDecoder()
    at = 0
    while at < len(text):
        try:
            _, end = decoder.raw_decode(text, at)
        except (RecursionError, ValueError):
            end = len(text)
        yield text[at:end]
        at = end + len(text[end:]) - len(text[end:].lstrip())


def _rows(document: str) -> list[msgspec.Raw]:
    """Return the jobs of a list or of an object's `jobs`, or the object as the one job.

    Raises MsgspecError.
    """
    raw = from_json(document, msgspec.Raw)
    if document.lstrip().startswith("["):
        return from_json(raw, list[msgspec.Raw])
    jobs = from_json(raw, dict[str, msgspec.Raw]).get("jobs")
    return [raw] if jobs is None else from_json(jobs, list[msgspec.Raw])


def _noted(known: Mapping[str, Any], line: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of a job after a line of the journal, with the keys of `flux
    jobs`. Raises one of MALFORMED.
    """
    row = {"attributes": NO_ATTRIBUTES, **known}
    specs = [line["jobspec"]] if line.get("jobspec") else []
    for event in line.get("events", [line]):
        row.setdefault(event["name"], float(event["timestamp"]))
        if event["name"] == "submit":
            row["userid"] = int(event["context"]["userid"])
        elif event["name"] == "jobspec-update":
            specs += [_part(*change) for change in event["context"].items()]
    if line.get("R"):
        has = resource_set(line["R"])
        row["ncores"] = sum(
            len(group.ranks) * shape_of(group.children).cores for group in has.groups
        )
        row["nnodes"] = len(has.ranks)
    for spec in specs:
        system = spec.get("attributes", {}).get("system", {})
        keys = {"duration", "queue", "bank"} & system.keys()
        row |= {key: system[key] for key in keys}
        row["name"] = system.get("job", {}).get("name", row.get("name"))
        row["attributes"] = {**row["attributes"], **parse_attributes(spec)}
    row["t_submit"] = row.get("submit")
    row["t_priority"] = row.get("depend")
    row["t_run"] = row.get("start", row.get("alloc", 0.0))
    row["t_cleanup"] = row.get("finish", 0.0)
    if "clean" in row and not row["t_cleanup"]:
        row["t_run"] = 0.0
    return row


def _part(path: str, value: Any) -> dict[str, Any]:
    """Return a jobspec that has nothing but the value at this path."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return dict(value)


def _take_listed(found: CollectedJobs, row: Mapping[str, Any]) -> None:
    """Add a job with the keys of `flux jobs`. Raises one of MALFORMED.

    It may have `attributes`, which `flux jobs` does not list.
    """
    found.trace.numbers_of_host = True
    found.trace.has_attributes |= "attributes" in row
    start, end = row.get("t_run"), row.get("t_cleanup")
    if not row["t_submit"] or (start and not end):
        # The times of a job submitted before the journal begins are not known.
        known = bool(row["t_submit"])
        found.leave_out(LeftOut.STILL_RAN if known else LeftOut.NO_TIME)
        return
    attributes = row.get("attributes", NO_ATTRIBUTES)
    found.add({"start": 0.0, **row_of(row, _LISTED)}, attributes=attributes)


def _record_of(job: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the values of a job of Slurm, with the names of sacct's fields.

    Raises one of MALFORMED.
    """
    times, state, its = job["time"], job.get("state"), job.get("association") or {}
    yield "submit", _number(times.get("submission"))
    for name in ("start", "end", "elapsed"):
        if times.get(name) is not None:
            yield name, _number(times[name]) or "0"
    states = state.get("current") if isinstance(state, dict) else state
    yield "state", states if isinstance(states, str) else " ".join(states or ())
    yield "timelimitraw", _number(times.get("limit"))
    yield "jobid", _number(job.get("job_id"))
    yield "hetjobid", _number((job.get("het") or {}).get("job_id"))
    yield "nnodes", _number(job.get("allocation_nodes"))
    yield "reqcpus", _number((job.get("required") or {}).get("CPUs"))
    for name, of in (("alloctres", "allocated"), ("reqtres", "requested")):
        counts = (job.get("tres") or {}).get(of) or ()
        yield name, ",".join(f"{c['type']}={_number(c['count'])}" for c in counts)
    for name, text in (
        ("user", job.get("user") or its.get("user")),
        ("account", job.get("account") or its.get("account")),
        ("partition", job.get("partition")),
        ("jobname", job.get("name")),
        ("cluster", job.get("cluster")),
    ):
        if text:
            yield name, str(text)


def _number(value: Any) -> str:
    """Return a number as sacct prints it; empty if it is 0 or not set."""
    if isinstance(value, dict):
        known = value.get("set", True) and not value.get("infinite")
        value = value.get("number") if known else 0
    return str(value or "")
