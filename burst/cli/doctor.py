# SPDX-License-Identifier: MIT
"""`burst doctor`: what is wrong, and what to do about it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from burst.cli.common import (
    Listing,
    Place,
    Row,
    listing_options,
    place_options,
    print_json,
    print_rows,
)
from burst.config import Settings, load
from burst.doctor import DoctorRequest, ReadFailure, SettingsFacts, diagnose
from burst.errors import BurstError, ConfigError
from burst.model.finding import Level


@click.command()
@click.option("--provider", default="", help="Ask this provider only.")
@click.option(
    "--probe",
    is_flag=True,
    help="Also have a pod, where followers would run, try whether it reaches the lead.",
)
@place_options
@listing_options
def doctor(provider: str, probe: bool, place: Place, listing: Listing) -> None:
    """Look at all that bursts rest on; say what is wrong, and what to do.

    Nothing is changed; --probe starts a pod, and removes it. Without -c, the settings
    are those of the running daemon. The exit status is 1 if anything is wrong.
    """
    found = diagnose(
        DoctorRequest(
            settings=_read(place),
            uri=place.uri or "",
            provider=provider,
            probe=_tell if probe else None,
        )
    )
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
        _print(rows)
    sys.exit(is_wrong)


def _tell(line: str) -> None:
    """Say on standard error what is waited for."""
    click.echo(line, err=True)


def _find(place: Place) -> Path | None:
    """Return the file that the daemon of the lead has read, else the usual one."""
    try:
        with place.lead() as lead:
            return place.find_beside(lead)
    except BurstError:
        # What is wrong with the lead or the settings is told by the examination.
        return place.find()


def _read(place: Place) -> SettingsFacts:
    path = _find(place)
    try:
        settings = load(path) if path else Settings()
    except ConfigError as error:
        trouble = ReadFailure(error.what, error.advice)
        return SettingsFacts(path=str(path), settings=Settings(), trouble=trouble)
    return SettingsFacts(path=str(path or ""), settings=settings)


def _print(rows: Sequence[Row]) -> None:
    """Print each finding, and below it what to do about it."""
    wide = max(len(row["about"]) for row in rows)
    for row in rows:
        click.echo(f"{row['level']:5}  {row['about']:{wide}}  {row['what']}")
        if row["advice"]:
            click.echo(f"{'':5}  {'':{wide}}  -> {row['advice']}")
    counts = Counter(row["level"] for row in rows)
    click.echo(f"\n{counts['wrong']} wrong, {counts['note']} to note")
