# SPDX-License-Identifier: MIT
"""Each command of ours on any page is one: its options are there, and its arguments."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import click
import pytest

from burst.cli import group
from burst.cli.run_burst import make_command
from tests.docs.doc_pages import PAGES, TOP, told_commands, typed_commands

_PROGRAMS: dict[str, click.Command] = {"burst": group, "run-burst": make_command()}


def parse(words: list[str]) -> None:
    """Have click read a command line; nothing is run. Raises UsageError."""
    command, rest = _PROGRAMS[words[0]], list(words[1:])
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        below = command.get_command(click.Context(command), rest.pop(0))
        if below is None:
            raise click.UsageError(f"no such command: {words}")
        command = below
    try:
        command.make_context(words[0], rest)
    except click.exceptions.Exit:
        pass  # --help, --version
    except click.exceptions.NoArgsIsHelpError:
        pass  # a group that is named


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_what_is_typed_is_a_command(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in typed_commands(page):
        for word in words:
            if re.fullmatch(r"(\./)?[\w-]+\.[a-z]+|FILE", word):
                (tmp_path / word).touch()
        parse(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_what_is_told_is_a_command(page: Path) -> None:
    for words in told_commands(page):
        # Prose names a command without what goes with it, or with a placeholder.
        with contextlib.suppress(click.MissingParameter, click.BadOptionUsage):
            try:
                parse(words)
            except click.BadParameter:
                if not any(word.isupper() for word in words):
                    raise


@pytest.mark.parametrize(
    "words",
    [["burst", "nonsense"], ["burst", "gc", "--nonsense"], ["burst", "explain"]],
)
def test_what_is_no_command_is_found(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        parse(words)


def test_commands_are_found_on_the_pages() -> None:
    typed = [words for page in PAGES for words in typed_commands(page)]
    told = [words for page in PAGES for words in told_commands(page)]
    assert len(typed) > 40
    assert len(told) > 200
    assert ["burst", "lead", "add-slot", "DIR", "burst-2-[0-3]:8"] in [
        words[:5] for words in typed
    ]
