# SPDX-License-Identifier: MIT
"""`burst doctor`: what is wrong, and what to do about it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

import click

from burst.cli.listing import (
    Column,
    Listing,
    Row,
    listing_options,
    print_json,
    print_rows,
)
from burst.cli.progress import show_wait
from burst.cli.target import Target, target_options
from burst.cli.typed_names import complete_provider
from burst.config import Settings, load
from burst.doctor import DoctorRequest, ReadFailure, SettingsFacts, diagnose
from burst.errors import BurstError, ConfigError
from burst.model.finding import Finding, Level

_COLUMNS = (
    Column("LEVEL", lambda row: row["level"]),
    Column("ABOUT", lambda row: row["about"]),
    Column("WHAT", lambda row: row["what"]),
)


@click.command()
@click.option(
    "--provider",
    default="",
    shell_complete=complete_provider,
    help="Check this provider only.",
)
@click.option(
    "--probe",
    is_flag=True,
    help="Also start a pod where followers would run, and test whether it reaches the"
    " lead.",
)
@click.option(
    "--as-user",
    "user",
    default="",
    metavar="NAME",
    help="With --probe: also test whether jobs of this user could run there.",
)
@target_options
@listing_options
def doctor(
    provider: str, probe: bool, user: str, target: Target, listing: Listing
) -> None:
    """Check everything that bursts depend on; say what is wrong and what to do.

    Changes nothing, except that --probe starts a pod and removes it. Without -c, uses
    the settings of the running daemon. The exit status is 1 if anything is wrong.
    """
    if user and not probe:
        raise click.UsageError("--as-user is for --probe: give both")
    settings = read_facts(target)
    # What packages of a site print may not be taken for findings.
    with redirect_stdout(sys.stderr), show_wait("checking") as show:
        asked = DoctorRequest(
            settings=settings,
            uri=target.uri or "",
            provider=provider,
            probe=_tell if probe else None,
            user=user,
            show=show,
        )
        found = diagnose(asked, lambda each: show(f"checking; {each.about} is done"))
    rows = [
        {
            "level": finding.level.value,
            "about": finding.about,
            "what": finding.what,
            "advice": finding.advice,
        }
        for finding in found
    ]
    is_wrong = any(finding.level is Level.WRONG for finding in found)
    if listing.as_json:
        print_json({"ok": not is_wrong, "findings": rows})
    elif listing.form is not None:
        print_rows(rows, (), listing)
    else:
        print_findings(found)
    sys.exit(is_wrong)


def _tell(line: str) -> None:
    """Print a line of progress on standard error."""
    click.echo(line, err=True)


def _find(target: Target) -> Path | None:
    """Return the settings file that the lead's daemon has read, else the usual one."""
    try:
        with target.lead() as lead:
            return target.find_beside(lead)
    except BurstError:
        # The examination reports what is wrong with the lead or the settings.
        return target.find()


def read_facts(target: Target) -> SettingsFacts:
    """Return the settings to check, and what is wrong with their file."""
    path = _find(target)
    try:
        settings = load(path) if path else Settings()
    except ConfigError as error:
        trouble = ReadFailure(error.what, error.advice)
        return SettingsFacts(path=str(path), settings=Settings(), trouble=trouble)
    return SettingsFacts(path=str(path or ""), settings=settings)


def print_findings(found: Sequence[Finding]) -> None:
    """Print each finding, and below it what to do about it."""
    lines: list[Row] = []
    for each in found:
        level = each.level.value
        lines.append({"level": level, "about": each.about, "what": each.what})
        if each.advice:
            lines.append({"level": "", "about": "", "what": f"-> {each.advice}"})
    print_rows(lines, _COLUMNS, Listing(header=False))
    counts = Counter(each.level.value for each in found)
    click.echo(f"\n{counts['wrong']} wrong, {counts['note']} to note")
