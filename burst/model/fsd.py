# SPDX-License-Identifier: MIT
"""Flux Standard Duration (RFC 23): `10m`, `1.5h`, `500ms`, `inf`."""

from __future__ import annotations

import math
import re

_UNITS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_FSD = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ms|[smhd]?)\Z")


def parse_fsd(text: str) -> float:
    """Return seconds; `inf` and `infinity` are math.inf. Raises ValueError."""
    if text.lower() in ("inf", "infinity"):
        return math.inf
    match = _FSD.match(text)
    if not match:
        raise ValueError(f"not a duration: {text!r} (such as 90s, 10m, 1.5h, 2d, inf)")
    return float(match[1]) * _UNITS[match[2]]


def format_fsd(seconds: float) -> str:
    """Return the shortest text that a reader of durations needs: three digits.

    The unit is the largest of which there is at least one, as Flux prints them.
    """
    if math.isinf(seconds):
        return "inf"
    if seconds < 0:
        return f"-{format_fsd(-seconds)}"
    if 0 < seconds < 0.9995:
        return f"{seconds * 1000:.3g}ms"
    for unit in ("d", "h", "m"):
        if seconds >= _UNITS[unit]:
            return f"{seconds / _UNITS[unit]:.3g}{unit}"
    return f"{seconds:.3g}s"
