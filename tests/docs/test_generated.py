# SPDX-License-Identifier: MIT
"""What is made from the code is as the code has it; roff can read the man pages."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import click
import pytest

from burst.cli import group
from docs.generate.ensemble_page import undocumented_options
from docs.generate.files import TOP, generated_files
from docs.generate.settings_page import undocumented_keys

FILES = generated_files()
PAGES = sorted(path for path in FILES if path.startswith("man/"))


@pytest.mark.parametrize("path", FILES)
def test_it_is_what_the_code_gives(path: str) -> None:
    written = (TOP / path).read_text(encoding="utf-8")
    assert written == FILES[path], f"{path}: say `make docs`, and commit it"


def test_each_key_says_what_it_means() -> None:
    assert undocumented_keys() + undocumented_options() == []


def paths(command: click.Command, path: str) -> Iterator[str]:
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            if not below.hidden:
                yield from paths(below, f"{path}-{name}")


def test_each_command_has_a_page() -> None:
    wanted = {f"man/man1/{path}.1" for path in (*paths(group, "burst"), "run-burst")}
    assert wanted == set(PAGES)
    found = {str(path.relative_to(TOP)) for path in (TOP / "man").rglob("*.1")}
    assert found == wanted, "no page is left of a command that is gone"


@pytest.mark.parametrize(
    "checker",
    [
        ["groff", "-ww", "-mandoc", "-Tutf8", "-z"],
        ["mandoc", "-T", "lint", "-W", "warning"],
    ],
    ids=["groff", "mandoc"],
)
def test_a_formatter_has_nothing_to_say(checker: list[str]) -> None:
    if not shutil.which(checker[0]):
        pytest.skip(f"no {checker[0]} here")
    for page in PAGES:
        done = subprocess.run(
            [*checker, TOP / page], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(not shutil.which("man"), reason="no man here")
def test_man_shows_what_help_says() -> None:
    shown = subprocess.run(
        ["man", "-l", TOP / "man/man1/burst-gc.1"],
        capture_output=True,
        text=True,
        check=True,
        env={"MANWIDTH": "200", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
    ).stdout
    assert "burst-gc - List orphans" in shown
    assert "--any-owner\n" in shown
    assert "only bursts whose lease ended at least 10 minutes ago" in shown
    assert shown.count("--yes") == 2
