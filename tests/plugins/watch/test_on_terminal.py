# SPDX-License-Identifier: MIT
"""`burst watch` on a real terminal with a real daemon."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from burst.model.jobid import format_f58
from tests.cli.cli_harness import BURST, CliHarness
from tests.cli.conftest import Shared
from tests.contract.instance import SLEEP
from tests.support.terminal import TerminalScreen, on_terminal
from tests.support.waiting import wait_until

ALTERNATE, BACK = "\x1b[?1049h", "\x1b[?1049l"
HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"


@contextmanager
def command_on_terminal(
    cli: CliHarness, *words: str, **environment: str
) -> Iterator[TerminalScreen]:
    argv = [BURST, *words, "-c", str(cli.config), "--uri", cli.uri]
    with on_terminal(argv, environment) as screen:
        yield screen


@contextmanager
def watched(cli: CliHarness, **environment: str) -> Iterator[TerminalScreen]:
    with command_on_terminal(cli, "watch", "--every", "0.2", **environment) as screen:
        yield screen


def is_restored(screen: TerminalScreen) -> bool:
    """Tell whether the terminal is as it was: mode, screen and cursor."""
    text = screen.text
    assert text.rindex(BACK) > text.rindex(ALTERNATE)
    assert text.rindex(SHOWN) > text.rindex(HIDDEN)
    return screen.settings() == screen.before


def test_one_watches_explains_releases_takes_down_and_quits(shared: Shared) -> None:
    instance, cli, _ = shared
    runs = instance.submit(nodes=2, command=SLEEP)
    waits = instance.submit(nodes=8, command=SLEEP)
    with watched(cli) as screen:
        screen.shows("online")
        screen.shows(format_f58(waits))
        (burst,) = [b for b in cli.status()["bursts"] if b["state"] != "inactive"]

        at = screen.press("\r")
        screen.shows("it is online, with ranks 2-3", at)
        at = screen.press("q\t\r")
        screen.shows("held by burst; its urgency was 16", at)
        at = screen.press("qr")
        screen.shows(f"released: {format_f58(waits)}", at)
        wait_until(lambda: cli.status()["held"] == [], "the job to be released")

        at = screen.press("\x1b[Z\x1b[Hd")
        screen.shows(f"Take {burst['id']} down, once its jobs have ended? y/n", at)
        at = screen.press("y")
        screen.shows(f"{burst['id']} is being taken down", at)
        wait_until(lambda: cli.row(burst["id"])["state"] == "drain", "it to drain")

        instance.cancel(runs)
        instance.cancel(waits)
        cli.wait_for_state(burst["id"], "inactive")
        screen.press("q")
        assert screen.ended() == 0
        assert is_restored(screen)
    assert cli.row(burst["id"])["note"] == "taken down in burst watch"


@pytest.mark.parametrize(
    ("keys", "number", "status"),
    [("\x03", None, 130), ("", signal.SIGTERM, 143), ("", signal.SIGHUP, 129)],
)
def test_the_terminal_is_restored_however_it_ends(
    served: CliHarness, keys: str, number: int | None, status: int
) -> None:
    argv = [BURST, "watch", "-c", str(served.config), "--uri", served.uri]
    with on_terminal(argv, {}) as screen:
        screen.shows("PROVIDER")
        screen.press(keys)
        if number is not None:
            os.kill(screen.process.pid, number)
        assert screen.ended() == status
        assert is_restored(screen)
        assert "Traceback" not in screen.text


def test_a_key_that_is_no_utf_8_is_no_success(served: CliHarness) -> None:
    """Textual ends the program then."""
    with watched(served) as screen:
        screen.shows("PROVIDER")
        screen.press("\udcfc")
        assert screen.ended() == 1
        assert is_restored(screen)


def test_without_colour_the_selected_row_is_still_marked(served: CliHarness) -> None:
    with watched(served, NO_COLOR="1") as screen:
        screen.shows("\x1b[7;39;49m burst-0")
        screen.shows("PROVIDER")
        screen.press("q")
        assert screen.ended() == 0
    assert not re.search("\x1b\\[[0-9;]*[349][0-8]m", screen.text)


def test_without_a_terminal_one_plain_frame_is_printed(shared: Shared) -> None:
    instance, cli, _ = shared
    job = instance.submit(nodes=9, command=SLEEP)
    wait_until(lambda: cli.status()["pending"] == 1, "the job")
    found = cli.run("watch")
    instance.cancel(job)

    assert found.lines[0].startswith("burst watch  embedded://")
    assert any(format_f58(job) in line for line in found.lines)
    assert "\x1b" not in found.stdout
    assert "this is not a terminal" in found.stderr


def test_without_terminal_and_daemon_the_records_are_shown(cli: CliHarness) -> None:
    assert "no daemon serves this lead" in cli.run("watch").stdout


def test_a_terminal_without_a_cursor_gets_one_frame(served: CliHarness) -> None:
    with watched(served, TERM="dumb") as screen:
        assert screen.ended() == 0
    assert "burst watch  embedded" in screen.text
    assert "\x1b" not in screen.text


def test_without_textual_it_says_what_to_install() -> None:
    code = (
        "import os, pty, sys\n"
        "sys.modules['textual'] = None\n"
        "sys.argv = ['burst', 'watch']\n"
        "from burst.cli import main\n"
        "pid, terminal = pty.fork()\n"
        "if not pid: main()\n"
        "try:\n"
        "    while told := os.read(terminal, 4096): os.write(1, told)\n"
        "except OSError: pass\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "pip install 'flux-burst-orchestrator[watch]'" in found.stdout
    assert "Traceback" not in found.stdout
