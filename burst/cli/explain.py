# SPDX-License-Identifier: MIT
"""`burst explain`: why a job waits, how it ended, and what its bursts went through."""

from __future__ import annotations

import time
from typing import Any

import click

from burst.cli.daemon_call import ask_or_read, read_instead
from burst.cli.explain_text import story_lines
from burst.cli.listing import print_json, print_text
from burst.cli.progress import show_wait
from burst.cli.target import Target, target_options
from burst.cli.typed_names import complete_job_or_burst, find_burst
from burst.errors import MALFORMED, BurstError, Denied, LeadError, NoDaemon
from burst.lead import Lead
from burst.model.job_end import BY_BURST, JobEnd, end_of
from burst.model.jobid import parse_jobid

_OVER = {"inactive", "gone"}


@click.command()
@click.argument("name", metavar="JOB|BURST", shell_complete=complete_job_or_burst)
@target_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(name: str, as_json: bool, target: Target) -> None:
    """Say why a JOB waits or how it ended, or what happened to a BURST.

    BURST is an id, a prefix of one, or `last`: the burst made last.
    Without a daemon, the instance owner sees what is on record.
    """
    with target.lead() as lead, show_wait("waiting for the daemon"):
        try:
            parse_jobid(name)
        except ValueError as error:
            # Then it is a burst's.
            name = find_burst(
                name, lambda: ask_or_read(lead, target, "status"), f", and {error}"
            )
        found = _told(lead, target, name)
    if as_json:
        print_json(found)
        return
    for line in story_lines(found, time.time()):
        print_text(line)


def _told(lead: Lead, target: Target, name: str) -> dict[str, Any]:
    """Return the story of a job or burst; the end of a job is read from the lead.

    The daemon forgets a job a minute after its end; the lead does not.
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
        return _ended(_forgotten(name), end)
    if "burst" in found:
        return found
    end = _end_of(lead, name) if found["state"] in _OVER else None
    return _ended(found, end) if end else found


def _forgotten(name: str) -> dict[str, Any]:
    """Return what a daemon would tell of a job without any decision or burst."""
    # It takes long to import, and is needed here only.
    from burst.core.job_report import told_of  # noqa: PLC0415

    row = told_of(None, parse_jobid(name))
    return row | {"here": None, "usage": [], "utc_offset": time.localtime().tm_gmtoff}


def _ended(found: dict[str, Any], end: JobEnd) -> dict[str, Any]:
    told = end.text(found.get("reclaimed") or "")
    why = "; ".join(filter(None, (told, found.get("again"))))
    return {**found, "state": "inactive", "result": end.result, "why": why, "next": ""}


def _end_of(lead: Lead, name: str) -> JobEnd | None:
    """Return how a job ended; None if the lead does not know or may not tell us."""
    try:
        return end_of(lead.events(parse_jobid(name)))
    except (Denied, LeadError, *MALFORMED):
        return None


def _by_records(
    lead: Lead, target: Target, name: str, error: NoDaemon
) -> dict[str, Any]:
    """Return a story from the records; raise `error` if they have none."""
    found = read_instead(lead, target, "explain", {"id": name}, error)
    if not found:
        raise error
    click.echo(f"{error}; this is what is on record", err=True)
    return found
