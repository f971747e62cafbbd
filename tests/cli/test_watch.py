# SPDX-License-Identifier: MIT
"""`burst watch`, and colours, on a real terminal with a real daemon."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from burst.model.jobid import format_f58
from burst.model.lead import JobState
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


def test_a_person_watches_explains_releases_takes_down_and_quits(
    shared: Shared,
) -> None:
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

        at = screen.press("\x1b[Hd")
        screen.shows(f"Take {burst['id']} down, once its jobs have ended? y/n", at)
        at = screen.press("n")
        screen.shows(f"{burst['id']} is left as it is", at)
        at = screen.press("dy")
        screen.shows(f"{burst['id']} is being taken down", at)
        wait_until(lambda: cli.row(burst["id"])["state"] == "drain", "it to drain")
        at = screen.press("?")
        screen.shows("select another row", at)

        instance.cancel(runs)
        instance.cancel(waits)
        cli.wait_for_state(burst["id"], "inactive")
        screen.press("qq")
        assert screen.ended() == 0
        assert is_restored(screen)
    assert cli.row(burst["id"])["note"] == "taken down in burst watch"


@pytest.mark.parametrize(
    ("keys", "number", "status"),
    [
        ("\x03", None, 130),
        ("", signal.SIGTERM, 143),
        ("", signal.SIGHUP, 129),
    ],
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


@pytest.mark.parametrize("exported", [{}, {"COLUMNS": "80", "LINES": "24"}])
def test_another_size_is_drawn_at_once_and_one_that_is_too_small_is_told(
    served: CliHarness, exported: dict[str, str]
) -> None:
    """Whatever size the shell has exported."""
    with watched(served, **exported) as screen:
        screen.shows("PROVIDER")
        screen.resize(60, 24)
        screen.shows("60 columns, 24 lines: burst watch needs 80")
        at = len(screen.text)
        screen.resize(100, 30)
        screen.shows("PROVIDER", at)
        screen.press("q")
        assert screen.ended() == 0


def test_without_colour_the_selected_row_is_still_marked(served: CliHarness) -> None:
    with watched(served, NO_COLOR="1") as screen:
        screen.shows("> burst-0")
        screen.press("q")
        assert screen.ended() == 0
    assert "\x1b[3" not in screen.text.replace("\x1b[3J", "")
    assert "\x1b[7m" in screen.text


def test_a_daemon_that_goes_away_is_missed_and_one_that_comes_is_shown(
    cli: CliHarness,
) -> None:
    with watched(cli) as screen:
        screen.shows("no answer: ")
        with cli.daemon():
            at = len(screen.text)
            screen.shows("PROVIDER  HEALTH", at)
        at = len(screen.text)
        screen.shows("no answer: ", at)
        screen.shows("PROVIDER  HEALTH", at)
        with cli.daemon() as daemon:
            screen.press("d")
            daemon.end(signal.SIGKILL)
        screen.press("q")
        assert screen.ended() == 0
        assert is_restored(screen)


def test_without_a_terminal_one_plain_frame_is_printed(shared: Shared) -> None:
    instance, cli, _ = shared
    job = instance.submit(nodes=9, command=SLEEP)
    wait_until(lambda: cli.status()["pending"] == 1, "the job")
    found = cli.run("watch")
    instance.cancel(job)

    assert found.lines[0].startswith("burst watch  embedded://")
    assert any(format_f58(job) in line for line in found.lines)
    assert "\x1b" not in found.stdout
    assert "this is no terminal" in found.stderr


def test_without_a_terminal_and_a_daemon_the_records_are_shown(
    cli: CliHarness,
) -> None:
    assert "no daemon serves this lead" in cli.run("watch").stdout


def test_a_terminal_without_a_cursor_gets_one_frame(served: CliHarness) -> None:
    with watched(served, TERM="dumb") as screen:
        assert screen.ended() == 0
    assert "burst watch  embedded" in screen.text
    assert "\x1b" not in screen.text


def test_status_and_explain_have_colours_on_a_terminal_alone(shared: Shared) -> None:
    instance, cli, _ = shared
    job = instance.submit(nodes=2, command=SLEEP)
    wait_until(lambda: instance.info(job).state is JobState.RUN, "the job to run")

    def online() -> list[str]:
        return [b["id"] for b in cli.status()["bursts"] if b["state"] == "online"]

    # A job may start before the daemon tells that its burst is online.
    wait_until(online, "the burst to be online")
    burst, *_ = online()
    for words in (["status"], ["explain", burst], ["explain", format_f58(job)]):
        with command_on_terminal(cli, *words) as screen:
            assert screen.ended() == 0
        with command_on_terminal(cli, *words, NO_COLOR="1") as plain:
            assert plain.ended() == 0
        assert "\x1b[32m" in screen.text
        assert "\x1b[3" not in plain.text
        assert "\x1b" not in cli.run(*words).stdout
    instance.cancel(job)
    cli.run("down", burst)
