# SPDX-License-Identifier: MIT
"""How far a calculation is, and Ctrl-C where its bar begins or ends."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading

import pytest

from burst.cli.progress import FIRST_S, show_progress
from burst.cli.terminal_progress import open_spinner
from tests.support.set_clock import SetClock
from tests.support.waiting import HANG_S

HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"


class Terminal(io.StringIO):
    """Presses Ctrl-C once, when a text is written."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self._at = at

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        written = super().write(text)
        if self._at and self._at in text:
            self._at = ""
            # To this thread: sent to the process, another thread may get it later.
            signal.raise_signal(signal.SIGINT)
        return written


@pytest.mark.parametrize("at", [HIDDEN, SHOWN])
def test_ctrl_c_leaves_no_bar_that_begins_or_ends_half(
    monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    terminal = Terminal(at)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stderr", terminal)
    output = sys.stdout
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), show_progress("never", 9, "jobs") as show:
        show(9)
    assert (sys.stderr, sys.stdout) == (terminal, output)
    text = terminal.getvalue()
    assert text.rindex(SHOWN) > text.rindex(HIDDEN)
    # What comes last removes the bar.
    assert text.endswith("\x1b[2K")
    assert signal.getsignal(signal.SIGINT) is before


def test_a_bar_that_nobody_reads_ends_nothing_and_drops_no_result() -> None:
    """As with FORCE_COLOR, which many CIs set, in `burst replay 2>&1 >file | head`."""
    ours, theirs = os.pipe()
    os.close(ours)
    code = """
from burst.cli.terminal_progress import open_bar
with open_bar("replay", 3) as show:
    show(1)
print("told")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "FORCE_COLOR": "1", "TERM": "xterm"},
        check=False,
        text=True,
    )
    os.close(theirs)
    assert (done.returncode, done.stdout) == (0, "told\n")


def test_in_another_thread_ctrl_c_is_left_to_the_main_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal("")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stderr", terminal)

    def calculate() -> None:
        with show_progress("never", 9, "jobs") as show:
            show(9)

    thread = threading.Thread(target=calculate)
    thread.start()
    thread.join()
    assert "never" in terminal.getvalue()


def test_a_terminal_without_a_cursor_gets_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal("")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stderr", terminal)
    clock = SetClock(1000.0)
    with show_progress("never", 9, "jobs", clock) as show:
        show(3)
        clock.now += FIRST_S
        show(6)
        show(7)
    assert terminal.getvalue() == "never: 6 of 9 jobs\n"


def test_a_wait_that_ends_soon_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal("")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stderr", terminal)
    spinner = open_spinner("waiting for the daemon", HANG_S)
    assert spinner
    with spinner as show:
        show("waiting for the lead")
    assert terminal.getvalue() == ""
