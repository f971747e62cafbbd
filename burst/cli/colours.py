# SPDX-License-Identifier: MIT
"""The colours of texts on a terminal, and lines printed with them.

rich omits colours if NO_COLOR is set or TERM is dumb. Its import takes a quarter of a
command's time, so `burst.cli.terminal` and `terminal_progress`, which need it, are
imported only to print on what may be a terminal.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

Styled = tuple[str, str]
"""A text and its style of rich, empty for none."""
Line = Sequence[str | Styled]
"""What is printed on one line, part by part."""
HEAD = "bold"
"""Style of names and titles."""
QUIET = "dim"
"""Style of what a person reads last."""
NOTICE = "yellow"
"""Style of what a person may have to act on."""
WRONG = "red"
"""Style of what has failed."""
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
    "unscheduled": "yellow",
    "unknown": "yellow",
}
_RESULTS = {"completed": "green", "failed": "red", "timeout": "red"}


def state_style(row: Mapping[str, Any]) -> str:
    """Return the style for the state of a burst, slot or job; empty for none."""
    return _STATES.get(row["state"], "")


def result_style(row: Mapping[str, Any]) -> str:
    """Return the style for the result of a burst or job; empty for none."""
    return _RESULTS.get(row["result"] or "", "")


def may_be_terminal(stream: TextIO) -> bool:
    """Return whether rich may take the stream for a terminal."""
    told = any(map(os.environ.get, ("FORCE_COLOR", "TTY_COMPATIBLE")))
    return told or stream.isatty()


def plain_text(line: Line) -> str:
    """Return a line without its styles."""
    return "".join(part if isinstance(part, str) else part[0] for part in line)
