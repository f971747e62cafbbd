# SPDX-License-Identifier: MIT
"""Read a TOML or YAML file, and find the line of each of its keys."""

from __future__ import annotations

import bisect
import difflib
import importlib
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from burst.config.convert import KeyProblem, convert
from burst.errors import ConfigError

_T = TypeVar("_T")
KeyPath = tuple[str | int, ...]
Problem = tuple[KeyPath, str, str]
"""Which key is wrong, what is wrong with it, and what would be right."""

_YAML = (".yaml", ".yml")
_CLOSERS = ("", "]", "]]", "]}", "]}]", '"""', "'''")
"""Texts that close the values which the first lines of a TOML file may leave open."""


class FileSource(msgspec.Struct, frozen=True):
    """The contents of a file, with the line of each key."""

    path: str
    tables: dict[str, Any]
    line_of: Callable[[KeyPath], int | None]
    """Returns the line of a key, from 1, or None. A path has numbers for list entries.
    """
    root: KeyPath = ()
    """The path of the ensemble in the file. Paths in messages begin with it."""

    def at(self, *path: str | int) -> str:
        """Return file, line and key, for a message. For a key without a line of its
        own, such as one that is missing, the line is that of its table.
        """
        found = self._in_file((*self.root, *path))
        lines = (self.line_of(found[:end]) for end in range(len(found), 0, -1))
        line = next(filter(None, lines), None)
        where = f":{line}" if line else ""
        return f"{self.path}{where}: {'.'.join(map(str, found))}"

    def wrong(self, path: KeyPath, problem: str, advice: str = "") -> ConfigError:
        """Return the error that says what is wrong with a key."""
        return ConfigError(f"{self.at(*path)}: {problem}", advice)

    def refuse(self, problems: Iterable[Problem]) -> None:
        """Raise ConfigError for the first problem, if there is one."""
        for problem in problems:
            raise self.wrong(*problem)

    def convert(self, kind: type[_T], tables: Mapping[str, Any]) -> _T:
        """Return the tables of the ensemble as their kind. Raises ConfigError."""
        try:
            return convert(kind, tables, "")
        except KeyProblem as error:
            path = key_path(error.key)
            raise self.wrong(path, error.problem, error.advice) from error

    def table_at(self, path: KeyPath) -> dict[str, Any]:
        """Return the table of the ensemble at a path. It must exist."""
        found: Any = self.tables
        for step in (*self.root, *path):
            found = _value_at(found, step)
        assert isinstance(found, dict)
        return found

    def _in_file(self, path: KeyPath) -> KeyPath:
        """Return a path without the numbers of lists that the file does not have: a
        single algorithm may be written without a list.
        """
        kept: list[str | int] = []
        inside: Any = self.tables
        for step in path:
            if isinstance(step, int) and not isinstance(inside, list):
                continue
            kept.append(step)
            inside = _value_at(inside, step)
        return tuple(kept)


def choices(name: str, known: Sequence[str]) -> str:
    """Return the advice for an unknown name: similar names, or the known ones."""
    close = difflib.get_close_matches(name, known, 3, 0.5)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"there are {', '.join(known[:12]) or 'none'}"


def key_path(dotted: str) -> KeyPath:
    """Return the path of a key in the form of messages: `rules[0].action.name`."""
    parts = re.findall(r"[^.\[\]]+", dotted)
    return tuple(int(part) if part.isdigit() else part for part in parts)


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
    source = _unwrapped(read(str(path), text))
    _check_finite(source, source.table_at(()), ())
    return source


def _unwrapped(source: FileSource) -> FileSource:
    """Return the source with the ensemble as root: `spec` of a Custom Resource."""
    tables = source.tables
    if "spec" not in tables:
        return source
    spec, kind = tables["spec"], tables.get("kind")
    if kind not in (None, "Ensemble"):
        raise source.wrong(("kind",), f"{kind!r} is not an Ensemble", "kind: Ensemble")
    if not isinstance(spec, dict):
        raise source.wrong(("spec",), "expected a table", "put the ensemble below it")
    for key in tables:
        if key not in ("apiVersion", "kind", "metadata", "spec"):
            raise source.wrong((key,), "no such key", "put it below spec")
    metadata = tables.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
    named = {**tables, "spec": {"name": name, **spec}}
    return msgspec.structs.replace(source, tables=named, root=("spec",))


def _check_finite(source: FileSource, value: Any, path: KeyPath) -> None:
    """Raise ConfigError for infinite numbers and NaN: an ensemble is stored as JSON,
    which does not have them.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise source.wrong(
            path,
            f"{value} is not a finite number",
            'leave it out; durations may be "inf"',
        )
    if isinstance(value, dict | list):
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in inside:
            _check_finite(source, each, (*path, key))


def _value_at(value: Any, step: str | int) -> Any:
    """Return the value at a key or a list index; None if there is none."""
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return None


def _read_toml(path: str, text: str) -> FileSource:
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error
    lines = text.splitlines()
    return FileSource(path, tables, lambda key: _toml_line(lines, key))


def _toml_line(lines: Sequence[str], path: KeyPath) -> int | None:
    """Return the line that adds a key, from 1; None if no line does.

    More lines of a file never have fewer keys, so a binary search finds the line.
    """

    def has_key(count: int) -> bool:
        value: Any = _first_lines(lines, count)
        for step in path:
            value = _value_at(value, step)
        return value is not None

    counts = range(1, len(lines) + 1)
    place = bisect.bisect_left(counts, True, key=has_key)
    return counts[place] if place < len(lines) else None


def _first_lines(lines: Sequence[str], count: int) -> dict[str, Any]:
    """Return the tables in the first `count` lines. A value that they leave open is
    closed; if no closing text makes this TOML, fewer lines are used.
    """
    for end in range(count, 0, -1):
        begin = "\n".join(lines[:end])
        for closer in _CLOSERS:
            try:
                return tomllib.loads(f"{begin}\n{closer}")
            except tomllib.TOMLDecodeError:
                continue
    return {}


def _read_yaml(path: str, text: str) -> FileSource:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError as error:
        raise ConfigError(
            f"{path}: PyYAML, which reads YAML, is not installed",
            "pip install 'flux-burst-orchestrator[ensemble]', or write TOML",
        ) from error
    try:
        tables = yaml.safe_load(text)
        lines = dict(_yaml_keys(yaml.compose(text, Loader=yaml.SafeLoader), ()))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigError(f"{path}: not YAML: {error}") from error
    if not isinstance(tables, dict):
        raise ConfigError(f"{path}: has no keys", "its documentation shows a file")
    return FileSource(path, tables, lines.get)


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
