# SPDX-License-Identifier: MIT
"""Flux Standard Duration (RFC 23): `10m`, `1.5h`, `500ms`, `inf`."""

from __future__ import annotations

import math
import re

# A hundred years, in seconds: the longest limit that makes sense.
LONGEST = 36500 * 86400.0
_UNITS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_FSD = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(ms|[smhd]?)", re.ASCII)


def parse_fsd(text: str) -> float:
    """Return seconds; `inf` and `infinity` are math.inf. Raises ValueError."""
    if text.lower() in ("inf", "infinity"):
        return math.inf
    match = _FSD.fullmatch(text)
    seconds = float(match[1]) * _UNITS[match[2]] if match else math.inf
    if math.isinf(seconds):
        raise ValueError(f"not a duration: {text!r} (such as 90s, 10m, 1.5h, 2d, inf)")
    return seconds


def format_fsd(seconds: float) -> str:
    """Return the duration as a short text with three digits.

    The unit is the largest one that fits at least once.
    """
    if seconds < 0:
        return f"-{format_fsd(-seconds)}"
    if math.isinf(seconds):
        return "inf"
    if 0 < seconds < 0.9995:
        return f"{_three(seconds * 1000)}ms"
    for unit in ("d", "h", "m"):
        if seconds >= _UNITS[unit]:
            return f"{_three(seconds / _UNITS[unit])}{unit}"
    return f"{_three(seconds)}s"


def rounded_span(seconds: float) -> str:
    """Return a duration for people, such as 4m48s; from an hour on, to the minute.

    Below ten seconds it has tenths, as parts of a second matter there.
    """
    if seconds < 10:
        return f"{max(0.0, seconds):.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24}d{hours % 24:02}h"
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def _three(value: float) -> str:
    return f"{value:.3g}" if value < 999.5 else f"{value:.0f}"
