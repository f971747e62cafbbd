# SPDX-License-Identifier: MIT
"""Reads counts of resources in a jobspec (RFC 14); a range counts with its minimum."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from burst.model.ranks import parse_idset

LARGEST_COUNT = 2**31 - 1
"""The largest count in Flux, which counts with C's int."""
# Flux lists the values of a count with steps, and refuses to list more than this.
_MANY = 65536
_EACH = ("+", 1)
"""The step of a range with all its values."""
_COUNT = re.compile(r"(\d+)(?:(?:-(\d+)|(\+))(?::(\d+)(?::([+*^]))?)?)?", re.ASCII)


class Count(NamedTuple):
    """What matters of a count."""

    least: int
    discrete: bool
    """Whether it lists its values, as by steps (2-8:2) or in a set (3,7-9)."""


def read_count(count: Any) -> Count:
    """Return what matters of 4, `{"min": 2, "max": 8}` (RFC 14) or "2-8" (RFC 45).

    Raises ValueError for a count that Flux cannot read, as the job can never start.
    """
    if isinstance(count, int) and not isinstance(count, bool):
        return _bounded(count, count)
    if isinstance(count, Mapping):
        operator, operand = count.get("operator", "+"), int(count.get("operand", 1))
        most = count.get("max")
        return _bounded(
            int(count.get("min", 1)),
            None if most is None else int(most),
            (operator, operand),
        )
    if not isinstance(count, str):
        raise TypeError(f"not a count: {count!r}")
    text = count.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    if "," in text and ":" not in text:
        ids = parse_idset(text, _MANY)
        return Count(_bounded(min(ids), max(ids)).least, discrete=True)
    match = _COUNT.fullmatch(text)
    if not match:
        raise ValueError(f"not a count: {count!r}")
    least = int(match[1])
    most = None if match[3] else int(match[2] or least)
    return _bounded(least, most, (match[5] or "+", int(match[4] or 1)))


def fluxion_reads(count: Any) -> bool:
    """Tell whether Fluxion reads a count, and does not refuse its job.

    It reads a number, and of RFC 14 `min` alone or all keys; no text of RFC 45.
    """
    if isinstance(count, Mapping):
        return len({"max", "operator", "operand"} & count.keys()) in (0, 3)
    return str(count).isdecimal()


def _bounded(least: int, most: int | None, step: tuple[str, int] = _EACH) -> Count:
    operator, operand = step
    if most is None:
        good = step == _EACH
    elif operator == "+":
        good = operand == 1 or (operand > 0 and (most - least) // operand < _MANY)
    else:
        good = operand > 1 and (operator == "*" or (operator == "^" and least > 1))
    if least > LARGEST_COUNT:
        raise ValueError("a count larger than Flux supports")
    if least < 1 or (most is not None and most < least) or not good:
        raise ValueError(f"not a count: {least} to {most} by {operator}{operand}")
    return Count(least, discrete=step != _EACH)
