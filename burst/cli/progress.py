# SPDX-License-Identifier: MIT
"""How far a long calculation is, on standard error.

On a terminal that is a bar, which is removed at the end. Elsewhere it is a line after
two seconds, and then one each ten seconds.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import click
from rich.console import Console
from rich.progress import Progress

FIRST_S = 2.0
AGAIN_S = 10.0


@contextlib.contextmanager
def show_progress(name: str, total: int, what: str) -> Iterator[Callable[[int], None]]:
    """Yield what is to be called, now and then, with how many of `total` are done.

    `what` is what is counted, such as jobs.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(name, total, what).update
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(name, total=total)
        yield lambda done: progress.update(task, completed=done)


class _Lines:
    """Lines, none of them for what takes less than FIRST_S."""

    def __init__(self, name: str, total: int, what: str) -> None:
        self._text = f"{name}: {{:,}} of {total:,} {what}"
        self._total = total
        self._due = time.monotonic() + FIRST_S

    def update(self, done: int) -> None:
        now = time.monotonic()
        if now >= self._due and done < self._total:
            self._due = now + AGAIN_S
            click.echo(self._text.format(done), err=True)
