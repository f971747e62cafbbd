# SPDX-License-Identifier: MIT
"""How far something is that takes seconds, on standard error.

Of a calculation, on a terminal that is a bar, which is removed at the end. Elsewhere,
and on a terminal without a cursor, it is a line after two seconds, and then one each
ten seconds. What is only waited for is shown on terminals alone.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

FIRST_S = 2.0
AGAIN_S = 10.0
WAIT_S = 1.0
"""Seconds before it is shown what is waited for: most commands end before."""


@contextlib.contextmanager
def show_progress(name: str, total: int, what: str) -> Iterator[Callable[[int], None]]:
    """Yield what is to be called, now and then, with how many of `total` are done.

    `what` is what is counted, such as jobs.
    """
    console = Console(stderr=True)
    if not console.is_interactive:
        yield _Lines(name, total, what).update
        return
    progress = Progress(console=console, transient=True)
    task = progress.add_task(name, total=total)
    try:
        with _ctrl_c_waits():
            progress.start()
        yield lambda done: progress.update(task, completed=done)
    finally:
        with _ctrl_c_waits():
            progress.stop()


@contextlib.contextmanager
def show_wait(what: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal what is waited for, and for how long, after WAIT_S.

    Yield what is to be called with another text. Lines on standard error come above it;
    print nothing on standard output meanwhile. It is removed at the end.
    """
    console = Console(stderr=True)
    if not console.is_interactive:
        yield lambda _: None
        return
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,
    )
    task = progress.add_task(what, total=None)
    timer = threading.Timer(WAIT_S, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda text: progress.update(task, description=text)
    finally:
        with _ctrl_c_waits():
            timer.cancel()
            timer.join()
            if progress.live.is_started:
                progress.stop()


@contextlib.contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Have Ctrl-C come after the block, in which a terminal is changed.

    In the midst of that it would leave the cursor hidden and standard error redirected,
    so that what is printed next fails. The signal is not blocked for that: another
    thread would take it, and Python tells the main one of it all the same.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed:
            signal.raise_signal(signal.SIGINT)


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
