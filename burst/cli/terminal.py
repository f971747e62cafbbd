# SPDX-License-Identifier: MIT
"""Prints lines and tables on a terminal, by rich; imported only if there is one."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from burst.cli.colours import Line, Styled
from burst.model.printable import printable

# Wider than any line, for output that rich does not take for a terminal after all.
_PIPE_WIDTH = 100_000


def rich_text(line: Line) -> Text:
    """Return a line as a text of rich, without control characters."""
    pairs = ((part, "") if isinstance(part, str) else part for part in line)
    return Text.assemble(*((printable(text), style) for text, style in pairs))


def print_line(line: Line) -> None:
    """Print a line with its styles; the terminal breaks it where it is too narrow."""
    Console(highlight=False).print(rich_text(line), soft_wrap=True)


def print_table(
    lines: Sequence[Sequence[Styled]], widths: Sequence[int], *, header: bool
) -> None:
    """Print a table; only its last column is wrapped.

    `lines` begin with the titles if there is a header. `widths` has the least width of
    each column: without it, a narrow terminal would cut off those that are not wrapped.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=header)
    titles = lines[0] if header else [("", "")] * len(lines[0])
    for number, (title, _) in enumerate(titles):
        is_last = number == len(titles) - 1
        least = 0 if is_last else widths[number]
        table.add_column(Text(title), no_wrap=not is_last, min_width=least)
    for line in lines[1:] if header else lines:
        table.add_row(*(Text(*cell) for cell in line))
    console = Console(highlight=False)
    # A terminal too narrow for the other columns breaks lines; nothing is cut off.
    needed = Measurement.get(console, console.options.update_width(_PIPE_WIDTH), table)
    width = max(console.width, needed.minimum) if console.is_terminal else _PIPE_WIDTH
    console = Console(highlight=False, width=width)
    with console.capture() as capture:
        console.print(table)
    for printed in capture.get().splitlines():
        click.echo(printed.rstrip())
