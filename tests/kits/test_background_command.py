# SPDX-License-Identifier: MIT
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from burst.errors import Transient
from burst.kits import background_command
from burst.kits.background_command import BackgroundCommand
from tests.support.waiting import wait_until


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    log = tmp_path / "log"
    yield log
    background_command.status_of(log).stop()


def begin(log: Path, *commands: str) -> None:
    background_command.start("make", commands, log, os.environ)


def ended(log: Path) -> BackgroundCommand:
    wait_until(
        lambda: not background_command.status_of(log).running, "the command's end"
    )
    return background_command.status_of(log)


def speaking(log: Path, test: Callable[[BackgroundCommand], bool]) -> BackgroundCommand:
    wait_until(lambda: test(background_command.status_of(log)), "the command to be so")
    return background_command.status_of(log)


def test_where_there_was_none_there_is_none(log: Path) -> None:
    assert background_command.status_of(log) == BackgroundCommand()


def test_which_it_is_is_known_before_it_runs(log: Path) -> None:
    """Here it never does."""
    too_long = {"A": "x" * 1_000_000}
    with pytest.raises(Transient, match="cannot be run now"):
        background_command.start("make", ["true"], log, too_long)
    assert background_command.status_of(log) == BackgroundCommand(what="make")


def test_commands_run_one_after_the_other_until_one_fails(log: Path) -> None:
    begin(
        log,
        background_command.command("one", ["true"]),
        "echo two; (exit 7)",
        "echo three",
    )
    found = ended(log)
    assert (found.what, found.status, found.message) == ("make", 7, "two")
    assert log.stat().st_mode & 0o077 == 0


def test_all_well_is_status_0(log: Path) -> None:
    begin(log, background_command.command("it's done", ["echo", "a b", "$HOME"]))
    found = ended(log)
    assert (found.status, found.message) == (0, "it's done")
    assert "\na b $HOME\n" in log.read_text()


def test_a_command_reads_the_file_it_is_given(log: Path, tmp_path: Path) -> None:
    source = tmp_path / "a file"
    source.write_text("from the file\n")
    begin(log, background_command.command("reading", ["cat"], str(source)))
    ended(log)
    assert "\nfrom the file\n" in log.read_text()


def test_while_it_runs_no_other_begins_and_what_it_said_is_kept(log: Path) -> None:
    begin(log, "echo ' • Starting control-plane 🕹️  ...'", "sleep 1000")
    found = speaking(log, lambda found: bool(found.message))
    assert found.running
    assert found.status is None
    assert found.message == "Starting control-plane"
    with pytest.raises(Transient, match="a command is still running"):
        begin(log, "echo other")
    assert background_command.status_of(log) == found
    found.stop()
    after = ended(log)
    assert (after.status, after.message) == (None, "Starting control-plane")
    after.stop()


def test_it_runs_for_as_long_as_any_of_its_processes(log: Path) -> None:
    begin(log, "sleep 1000 &")
    found = speaking(log, lambda found: found.group > 0)
    os.killpg(found.group, 0)
    wait_until(lambda: "exit 0" in log.read_text(), "the shell's end")
    assert background_command.status_of(log).running
    background_command.status_of(log).stop()
    ended(log)


def test_stopped_before_it_said_who_it_is_it_goes_on() -> None:
    BackgroundCommand(running=True).stop()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("", ""),
        ("one\ntwo\n", "two"),
        (" ✓ Preparing nodes 📦 \nHave a nice day! 👋\n", "Preparing nodes"),
        ("fine\nERROR: failed: no\n\nCommand Output: why\n", None),
        ("ERROR: " + "x" * 5000, "ERROR: " + "x" * 393 + " … " + "x" * 400),
    ],
)
def test_of_a_log_the_complaint_is_told_or_the_last_line(
    log: Path, said: str, words: str | None
) -> None:
    log.write_text(f"make 1\n{said}")
    expected = "ERROR: failed: no / Command Output: why" if words is None else words
    assert background_command.status_of(log).message == expected


def test_what_cannot_be_begun_now_is_tried_again(log: Path) -> None:
    with pytest.raises(Transient, match="cannot be run now: Argument list too long"):
        background_command.start("make", ["true"], log, {"LARGE": "x" * 300_000})
    assert not background_command.status_of(log).running
    with pytest.raises(Transient, match="cannot be written"):
        begin(log / "below", "true")
