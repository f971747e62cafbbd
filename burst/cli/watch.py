# SPDX-License-Identifier: MIT
"""`burst watch`: a live screen of jobs that wait, bursts, slots, providers, money."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType

import click
from rich.console import Console, ConsoleDimensions, Group
from rich.live import Live

from burst.cli.cost import user_name
from burst.cli.daemon_call import ask_or_read
from burst.cli.listing import Row
from burst.cli.target import Target, target_options
from burst.cli.terminal_keys import TerminalKeys
from burst.cli.watch_calls import STATUS, WatchAnswer, WatchCalls
from burst.cli.watch_screen import HEIGHT, HELP, WIDTH, draw
from burst.cli.watch_state import WatchState, press, told
from burst.model.exit_status import shell_status

# A key is waited for so long before answers are looked for, in seconds.
_LOOK_S = 0.1
_ENDING = (signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.option(
    "--every",
    type=click.FloatRange(0.2, 3600.0),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How often the daemon is asked.",
)
@target_options
def watch(every: float, target: Target) -> None:
    """Show live what waits, what bursts and what that costs.

    Keys explain what is selected, take a burst down, or release a job; ? lists them.
    Users other than the instance owner see their own jobs and bursts. If the daemon
    goes away, that is said, and it is asked again and again. Where the output is no
    terminal, or one that cannot move its cursor, what there is now is printed once.
    """
    console = Console(highlight=False)
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or console.is_dumb_terminal:
        _print_once(target)
        return
    calls = WatchCalls(target.lead, every)
    calls.start()
    try:
        with _ended_by_signals(), TerminalKeys(sys.stdin.fileno()) as keys:
            _show(console, keys, calls)
    except KeyboardInterrupt:
        sys.exit(shell_status(-signal.SIGINT))
    finally:
        calls.stop()


def _show(console: Console, keys: TerminalKeys, calls: WatchCalls) -> None:
    """Show the screen until its user quits. Raises OSError if the terminal is gone."""
    state, shown = WatchState(), None
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while not state.over:
            for answer in calls.take():
                state = _take_answer(state, answer)
            size = _fit(console)
            if shown != (state, size):
                lines = draw(state, size.width, size.height)
                live.update(Group(*lines), refresh=True)
                shown = state, size
            for key in keys.read(_LOOK_S):
                state, call = press(state, key, HELP)
                if call is not None:
                    calls.post(call)


def _fit(console: Console) -> ConsoleDimensions:
    """Give the console the size that its terminal has now, and return it.

    rich takes COLUMNS and LINES first. Where a shell exports those, they stay as they
    were when the terminal gets another size.
    """
    size = os.get_terminal_size(console.file.fileno())
    # A serial line has no size that is known; there rich's guess is as good as any.
    if size.columns and size.lines:
        console.size = ConsoleDimensions(size.columns, size.lines)
    return console.size


def _take_answer(state: WatchState, answer: WatchAnswer) -> WatchState:
    """Return the state after what the daemon answered, or did not."""
    if answer.call == STATUS:
        if answer.found is None:
            return state.change(failure=answer.failure)
        return state.answered(_named(answer.found))
    if answer.found is None:
        return state.change(message=answer.failure)
    return told(state, answer.call, answer.found)


def _named(found: Row) -> Row:
    """Return an answer whose jobs have the names of their users, where known."""
    jobs = found.get("jobs", [])
    return {
        **found,
        "jobs": [{**job, "user": user_name(str(job["userid"]))} for job in jobs],
    }


def _print_once(target: Target) -> None:
    """Print what is now as plain text, as high as it has to be."""
    with target.lead() as lead:
        found = ask_or_read(lead, target, STATUS.method, STATUS.payload)
    state = WatchState(found=_named(found))
    console = Console(highlight=False, no_color=True, force_terminal=False)
    width = max(WIDTH, console.width)
    height = max(HEIGHT, 20 + len(state.items()))
    plain = [line.plain.rstrip() for line in draw(state, width, height)]
    click.echo("\n".join(plain[:-2]).rstrip())
    click.echo(
        "this is no terminal with a cursor, so that is all; burst status has --json",
        err=True,
    )


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Have the terminal restored where a signal ends the process; it cannot be stopped.

    A screen that Ctrl-Z leaves behind would be of no use to the shell.
    """

    def end(number: int, _: FrameType | None) -> None:
        sys.exit(shell_status(-number))

    wanted: dict[int, Callable[[int, FrameType | None], None] | signal.Handlers]
    wanted = {**dict.fromkeys(_ENDING, end), signal.SIGTSTP: signal.SIG_IGN}
    before = {number: signal.signal(number, how) for number, how in wanted.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
