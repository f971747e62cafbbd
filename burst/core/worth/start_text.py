# SPDX-License-Identifier: MIT
"""The text that tells when a job is expected to start on own nodes."""

from __future__ import annotations

import math
from typing import Any

from burst.core.worth.estimate import StartEstimate
from burst.core.worth.grades import Grade, grade_text
from burst.model.decision import clock_time, near_moment
from burst.model.jobid import format_f58

# Nearer than this, in seconds, a time is told to the second.
_SOON_S = 600.0


def start_text(start: StartEstimate, now: float) -> str:
    """Return text as `on own nodes about 14:03 (13:40 to 15:10, when f3x ends)`."""
    if math.isinf(start.earliest):
        return "own nodes that are up cannot hold it"
    if math.isinf(start.expected):
        return "its start on own nodes cannot be predicted"
    ends = f", when {format_f58(start.after)} ends" if start.after is not None else ""
    expected = max(start.expected, now)
    latest = max(start.latest, now)
    about = "now" if expected <= now else f"about {_told(expected, now)}"
    if expected == latest and not ends:
        return f"on own nodes {about}"
    until = "or later" if math.isinf(latest) else f"to {_told(latest, now)}"
    within = f"{_told(start.earliest, now)} {until}"
    return f"on own nodes {about} ({within}{ends})"


def start_row(start: StartEstimate, grade: Grade | None, now: float) -> dict[str, Any]:
    """Return the start for JSON: times in seconds since the epoch, None for never."""
    after = start.after
    return {
        "text": start_text(start, now),
        "expected": _finite(start.expected),
        "earliest": _finite(start.earliest),
        "latest": _finite(start.latest),
        "after": None if after is None else format_f58(after),
        "grade": None if grade is None else grade_row(grade),
    }


def grade_row(grade: Grade) -> dict[str, Any]:
    """Return a grade for JSON."""
    return {
        "text": grade_text(grade),
        "forecasts": grade.forecasts,
        "near": round(grade.near / grade.forecasts, 3),
        "inside": round(grade.inside / grade.forecasts, 3),
    }


def _finite(seconds: float) -> float | None:
    return None if math.isinf(seconds) else round(seconds, 3)


def _told(seconds: float, now: float) -> str:
    if seconds <= now:
        return "now"
    if seconds - now < _SOON_S:
        return clock_time(seconds)
    return near_moment(seconds, now)
