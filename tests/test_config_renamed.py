# SPDX-License-Identifier: MIT
"""Keys of settings that have a new name are read under the old one, with a warning."""

from __future__ import annotations

import subprocess
import sys

import pytest
import tomli_w

from burst.config import Seconds, Settings, effective, load, parse, read_settings
from burst.config.file import RENAMED_KEYS
from burst.errors import ConfigError

KEYS = [(table, old, new) for (table, old), new in RENAMED_KEYS.items()]


def example(table: str, key: str) -> tuple[str | bool, object]:
    """Return a value that the key may have as the file has it, and as it is read."""
    if isinstance(getattr(getattr(Settings(), table), key), bool):
        return True, True
    return "7m", Seconds(420)


@pytest.mark.parametrize(("table", "old", "new"), KEYS)
def test_a_renamed_key_is_read_under_its_old_name(table, old, new, tmp_path):
    path = tmp_path / "burst.toml"
    written, read = example(table, new)
    path.write_text(tomli_w.dumps({table: {old: written}}))
    with pytest.warns(FutureWarning) as warned:
        settings = load(path)

    assert getattr(getattr(settings, table), new) == read
    assert [str(each.message) for each in warned] == [
        f"{path}: {table}.{old} is now called {table}.{new}; the old name is an error"
        " from the next release on: rename it in the file"
    ]


@pytest.mark.parametrize(("table", "old", "new"), KEYS)
def test_both_names_of_a_key_are_an_error(table, old, new):
    with pytest.raises(ConfigError) as caught:
        parse({table: {old: "7m", new: "8m"}}, "x")

    assert str(caught.value) == (
        f"x: {table}.{old}: is the old name of {table}.{new}, which is set, too;"
        f" remove {old}"
    )


def test_a_key_under_its_old_name_is_shown_with_its_file(tmp_path):
    path = tmp_path / "burst.toml"
    path.write_text('[limits]\nset_aside = "7m"\nmax_nodes = 4\n')
    with pytest.warns(FutureWarning, match="limits.cooldown"):
        tables = read_settings(path)
    listed = effective(parse(tables, str(path)), tables, str(path))

    assert ("limits.cooldown", Seconds(420), str(path)) in listed
    assert tables == {"limits": {"cooldown": "7m", "max_nodes": 4}}


def test_a_command_shows_the_warning_as_one_sentence(tmp_path):
    path = tmp_path / "burst.toml"
    path.write_text('[intake]\npatience = "7m"\n')
    program = "import burst.cli; burst.cli.main()"
    argv = [sys.executable, "-c", program, "config", "-c", str(path)]
    ran = subprocess.run(argv, capture_output=True, text=True, check=True)

    assert ran.stderr == (
        f"burst: {path}: intake.patience is now called intake.local_wait; the old name"
        " is an error from the next release on: rename it in the file\n"
    )
    assert "intake.local_wait" in ran.stdout
