# SPDX-License-Identifier: MIT
"""Adds entries to an array of a TOML file, and changes no other byte of it."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import tomli_w

from burst.errors import ConfigError

Entries = Sequence[Mapping[str, Any]]

_COMMENT = "# Rank slots, added by burst: nodes that it lends and gives back."


def add_entries(text: str, table: str, key: str, entries: Entries) -> str:
    """Return the text with further entries in the array `table.key`, after all others.

    Comments, the order of keys, blanks and ends of lines stay as they are. Raises
    ConfigError if the form of the array does not allow that.
    """
    # Imported here: all commands import this module, only those that change a file
    # need tomlkit.
    import tomlkit  # noqa: PLC0415
    from tomlkit.items import AoT, Array  # noqa: PLC0415

    document = tomlkit.parse(text)
    array = document[table][key]
    new = ""
    if isinstance(array, AoT):
        new = _append_tables(text, f"{table}.{key}", entries)
    elif isinstance(array, Array):
        array.extend(entries)
        new = tomlkit.dumps(document)
    expected = copy.deepcopy(tomllib.loads(text))
    before = expected[table][key] if new else []
    expected[table][key] = [*before, *(dict(each) for each in entries)]
    by_hand = _as_text(f"{table}.{key}", entries)
    _check(text, new, expected, f"[{table}] {key}: {by_hand}")
    return new


def set_key(text: str, table: str, key: str, value: bool) -> str:
    """Return the text with a key set in an existing table. Raises ConfigError."""
    import tomlkit  # noqa: PLC0415

    document = tomlkit.parse(text)
    document[table][key] = value
    expected = tomllib.loads(text)
    was = expected[table].get(key)
    expected[table][key] = value
    new = tomlkit.dumps(document)
    _check(text if was is None else "", new, expected, f"[{table}] {key}")
    return new


def _append_tables(text: str, name: str, entries: Entries) -> str:
    """Append tables to the text, where the header of an array's table is valid."""
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{text}{end}\n{_COMMENT}\n{_as_text(name, entries)}"


def _as_text(name: str, entries: Entries) -> str:
    return "\n".join(f"[[{name}]]\n{tomli_w.dumps(each)}" for each in entries)


def _check(old: str, new: str, expected: Mapping[str, Any], what: str) -> None:
    """Raise ConfigError unless the new text contains all of the old and is right.

    A library for TOML may lose a comment in an unusual file.
    """
    rest = iter(new)
    kept = all(letter in rest for letter in old)
    if not kept or tomllib.loads(new) != expected:
        raise ConfigError(
            "the file cannot be edited without changing what it already has",
            f"add this by hand to {what}",
        )
