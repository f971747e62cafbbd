# SPDX-License-Identifier: MIT
"""How far something is that takes seconds, on standard error.

Of a calculation, on a terminal that is a bar, which is removed at the end. Elsewhere,
and on a terminal without a cursor, it is a line after two seconds, and then one each
ten seconds. What is only waited for is shown on terminals alone.
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
"""Seconds before it is shown what is waited for: most commands end before."""


@contextmanager
def show_progress(
    name: str, total: int, what: str, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int], None]]:
    """Yield what is to be called, now and then, with how many of `total` are done.

    `what` is what is counted, such as jobs.
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
    """Show on a terminal what is waited for, and for how long, after WAIT_S.

    Yield what is to be called with another text. Lines on standard error come above it;
    print nothing on standard output meanwhile. It is removed at the end.
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
    """Lines, none of them for what takes less than FIRST_S."""

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
