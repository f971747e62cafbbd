# SPDX-License-Identifier: MIT
"""Typed values from JSON and from plain data; all types are decoded by these functions.

msgspec writes down how a type is decoded when it decodes the type for the first time,
and runs Python code while it does. Another thread that decodes the same type meanwhile
reads what is half written, and the process ends by SIGSEGV (msgspec 0.22). Here a type
is prepared by one thread before any thread decodes it.
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
    """Return the value that is written in JSON.

    Raises msgspec.DecodeError, whose ValidationError says what is not of the type.
    """
    return msgspec.json.decode(text, type=prepared(kind))


def from_plain(
    value: object,
    kind: type[_T],
    dec_hook: Callable[[type, Any], Any] | None = None,
) -> _T:
    """Return the value that is given by dicts, lists, strings and numbers.

    Raises msgspec.ValidationError. `dec_hook` decodes what msgspec does not know.
    """
    return msgspec.convert(value, prepared(kind), dec_hook=dec_hook)


def json_decoder(kind: type[_T]) -> msgspec.json.Decoder[_T]:
    """Return a decoder, which takes less time where many values are read."""
    return msgspec.json.Decoder(prepared(kind))


def prepared(kind: type[_T]) -> type[_T]:
    """Return the type once any thread may decode it, from whatever format."""
    if kind not in _prepared:
        with _preparing:
            msgspec.json.Decoder(kind)
        _prepared.add(kind)
    return kind
