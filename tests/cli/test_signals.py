# SPDX-License-Identifier: MIT
"""What the first signal does to a command that takes down what it made, and the next.

Each story is told by a process of its own, as its standard output is lost.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.waiting import HANG_S

_STORY = """
import os, signal, sys
from burst.cli.signals import signals_as_ctrl_c

told = int(sys.argv[1])
first, *others = [signal.Signals[name] for name in sys.argv[2:]]
with signals_as_ctrl_c():
    try:
        signal.raise_signal(first)
    except KeyboardInterrupt:
        try:
            for number in others:
                signal.raise_signal(number)
            os.write(told, b"goes on")
        except KeyboardInterrupt:
            os.write(told, b"interrupted again")
print("written", flush=True)
"""


def story(*names: str) -> tuple[str, str]:
    """Return what such a command did after these signals, and what it wrote then."""
    ours, theirs = os.pipe()
    # Under nohup(1), programs would ignore SIGHUP, which it sends.
    hears = ("env", "--default-signal=HUP,INT,TERM")
    with os.fdopen(ours) as told:
        try:
            ended = subprocess.run(
                [*hears, sys.executable, "-c", _STORY, str(theirs), *names],
                pass_fds=[theirs],
                stdout=subprocess.PIPE,
                text=True,
                timeout=HANG_S,
                check=True,
            )
        finally:
            os.close(theirs)
        return told.read(), ended.stdout.strip()


@pytest.mark.parametrize("first", ["SIGINT", "SIGTERM"])
def test_a_terminal_that_goes_later_does_not_end_the_taking_down(first: str) -> None:
    assert story(first, "SIGTERM", "SIGHUP") == ("goes on", "")
    assert story(first, "SIGHUP", "SIGHUP", "SIGTERM") == ("goes on", "")


def test_nothing_is_written_to_a_terminal_that_has_gone() -> None:
    assert story("SIGHUP", "SIGTERM", "SIGHUP") == ("goes on", "")
    assert story("SIGTERM", "SIGTERM") == ("goes on", "written")


def test_only_a_second_ctrl_c_ends_the_taking_down() -> None:
    assert story("SIGINT", "SIGTERM", "SIGINT")[0] == "interrupted again"
    for first in ("SIGTERM", "SIGHUP"):
        # It may have been sent together with the first.
        assert story(first, "SIGINT")[0] == "goes on"
        assert story(first, "SIGINT", "SIGINT")[0] == "interrupted again"
