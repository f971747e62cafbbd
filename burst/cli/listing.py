# SPDX-License-Identifier: MIT
"""What commands print: lines, tables, `--json`, `-o FORMAT`."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
import msgspec

from burst.cli.colours import Line, may_be_terminal, plain_text
from burst.core.money.money import UNIT, Money, format_money
from burst.errors import BurstError
from burst.model.fsd import format_fsd
from burst.model.printable import printable

Row = Mapping[str, Any]


class Listing(msgspec.Struct, frozen=True):
    """How to print a listing: the values of --json, -o and -n."""

    as_json: bool = False
    form: str | None = None
    header: bool = True


def listing_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add `--json`, `-o` and `-n` of every listing; the command gets `listing`."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    @click.option(
        "-o",
        "--format",
        "form",
        metavar="FORMAT",
        help="Format of each line, such as '{id} {state:>9}'.",
    )
    @click.option(
        "-n", "--no-header", is_flag=True, help="Leave out the column titles."
    )
    @functools.wraps(function)
    def command(
        as_json: bool, form: str | None, no_header: bool, **others: Any
    ) -> None:
        if as_json and form is not None:
            raise click.UsageError("--json cannot be used with -o")
        function(listing=Listing(as_json, form, not no_header), **others)

    return command


def counted(count: int, word: str) -> str:
    """Return a number of things in words: "1 node", "2 nodes"."""
    return f"{count} {word}{'s' * (count != 1)}"


def print_json(value: Any) -> None:
    """Print a value as JSON for a program to read.

    All characters that a terminal may take for a command are escaped; JSON requires
    that for the first 32 only. So are those that the locale's encoding may lack.
    """
    is_utf8 = sys.stdout.encoding.lower() in {"utf-8", "utf8"}
    text = json.dumps(value, indent=2, ensure_ascii=not is_utf8)
    if not text.replace("\n", "").isprintable():
        shown = (
            c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text
        )
        text = "".join(shown)
    click.echo(text)


def print_text(line: Line) -> None:
    """Print a line, with its styles on a terminal, elsewhere as plain text.

    Control characters are replaced, since the line may have text that a user wrote.
    """
    if not sys.stdout.isatty():
        click.echo(printable(plain_text(line)))
        return
    from burst.cli import terminal  # noqa: PLC0415 - see burst.cli.colours

    terminal.print_line(line)


class Column(msgspec.Struct, frozen=True):
    """One column of a listing: its title, and how a row's value is shown."""

    title: str
    show: Callable[[Row], Any]
    style: Callable[[Row], str] = lambda _: ""
    """Returns the style of rich for a row's value on a terminal; empty for none."""


def print_rows(rows: Sequence[Row], columns: Sequence[Column], how: Listing) -> None:
    """Print a listing: as a table, or each row by a format. Raises BurstError."""
    if how.form is not None:
        for row in rows:
            click.echo(_formatted(how.form, row))
        return
    lines = [[(printable(c.show(row)), c.style(row)) for c in columns] for row in rows]
    if how.header:
        lines.insert(0, [(column.title, "") for column in columns])
    by_column = zip(*lines, strict=True)
    widths = [max(_width(text) for text, _ in cells) for cells in by_column]
    if lines and may_be_terminal(sys.stdout):
        from burst.cli import terminal  # noqa: PLC0415 - see burst.cli.colours

        terminal.print_table(lines, widths, header=how.header)
        return
    for line in lines:
        padded = (
            text + " " * (width - _width(text))
            for (text, _), width in zip(line, widths, strict=True)
        )
        click.echo("  ".join(padded).rstrip())


def _width(text: str) -> int:
    """Return how many cells of a terminal a text without control characters takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - its tables take long to load

    return cell_len(text)


def fsd(seconds: float | None) -> str:
    """Return a duration for people, `-` for none."""
    return "-" if seconds is None else format_fsd(round(seconds, 3))


def money(amount: float) -> str:
    """Return an amount, in units of the currency, for people."""
    return format_money(Money(round(amount * UNIT)))


def _shown(value: Any) -> Any:
    """Return a value without what a terminal may take for a command in its texts."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {key: _shown(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shown(each) for each in value]
    return value


def _formatted(form: str, row: Row) -> str:
    try:
        return form.format(**_shown(row))
    except (KeyError, IndexError) as error:
        raise BurstError(
            f"-o: no field {error}", "the fields are " + ", ".join(sorted(row))
        ) from None
    except (ValueError, AttributeError, TypeError) as error:
        raise BurstError(f"-o: {error}", "write it as '{id} {state:>9}'") from None
