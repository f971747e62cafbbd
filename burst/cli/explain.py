# SPDX-License-Identifier: MIT
"""`burst explain`: why a job waits, how it ended, and what its bursts went through."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click

from burst.cli.complete_names import complete_job_or_burst
from burst.cli.listing import Row, fsd, money, print_json
from burst.cli.offline_records import read_records
from burst.cli.target import Target, target_options
from burst.core.job_end import BY_BURST, JobEnd, end_of
from burst.errors import BurstError, Denied, LeadError, NoDaemon
from burst.lead import Lead
from burst.model.burst import PRICE_SOURCES
from burst.model.jobid import parse_jobid
from burst.runtime import service_answers

_OVER = {"inactive", "gone"}


@click.command()
@click.argument("name", metavar="JOB|BURST", shell_complete=complete_job_or_burst)
@target_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(name: str, as_json: bool, target: Target) -> None:
    """Say why a JOB waits or how it ended, or what happened to a BURST.

    Without a daemon, the instance owner sees what is on record.
    """
    with target.lead() as lead:
        found = _told(lead, target, name)
    if as_json:
        print_json(found)
        return
    for line in _of_burst(found) if "burst" in found else _story(found):
        click.echo(line)


def _told(lead: Lead, target: Target, name: str) -> dict[str, Any]:
    """Return the story of a job; its end by what the lead keeps of it.

    The daemon forgets a job a minute after its end, and the lead does not.
    """
    try:
        found = lead.call("explain", {"id": name})
    except NoDaemon as error:
        found = _by_records(lead, target, name, error)
    except Denied:
        raise
    except BurstError:
        end = _end_of(lead, name)
        if end is None or end.exception != BY_BURST:
            raise
        return _ended({**_UNKNOWN, "id": name}, end)
    if "burst" in found:
        return found
    end = _end_of(lead, name) if found["state"] in _OVER else None
    return _ended(found, end) if end else found


_UNKNOWN: dict[str, Any] = {
    "needs": "",
    "held": None,
    "refusals": [],
    "bursts": [],
}


def _ended(found: dict[str, Any], end: JobEnd) -> dict[str, Any]:
    why = "; ".join(filter(None, (end.text(), found.get("reclaimed"))))
    return {**found, "state": "inactive", "result": end.result, "why": why}


def _end_of(lead: Lead, name: str) -> JobEnd | None:
    """Return how a job ended, None where the lead does not say, or not to us."""
    try:
        return end_of(lead.events(parse_jobid(name)))
    except (Denied, LeadError, KeyError, TypeError, ValueError):
        return None


def _by_records(
    lead: Lead, target: Target, name: str, error: NoDaemon
) -> dict[str, Any]:
    """Return a story from the records; raises the error where there is none."""
    snapshot = read_records(lead, target, error)
    try:
        found = service_answers.explain(snapshot, name)
    except BurstError:
        raise error from None
    click.echo(f"{error}; this is what is on record", err=True)
    return found


def _story(found: Row) -> list[str]:
    lines = [f"{found['id']}: {found['state']}, {found['needs'] or 'needs unknown'}"]
    if found["why"]:
        lines.append(f"  {found['why']}")
    if found.get("here"):
        lines += [f"  {line}" for line in _start(found)]
    if found["held"] in {"holding", "held"}:
        before = found["urgency_before"]
        lines.append(f"  held by burst; its urgency was {before} (burst release)")
    for refusal in found["refusals"]:
        lines.append(f"  {refusal['offer']}: {refusal['why']}")
    for burst in found["bursts"]:
        result = f", {burst['result']}" if burst["result"] else ""
        lines.append(
            f"  {burst['id']} of {burst['provider']}: {burst['state']}{result}"
        )
        lines += [f"    {_event(event)}" for event in burst["events"]]
    return lines


def _start(found: Row) -> list[str]:
    """Return when a job is expected to start here, and how good such forecasts are."""
    here = found["here"]
    # What is weighed against waiting is told with the decision already.
    told = [] if found["verdict"] == "not-worth" else [str(here["text"])]
    if here["expected"] is not None and here["grade"] is not None:
        told.append(f"forecasts were {here['grade']['text']}")
    return ["; ".join(told)] if told else []


def _event(event: dict[str, Any]) -> str:
    shown = {k: v for k, v in event["context"].items() if k not in {"id", "severity"}}
    details = " ".join(f"{key}={value}" for key, value in shown.items())
    return f"{_clock(event['timestamp'])} {event['name']} {details}".rstrip()


def _of_burst(found: Row) -> Iterator[str]:
    """Yield the story of a burst: events, durations, jobs, cost."""
    result = f", {found['result']}" if found["result"] else ""
    where = f"{found['provider']}/{found['offer']}"
    ranks = f" as ranks {found['ranks']}" if found["ranks"] else ""
    yield f"{found['burst']}: {found['state']}{result}"
    yield f"  {found['nodes']} nodes of {where}: {found['hosts']}{ranks}"
    for event in found["events"]:
        yield f"  {_clock(event['timestamp'])} {event['text']}"
    if found["stages"]:
        yield "durations"
    for stage in found["stages"]:
        yield f"  {fsd(stage['seconds']):>8} {stage['stage']}"
    ended = [f"{count} {result}" for result, count in found["ended_jobs"].items()]
    yield f"jobs that ended: {', '.join(ended) or 'none'}"
    if found["jobs"]:
        yield f"jobs assigned to it: {' '.join(found['jobs'])}"
    if found["price"] or found["fee"]:
        each = f"{found['price']:g} for a node and hour"
        source = PRICE_SOURCES[found["priced_by"]]
        fee = f", and {found['fee']:g} for the burst and hour" if found["fee"] else ""
        yield f"cost: {money(found['cost'])}, at {each} {source}{fee}"


def _clock(timestamp: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(timestamp))
