# SPDX-License-Identifier: MIT
"""Converts a TOML table to a frozen value, or to an error that says what is wrong."""

from __future__ import annotations

import difflib
import functools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from burst.config.key_docs import tell_keys
from burst.decode import from_plain
from burst.errors import ConfigError
from burst.model.fsd import format_fsd, parse_fsd

_T = TypeVar("_T")
_LACKS = "Object missing required field"


class Seconds(float):
    """A duration in seconds; in the file FSD text such as "10m" or "inf"."""

    def __str__(self) -> str:
        return format_fsd(self)


class SecondsOrOff(Seconds):
    """A duration in seconds; math.inf for "off" in the file."""

    def __str__(self) -> str:
        return "off" if math.isinf(self) else super().__str__()


class SecondsOrNumber(Seconds):
    """A duration in seconds; in the file FSD text or a number, as in other programs."""


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of tables that contain tables or durations."""

    retired: ClassVar[Mapping[str, str]] = {}
    """Keys of earlier versions, each with what to do about it. One that is still a
    field has its default whatever the file says: it is read as a setting, but is a
    constant."""
    internal: ClassVar[frozenset[str]] = frozenset()
    """Keys that no file may have, so that no message names them."""


class PackageTable(Table, frozen=True):
    """Base of tables that other packages have in the settings."""

    def check(self, where: str) -> None:
        """Raise ConfigError, with `where` in front, for a value that is invalid."""


class KeyProblem(ConfigError):
    """One key of a table is wrong.

    `key` is its dotted path in the table, empty for the table itself; `problem` is the
    text without file and path.
    """

    def __init__(self, where: str, key: str, problem: str, advice: str = "") -> None:
        super().__init__(": ".join(filter(None, (where, key, problem))), advice)
        self.key = key
        self.problem = problem


def convert(table_type: type[_T], table: Mapping[str, Any], where: str) -> _T:
    """Return a Struct of the given type, made from a TOML table.

    Durations are declared as `Seconds`. Raises KeyProblem, which begins with `where`.
    """
    for path, kind, inner in _tables(table_type, table, ""):
        _refuse_unknown(kind, inner, where, path)
    try:
        return from_plain(table, table_type, dec_hook=_decode)
    except msgspec.ValidationError as error:
        if str(error).startswith(_LACKS):
            for path, kind, inner in _tables(table_type, table, ""):
                _refuse_incomplete(kind, inner, where, path)
        what, _, at = str(error).partition(" - at `$")
        key = at.rstrip("`").lstrip(".")
        raise KeyProblem(where, key, _plain(what), _choices(table_type, key)) from error


def _tables(
    kind: Any, value: Any, path: str
) -> Iterator[tuple[str, type[msgspec.Struct], Mapping[str, Any]]]:
    """Yield the path and the type of each table in a value of this type, and the table.

    The path is dotted, as `volumes.home` or `match[0]`; empty for the outermost table.
    """
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if isinstance(value, Mapping):
            yield path, kind, value
            for key, below in _keys_of(kind).items():
                if key in value:
                    yield from _tables(below, value[key], _below(path, key))
    elif get_origin(kind) in (Union, UnionType):
        several = [each for each in get_args(kind) if each is not NoneType]
        if len(several) == 1:  # the type of an optional table
            yield from _tables(several[0], value, path)
    elif tables := _tables_inside(kind):
        for at, each in _values_of(value):
            yield from _tables(tables, each, f"{path}{at}")


def _values_of(value: Any) -> list[tuple[str, Any]]:
    """Return the values of a mapping or a list, each with the end of its path."""
    if isinstance(value, Mapping):
        return [(f".{name}", each) for name, each in value.items()]
    if isinstance(value, list):
        return [(f"[{number}]", each) for number, each in enumerate(value)]
    return []


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _refuse_incomplete(
    kind: type[msgspec.Struct], table: Mapping[str, Any], where: str, path: str
) -> None:
    """Raise KeyProblem for the required keys that a table lacks; msgspec names only the
    first.
    """
    lacks = {
        field.encode_name: field.name
        for field in msgspec.structs.fields(kind)
        if field.required and field.encode_name not in table
    }
    if lacks:
        verb = "is" if len(lacks) == 1 else "are"
        what = f"{', '.join(lacks)} {verb} missing"
        raise KeyProblem(where, path, what, f"set {tell_keys(kind, lacks)}")


def _decode(kind: type, value: Any) -> Any:
    if not issubclass(kind, Seconds):
        raise NotImplementedError(kind)  # msgspec's own way to say: no such type
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and kind is SecondsOrNumber:
        return kind(value)
    if not isinstance(value, str):
        raise ValueError(f'expected a duration such as "10m", got {value!r}')
    if kind is SecondsOrOff and value == "off":
        return SecondsOrOff(math.inf)
    return kind(parse_fsd(value))


def _plain(what: str) -> str:
    """Return a message of msgspec in the terms of TOML."""
    names = {"str": "text in quotes", "int": "whole number", "bool": "true or false"}
    names |= {"array": "list", "object": "table"}
    what = what.replace("Invalid enum value", "unknown value").replace("`", "")
    what = what.replace(" | null", "")
    if what == "Invalid RFC3339 encoded date":
        return "expected a date such as 2026-12-31"
    return re.sub(
        r"\b(str|int|bool|array|object)\b", lambda found: names[found[0]], what
    )


def _choices(kind: Any, key: str) -> str:
    """Return which values the key may have; empty if that is not a fixed set."""
    for step in key.split("."):
        if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
            return ""
        name, is_in_list, _ = step.partition("[")
        kind = _keys_of(kind).get(name)
        if is_in_list:
            kind = _tables_inside(kind)
    if get_origin(kind) is not Literal:
        return ""
    return "it is one of " + ", ".join(f'"{value}"' for value in get_args(kind))


@functools.cache
def _keys_of(kind: type) -> Mapping[str, Any]:
    """Return the keys of a table, each with the type of its value."""
    hints, retired = get_type_hints(kind), getattr(kind, "retired", {})
    return {
        field.encode_name: hints[field.name]
        for field in msgspec.structs.fields(kind)
        if field.name not in retired
    }


def unknown_key(where: str, path: str, known: Iterable[str]) -> KeyProblem:
    """Return the error for an unknown key at a dotted path; `known` are valid keys."""
    close = difflib.get_close_matches(path.rpartition(".")[2], known, 1)
    if close:
        return KeyProblem(where, path, "no such key", f"did you mean {close[0]}?")
    keys = ", ".join(sorted(known))
    return KeyProblem(where, path, "no such key", f"known keys are {keys}")


def _refuse_unknown(
    kind: type[msgspec.Struct], table: Mapping[str, Any], where: str, inside: str
) -> None:
    """Raise KeyProblem for an unknown key, with the key that was probably meant.

    msgspec only names the unknown key.
    """
    fields, retired = _keys_of(kind), getattr(kind, "retired", {})
    for key, value in table.items():
        path = _below(inside, key)
        if key in retired:
            raise KeyProblem(where, path, "is gone", retired[key])
        if key not in fields:
            known = fields.keys() - getattr(kind, "internal", ())
            raise unknown_key(where, path, known)
        below = fields[key]
        is_table = isinstance(below, type) and issubclass(below, Table)
        if is_table and not isinstance(value, Mapping):
            raise KeyProblem(where, path, f"expected a table [{path}]")


def _tables_inside(kind: Any) -> type[msgspec.Struct] | None:
    """Return the type of the tables inside a key, by name or in a list; None if the key
    has none.
    """
    of = {Mapping: -1, tuple: 0}.get(get_origin(kind))
    inside = None if of is None else get_args(kind)[of]
    is_table = isinstance(inside, type) and issubclass(inside, msgspec.Struct)
    return inside if is_table else None
