# SPDX-License-Identifier: MIT
"""What the commands share: options, the lead, listings, and how errors look."""

from __future__ import annotations

import functools
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from burst import log
from burst.config import Settings, load
from burst.errors import BurstError, NoDaemon
from burst.lead import Lead
from burst.model.fsd import format_fsd
from burst.runtime.connect import connect

Row = Mapping[str, Any]

# Where a file is looked for without -c: the one that the environment names, a user's
# own, then the site's.
_NAMED_BY = "BURST_CONFIG"
_PLACES = ("~/.config/burst/burst.toml", "/etc/flux/burst.toml")


def run_command(command: click.Command) -> None:
    """Run as a program; a BurstError ends it with status 1 and one line."""
    warnings.showwarning = log.show_warning
    try:
        command.main()
    except BurstError as error:
        click.echo(f"{command.name}: ERROR: {error}", err=True)
        sys.exit(1)


class Place(msgspec.Struct, frozen=True):
    """Which settings and which lead a command is about."""

    config: Path | None
    uri: str | None

    def find(self) -> Path | None:
        """Return the settings file to use, None where there is none at all."""
        if self.config is not None:
            return self.config
        named = os.environ.get(_NAMED_BY)
        if named:
            return Path(named)
        places = (Path(place).expanduser() for place in _PLACES)
        return next((place for place in places if place.exists()), None)

    def find_beside(self, lead: Lead) -> Path | None:
        """Return the settings file to use for a question about this lead.

        What the command line or the environment names; else what the lead's daemon has
        read; else what `find` finds. Raises LeadError.
        """
        if self.config is None and not os.environ.get(_NAMED_BY):
            try:
                read = lead.call("ping", {}).get("config", "")
            except NoDaemon:
                read = ""
            if read:
                return Path(read)
        return self.find()

    def settings_or_say(self) -> Settings:
        """Read the settings; say on standard error if there is no file to read."""
        if self.find() is None:
            click.echo(
                "no daemon serves this lead, and no settings file was read, so that no"
                " provider is known: name one with -c",
                err=True,
            )
        return self.settings()

    def settings(self) -> Settings:
        """Read the settings. Raises ConfigError."""
        found = self.find()
        settings = load(found) if found else Settings()
        if self.uri:
            lead = msgspec.structs.replace(settings.lead, uri=self.uri)
            settings = msgspec.structs.replace(settings, lead=lead)
        return settings

    @contextmanager
    def lead(self) -> Iterator[Lead]:
        """Connect to the lead, for the time of a command. Raises LeadError."""
        settings = self.settings()
        lead = connect(settings.lead.uri, settings.intake.attribute)
        try:
            yield lead
        finally:
            lead.close()


class Listing(msgspec.Struct, frozen=True):
    """How a listing is to be printed."""

    as_json: bool = False
    form: str | None = None
    header: bool = True


def place_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add `--config` and `--uri`; the command gets them as `place`."""

    @click.option(
        "-c",
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Settings file. Without it: "
        + ", ".join((f"${_NAMED_BY}", *_PLACES))
        + ".",
    )
    @click.option(
        "--uri", help="Of the lead: local://... or embedded://... Default: FLUX_URI."
    )
    @functools.wraps(function)
    def command(config: Path | None, uri: str | None, **others: Any) -> None:
        function(place=Place(config, uri), **others)

    return command


def listing_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add `--json`, `-o` and `-n` of every listing; the command gets `listing`."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    @click.option(
        "-o",
        "--format",
        "form",
        metavar="FORMAT",
        help="Fields for each line, such as '{id} {state:>9}'.",
    )
    @click.option("-n", "--no-header", is_flag=True, help="Leave the titles out.")
    @functools.wraps(function)
    def command(
        as_json: bool, form: str | None, no_header: bool, **others: Any
    ) -> None:
        function(listing=Listing(as_json, form, not no_header), **others)

    return command


def print_json(value: Any) -> None:
    """Print a value as JSON for a program to read."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


class Column(msgspec.Struct, frozen=True):
    """One column of a listing: its title, and how a row's value is shown."""

    title: str
    show: Callable[[Row], Any]


def print_rows(rows: Sequence[Row], columns: Sequence[Column], how: Listing) -> None:
    """Print a listing: in columns, or each row by a format. Raises BurstError."""
    if how.form is not None:
        for row in rows:
            click.echo(_formatted(how.form, row))
        return
    table = [[str(column.show(row)) for column in columns] for row in rows]
    if how.header:
        table.insert(0, [column.title for column in columns])
    widths = [max(map(len, cells), default=0) for cells in zip(*table, strict=True)]
    for line in table:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def fsd(seconds: float | None) -> str:
    """Return a duration for people, `-` for none."""
    return "-" if seconds is None else format_fsd(round(seconds, 3))


def money(amount: float) -> str:
    """Return an amount for people; of less than a hundredth its first two digits."""
    return f"{amount:.2f}" if amount >= 0.01 or not amount else f"{amount:.2g}"


def _formatted(form: str, row: Row) -> str:
    try:
        return form.format(**row)
    except (KeyError, IndexError) as error:
        raise BurstError(
            f"-o: no field {error}", "the fields are " + ", ".join(sorted(row))
        ) from None
    except (ValueError, AttributeError, TypeError) as error:
        raise BurstError(f"-o: {error}", "write it as '{id} {state:>9}'") from None
