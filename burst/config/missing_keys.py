# SPDX-License-Identifier: MIT
"""Finds all required keys that a table lacks; msgspec names only the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import UnionType
from typing import (
    Annotated,
    Any,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec


class MissingKeys(NamedTuple):
    """The required keys that one table lacks."""

    path: str
    """The dotted path of the table, as `volumes.home` or `match[0]`; empty for the
    outermost table."""
    table: type[msgspec.Struct]
    fields: Mapping[str, str]
    """The names of the missing fields, by their keys in the file."""


def missing_keys(kind: Any, value: Any, path: str = "") -> Iterator[MissingKeys]:
    """Yield what a value lacks to be of this type, and what tables inside it lack."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Annotated:
        yield from missing_keys(inside[0], value, path)
    elif origin in (Union, UnionType):
        # The type of an optional table.
        several = [each for each in inside if each is not type(None)]
        if len(several) == 1:
            yield from missing_keys(several[0], value, path)
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if isinstance(value, Mapping):
            yield from _of_table(kind, value, path)
    elif isinstance(value, Mapping) and len(inside) == 2:
        for key, each in value.items():
            yield from missing_keys(inside[1], each, _below(path, key))
    elif isinstance(value, list) and inside:
        for number, each in enumerate(value):
            yield from missing_keys(inside[0], each, f"{path}[{number}]")


def _of_table(
    kind: type[msgspec.Struct], value: Mapping[str, Any], path: str
) -> Iterator[MissingKeys]:
    fields, hints = msgspec.structs.fields(kind), get_type_hints(kind)
    lacks = {
        field.encode_name: field.name
        for field in fields
        if field.required and field.encode_name not in value
    }
    if lacks:
        yield MissingKeys(path, kind, lacks)
    for field in fields:
        key = field.encode_name
        if key in value:
            yield from missing_keys(hints[field.name], value[key], _below(path, key))


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
