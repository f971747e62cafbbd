# SPDX-License-Identifier: MIT
"""A TOML or YAML file together with the line on which each key is."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from burst.config.convert import KeyProblem, convert
from burst.errors import ConfigError

_T = TypeVar("_T")
KeyPath = tuple[str | int, ...]

_YAML = (".yaml", ".yml")
_HEADER = re.compile(r"\s*\[.*\]\s*(#.*)?$")
_BARE = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_OPENS_LIST = re.compile(r"=\s*\[\s*(#.*)?$")
_KEY = re.compile(rf"\s*({_BARE}(?:\s*\.\s*{_BARE})*)\s*=")


class FileSource(msgspec.Struct, frozen=True):
    """What was read of a file."""

    path: str
    tables: dict[str, Any]
    lines: Mapping[KeyPath, int]
    """Lines from 1 by the path of the key, numbers for places in a list."""

    def at(self, *path: str | int) -> str:
        """Return file, line and key, for a message. A key without a line of its own,
        such as one that is missing, is looked for where its table begins.
        """
        found = list(path)
        while found and tuple(found) not in self.lines:
            found.pop()
        where = f":{self.lines[tuple(found)]}" if found else ""
        return f"{self.path}{where}: {'.'.join(map(str, path))}"

    def wrong(self, path: KeyPath, problem: str, advice: str = "") -> ConfigError:
        """Return the error that says what is wrong with a key."""
        return ConfigError(f"{self.at(*path)}: {problem}", advice)

    def convert(self, kind: type[_T], table: Any, path: KeyPath) -> _T:
        """Return the table as its kind. Raises ConfigError."""
        if not isinstance(table, Mapping):
            raise self.wrong(path, "expected a table")
        try:
            return convert(kind, table, "")
        except KeyProblem as error:
            raise self.wrong(
                (*path, *key_path(error.key)), error.problem, error.advice
            ) from error

    def as_list(self, found: Any, path: KeyPath) -> Sequence[Any]:
        """Return the values of a list that may be missing. Raises ConfigError."""
        if found is None:
            return ()
        if not isinstance(found, list):
            raise self.wrong(path, "expected a list", f"write [[{path[-1]}]]")
        return found


def key_path(dotted: str) -> KeyPath:
    """Return the path of a key as messages have it: `rules[0].action.name`."""
    parts = re.findall(r"[^.\[\]]+", dotted)
    return tuple(int(part) if part.isdigit() else part for part in parts)


def with_durations(table: Any, keys: Sequence[str]) -> Any:
    """Return the table with numbers of seconds as durations, as the Ensemble Operator
    has them.
    """
    if not isinstance(table, Mapping):
        return table
    return {
        key: f"{value}s"
        if key in keys and isinstance(value, (int, float)) and value is not True
        else value
        for key, value in table.items()
    }


def read_source(path: Path) -> FileSource:
    """Read a file, as YAML if its name ends so, else as TOML. Raises ConfigError."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read: {error.strerror}", "name another file"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not a text: {error}") from error
    read = _read_yaml if path.suffix in _YAML else _read_toml
    return read(str(path), text)


def _read_toml(path: str, text: str) -> FileSource:
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error
    lines: dict[KeyPath, int] = {}
    for key, line in _toml_keys(text):
        lines.setdefault(key, line)
    return FileSource(path, tables, lines)


def _toml_keys(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Yield the path of each key that begins a line of a file that is TOML."""
    table: list[str | int] = []
    places: dict[KeyPath, int] = {}
    open_text = ""
    depth = 0
    entries: list[str | int] = []
    for number, line in enumerate(text.splitlines(), 1):
        begins = not open_text and not depth
        if depth == 1 and not open_text and entries and line.lstrip().startswith("{"):
            yield tuple(entries), number
            entries[-1] = int(entries[-1]) + 1
        if begins and _HEADER.match(line):
            is_list = line.lstrip().startswith("[[")
            table = _with_places(_names(f"{line}\n"), places)
            if is_list:
                last = tuple(table)
                places[last] = places.get(last, -1) + 1
                table.append(places[last])
            yield from (
                (tuple(table[:end]), number) for end in range(1, len(table) + 1)
            )
            continue
        key = _KEY.match(line) if begins else None
        if key:
            names = _names(f"{key[1]} = 0\n")
            for end in range(1, len(names) + 1):
                yield (*table, *names[:end]), number
            # A list whose entries are on the lines that follow.
            entries = [*table, *names, 0] if _OPENS_LIST.search(line) else []
        open_text, depth = _left_open(line, open_text, depth)


def _names(line: str) -> list[str]:
    """Return the names of a dotted key, or of a header."""
    found: Any = tomllib.loads(line)
    names = []
    while isinstance(found, (dict, list)) and found:
        if isinstance(found, list):
            found = found[0]
            continue
        name, found = next(iter(found.items()))
        names.append(name)
    return names


def _with_places(names: list[str], places: Mapping[KeyPath, int]) -> list[str | int]:
    """Return the path of a table, with the place in each list that it goes through."""
    path: list[str | int] = []
    for name in names[:-1]:
        path.append(name)
        if tuple(path) in places:
            path.append(places[tuple(path)])
    return [*path, names[-1]]


def _left_open(line: str, quotes: str, depth: int) -> tuple[str, int]:
    """Return which quotes of a long text, and how many brackets, a line leaves open."""
    place = 0
    while place < len(line):
        three = line[place : place + 3]
        if quotes:
            if three == quotes:
                quotes = ""
                place += 2
            elif line[place] == "\\" and quotes == '"""':
                place += 1
        elif three in ('"""', "'''"):
            quotes = three
            place += 2
        elif line[place] in "\"'":
            place = _end_of_text(line, place)
        elif line[place] == "#":
            break
        else:
            depth += (line[place] in "[{") - (line[place] in "]}")
        place += 1
    return quotes, depth


def _end_of_text(line: str, place: int) -> int:
    """Return where the text ends that begins with the quote at this place."""
    quote = line[place]
    place += 1
    while place < len(line) and line[place] != quote:
        place += 2 if quote == '"' and line[place] == "\\" else 1
    return place


def _read_yaml(path: str, text: str) -> FileSource:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError as error:
        raise ConfigError(
            f"{path}: PyYAML is not installed, which reads YAML",
            "pip install 'flux-burst-orchestrator[ensemble]', or write TOML",
        ) from error
    try:
        tables = yaml.safe_load(text)
        lines = dict(_yaml_keys(yaml.compose(text, Loader=yaml.SafeLoader), ()))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigError(f"{path}: not YAML: {error}") from error
    if not isinstance(tables, dict):
        raise ConfigError(f"{path}: has no keys", "its documentation shows a file")
    return FileSource(path, tables, lines)


def _yaml_keys(node: Any, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    """Yield the path of each key and entry. Raises RecursionError for an anchor that
    contains itself.
    """
    if node.id == "mapping":
        for key, value in node.value:
            yield (*path, key.value), key.start_mark.line + 1
            yield from _yaml_keys(value, (*path, key.value))
    elif node.id == "sequence":
        for place, value in enumerate(node.value):
            yield (*path, place), value.start_mark.line + 1
            yield from _yaml_keys(value, (*path, place))
