# SPDX-License-Identifier: MIT
"""Decodes typed values from JSON and from plain data, for the whole project.

When msgspec decodes a type for the first time, it stores how to decode the type, and
runs Python code meanwhile. Another thread that decodes the same type at that moment
reads incomplete data, and the process dies of SIGSEGV (msgspec 0.22). So here one
thread prepares a type before any thread decodes it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

_T = TypeVar("_T")
_preparing = threading.Lock()
_prepared: set[Any] = set()


def from_json(text: bytes | str, kind: type[_T]) -> _T:
    """Return the value in a JSON text.

    Raises msgspec.DecodeError; its subclass ValidationError says what does not fit the
    type.
    """
    return msgspec.json.decode(text, type=prepared(kind))


def from_plain(
    value: object,
    kind: type[_T],
    dec_hook: Callable[[type, Any], Any] | None = None,
) -> _T:
    """Return the value described by dicts, lists, strings and numbers.

    Raises msgspec.ValidationError. `dec_hook` decodes types that msgspec does not know.
    """
    return msgspec.convert(value, prepared(kind), dec_hook=dec_hook)


def json_decoder(kind: type[_T]) -> msgspec.json.Decoder[_T]:
    """Return a decoder, which is faster if many values are read."""
    return msgspec.json.Decoder(prepared(kind))


def prepared(kind: type[_T]) -> type[_T]:
    """Return the type once any thread may decode it, from any format."""
    if kind not in _prepared:
        with _preparing:
            msgspec.json.Decoder(kind)
        _prepared.add(kind)
    return kind
