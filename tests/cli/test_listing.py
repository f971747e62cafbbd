# SPDX-License-Identifier: MIT
"""Tables for people and for programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from burst.cli.listing import Column, Listing, print_json, print_rows, print_text
from burst.cli.status import status
from burst.errors import BurstError

COLUMNS = (
    Column("JOB", lambda row: row["id"]),
    Column("WHY", lambda row: row["why"]),
)
ROWS = (
    {"id": "f1", "why": "because " * 30},
    {"id": "f234567", "why": "[bold]no\x1b[31m markup"},
)

Printed = pytest.CaptureFixture[str]


def test_a_program_gets_one_line_for_each_row(capsys: Printed) -> None:
    print_rows(ROWS, COLUMNS, Listing())
    header, first, second = capsys.readouterr().out.splitlines()
    assert header == "JOB      WHY"
    assert first == "f1       " + ("because " * 30).rstrip()
    assert second.startswith("f234567  [bold]no")
    assert "\x1b" not in second


def test_a_form_of_lines_and_json_exclude_each_other() -> None:
    done = CliRunner().invoke(status, ["--json", "-o", "{id}"])
    assert done.exit_code == 2
    assert "--json cannot be used with -o" in done.output


def test_without_a_header(capsys: Printed) -> None:
    print_rows(ROWS[:1], COLUMNS, Listing(header=False))
    assert capsys.readouterr().out.startswith("f1  because")


def test_on_a_narrow_terminal_only_the_last_column_is_wrapped(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    print_rows(ROWS, COLUMNS, Listing())
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) > 4
    assert sum(line.count("because") for line in printed) == 30
    assert all(len(line) <= 60 for line in printed)
    assert any("f234567" in line for line in printed)


def test_on_a_terminal_that_is_too_narrow_nothing_is_cut_off(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "20")
    row = {"id": "a job of many words", "why": "because of it"}
    print_rows([row], COLUMNS, Listing())
    printed = capsys.readouterr().out
    assert "a job of many words" in printed
    assert "because" in printed


def test_a_format_of_ones_own(capsys: Printed) -> None:
    print_rows(ROWS, COLUMNS, Listing(form="{id:>8}"))
    assert capsys.readouterr().out.splitlines() == ["      f1", " f234567"]
    with pytest.raises(BurstError, match="the fields are id, why"):
        print_rows(ROWS, COLUMNS, Listing(form="{nothing}"))


# What a user may write: CSI in 7 bits and in one character, OSC, a second line, and a
# sign by which all after it is read from right to left.
HOSTILE = "no\x1b[2J \x9b2J \x1b]0;title\x07\nƒ1: run \u202e"


@pytest.mark.parametrize("form", [None, "{why}", "{under[why]}"])
@pytest.mark.parametrize("terminal", [True, False])
def test_what_users_wrote_commands_no_terminal(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch, form: str | None, terminal: bool
) -> None:
    if terminal:
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        monkeypatch.setenv("NO_COLOR", "1")
    row = {"id": "f1", "why": HOSTILE, "under": {"why": HOSTILE}}
    print_rows([row], COLUMNS, Listing(form=form, header=False))
    print_text([(f"f1: {HOSTILE}", "bold")])
    printed = capsys.readouterr().out
    assert printed.count("title") == 2
    assert not set(printed) & set("\x9b\x07\u202e")
    assert not [line for line in printed.splitlines() if line.startswith("ƒ1")]
    assert "\x1b]" not in printed
    assert "\x1b[2J" not in printed


def test_json_has_all_that_users_wrote_and_commands_no_terminal(
    capsys: Printed,
) -> None:
    print_json({"ƒ1": HOSTILE})
    printed = capsys.readouterr().out
    assert printed.replace("\n", "").isprintable()
    assert "ƒ1" in printed
    assert json.loads(printed) == {"ƒ1": HOSTILE}


def test_a_locale_without_a_letter_of_jobids_is_no_error() -> None:
    program = (
        "import click\n"
        "from burst.cli.target import run_command\n"
        "from burst.cli.listing import print_json\n"
        "def say(): click.echo('ƒ3x'); print_json('ƒ3x')\n"
        "run_command(click.command()(say))\n"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    told = subprocess.check_output([sys.executable, "-c", program], env=environment)
    text, value = told.decode().splitlines()
    assert text == "?3x"
    assert json.loads(value) == "ƒ3x"
