# SPDX-License-Identifier: MIT
"""Shows the progress of something that takes seconds, on standard error.

A calculation has a bar on a terminal, which is removed at the end. Elsewhere, and on a
terminal without a cursor, it has a line after two seconds, and then one every ten
seconds. A wait is shown on terminals only.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import click

from burst.cli.colours import may_be_terminal

FIRST_S = 2.0
AGAIN_S = 10.0
WAIT_S = 1.0
"""Seconds before a wait is shown: most commands end sooner."""


@contextmanager
def show_progress(
    name: str, total: int, what: str, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int], None]]:
    """Yield a function to call, now and then, with how many of `total` are done.

    `what` names what is counted, such as jobs.
    """
    bar = None
    if may_be_terminal(sys.stderr):
        from burst.cli import terminal_progress  # noqa: PLC0415 - see burst.cli.colours

        bar = terminal_progress.open_bar(name, total)
    if bar is None:
        yield _Lines(name, total, what, clock).update
        return
    with bar as show:
        yield show


def show_wait(what: str) -> AbstractContextManager[Callable[[str], None]]:
    """Show on a terminal, after WAIT_S, what is waited for and for how long.

    Yield a function to call with another text. Lines on standard error appear above the
    text; print nothing on standard output meanwhile. The text is removed at the end.
    """
    spinner = None
    if may_be_terminal(sys.stderr):
        from burst.cli import terminal_progress  # noqa: PLC0415 - see burst.cli.colours

        spinner = terminal_progress.open_spinner(what, WAIT_S)
    return spinner or _no_spinner()


@contextmanager
def _no_spinner() -> Iterator[Callable[[str], None]]:
    yield lambda _: None


class _Lines:
    """Prints lines of progress, but none for what takes less than FIRST_S."""

    def __init__(
        self, name: str, total: int, what: str, clock: Callable[[], float]
    ) -> None:
        self._text = f"{name}: {{:,}} of {total:,} {what}"
        self._total = total
        self._clock = clock
        self._due = clock() + FIRST_S

    def update(self, done: int) -> None:
        now = self._clock()
        if now >= self._due and done < self._total:
            self._due = now + AGAIN_S
            click.echo(self._text.format(done), err=True)
