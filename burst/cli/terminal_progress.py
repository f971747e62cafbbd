# SPDX-License-Identifier: MIT
"""The bar and the spinner of `burst.cli.progress`, by rich."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from burst.unread_output import drop_output


def open_bar(
    name: str, total: int
) -> AbstractContextManager[Callable[[int], None]] | None:
    """Return a bar that shows how many of `total` are done; None without a cursor."""
    console = _Console(stderr=True)
    return _bar(console, name, total) if console.is_interactive else None


def open_spinner(
    what: str, after: float
) -> AbstractContextManager[Callable[[str], None]] | None:
    """Return a spinner with a text, shown after `after` s; None without a cursor."""
    console = _Console(stderr=True)
    return _spinner(console, what, after) if console.is_interactive else None


class _Console(Console):
    """Drops what nobody reads; rich would end the program, and drop standard output."""

    def on_broken_pipe(self) -> None:
        drop_output(self.file)


@contextlib.contextmanager
def _bar(console: Console, name: str, total: int) -> Iterator[Callable[[int], None]]:
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
def _spinner(
    console: Console, what: str, after: float
) -> Iterator[Callable[[str], None]]:
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,
    )
    task = progress.add_task(what, total=None)
    timer = threading.Timer(after, progress.start)
    timer.daemon = True
    with _ctrl_c_waits():
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
    """Delay Ctrl-C until after the block, which changes the terminal.

    During the change it would leave the cursor hidden and standard error redirected, so
    that the next print fails. To block the signal would not do: another thread may take
    it, and Python would run the handler in the main one all the same. It is blocked for
    threads that the block starts. They would take it at any time, and the main one
    would not wake from what it waits for.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before)
        if pressed:
            signal.raise_signal(signal.SIGINT)
