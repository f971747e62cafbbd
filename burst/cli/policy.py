# SPDX-License-Identifier: MIT
"""`burst policy check`: which rule takes which job, and what would happen."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from burst.cli.daemon_call import call_daemon
from burst.cli.help_texts import CommandGroup
from burst.cli.listing import (
    Column,
    Listing,
    Row,
    listing_options,
    print_json,
    print_rows,
)
from burst.cli.plan import JOBS
from burst.cli.progress import show_wait
from burst.cli.target import Target, target_options
from burst.config import read_toml
from burst.errors import BurstError, LeadError
from burst.lead import Lead
from burst.model.jobid import format_f58, parse_jobid
from burst.runtime.offline import read_snapshot
from burst.runtime.policy_check import JUDGED, check_policy, check_rules, with_rules

_RULES = (
    Column("RULE", lambda row: row["name"]),
    Column("WORTH", lambda row: f"{row['worth']:g}"),
    Column("JOBS", lambda row: row["takes"]),
    Column("DECISIONS", lambda row: _counts(row["verdicts"])),
    Column("MATCH", lambda row: _words(row["match"]) or "all other jobs"),
)
_JOBS = (JOBS[0], Column("RULE", lambda row: row["rule"]), *JOBS[1:])


@click.group(cls=CommandGroup)
def policy() -> None:
    """Examine the rules that decide when a job bursts."""


@policy.command()
@click.argument("name", metavar="[JOB|FILE]", default="")
@target_options
@listing_options
def check(name: str, target: Target, listing: Listing) -> None:
    """Show which rule applies to each waiting job, and what would happen now.

    With JOB, show only that job. With FILE, use that file in place of the daemon's
    settings: only [plan] worth, [[policy]] and [[budget]] if it has no [providers],
    else all settings about jobs. Without a lead, FILE is still checked, but no job is.
    Nothing is changed.
    """
    file = Path(name) if name.endswith(".toml") or os.path.isfile(name) else None
    tables = None if file is None else _rules_of(file)
    try:
        with target.lead() as lead, show_wait("reading the lead and the rules"):
            found = _checked(lead, target, tables, str(file or ""))
    except LeadError as error:
        if tables is None:
            raise
        # To check whether a file can be read and means what it should needs no lead.
        found = check_rules(with_rules(target.settings(), tables, str(file)))
        click.echo(f"no lead, so only the rules are checked: {error}", err=True)
    if found["trouble"]:
        raise BurstError(f"the lead cannot be read: {found['trouble']}")
    if name and file is None:
        found = _only(found, name)
    if listing.as_json:
        print_json(found)
        return
    if listing.form is None and (file or not name):
        print_rows(found["rules"], _RULES, listing)
        click.echo()
        for text in _remarks(found):
            click.echo(text)
    print_rows(found["jobs"], _JOBS, listing)


def _rules_of(file: Path) -> dict[str, Any]:
    """Return those tables of a file that are used. Raises ConfigError."""
    tables = read_toml(file)
    return {key: tables[key] for key in JUDGED if key in tables}


def _checked(
    lead: Lead, target: Target, tables: Mapping[str, Any] | None, where: str
) -> dict[str, Any]:
    """Return the daemon's answer; without a daemon, make the same answer here.

    `tables` are those of a file to use in place of the settings, `where` is its name.
    """
    found = call_daemon(lead, "policy", {"tables": tables, "where": where})
    if found is not None:
        return found
    settings = target.settings_or_say()
    snapshot = read_snapshot(lead, settings)
    if tables is not None:
        settings = with_rules(settings, tables, where)
    return check_policy(snapshot, settings)


def _only(found: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the part of an answer that is about one job. Raises BurstError."""
    try:
        job = format_f58(parse_jobid(name))
    except ValueError as error:
        raise BurstError(str(error), "give a job, or a file NAME.toml") from None
    jobs = [row for row in found["jobs"] if row["id"] == job]
    if not jobs:
        raise BurstError(
            f"{job} is not a waiting job that may burst", "burst explain says more"
        )
    rules = [row for row in found["rules"] if row["name"] == jobs[0]["rule"]]
    return {**found, "jobs": jobs, "rules": rules}


def _remarks(found: Row) -> list[str]:
    """Return sentences on rules that take no job, or may not mean what they should."""
    count = len(found["jobs"])
    unused = [row["name"] for row in found["rules"][:-1] if not row["takes"]]
    texts = list(found["warnings"])
    if unused and count:
        texts.append(f"rules for none of the {count} waiting jobs: {', '.join(unused)}")
    return [*texts, ""] if texts else []


def _counts(verdicts: Row) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()) or "-"


def _words(match: Row) -> str:
    return ", ".join(f"{key} {_value(value)}" for key, value in match.items())


def _value(value: Any) -> str:
    return "|".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
