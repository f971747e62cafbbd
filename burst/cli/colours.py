# SPDX-License-Identifier: MIT
"""What has which colour on a terminal, and lines printed with it.

rich leaves colours out where NO_COLOR is set or TERM is dumb.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from burst.model.printable import printable

HEAD = "bold"
"""Of names and titles."""
QUIET = "dim"
"""Of what is looked at last."""
NOTICE = "yellow"
"""Of what a person may have to do something about."""
WRONG = "red"
"""Of what has failed."""
_STATES = {
    "new": "yellow",
    "provision": "yellow",
    "join": "cyan",
    "online": "green",
    "drain": "magenta",
    "reap": "magenta",
    "inactive": QUIET,
    "quarantined": "bold red",
    "run": "green",
    "free": "green",
    "leased": "cyan",
    "drained": "yellow",
    "occupied": "yellow",
    "unfreed": "yellow",
    "unknown": "yellow",
}
_RESULTS = {"completed": "green", "failed": "red", "timeout": "red"}


def state_style(row: Mapping[str, Any]) -> str:
    """Return the style for the state of a burst, slot or job; empty for none."""
    return _STATES.get(row["state"], "")


def result_style(row: Mapping[str, Any]) -> str:
    """Return the style for the result of a burst or job; empty for none."""
    return _RESULTS.get(row["result"] or "", "")


def print_text(line: Text) -> None:
    """Print a line: with its styles on a terminal, else its plain text alone.

    What users wrote into a job may be in it, so nothing of it commands the terminal.
    """
    line = Text(printable(line.plain), line.style, spans=line.spans)
    if sys.stdout.isatty():
        Console(highlight=False).print(line, soft_wrap=True)
    else:
        click.echo(line.plain)
