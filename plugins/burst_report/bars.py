# SPDX-License-Identifier: MIT
"""The bars of a report: bursts and jobs over time, waits, and money by month."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

import msgspec

from burst.model.fsd import rounded_span
from burst_report.figures import Row, amount, clock, wait, wait_here, when

MOST = 60
"""How many bursts, jobs and waits are drawn: the latest of each."""
KINDS = (
    ("work", "online", "work"),
    ("boot", "provision", "boot"),
    ("idle", "join", "idle"),
    ("teardown", "drain", "teardown"),
    ("never_joined", "lost", "never joined"),
)
"""The kinds of money: key in a row, class that sets the colour, and name."""
_WIDE = 1000.0
_LEAST = 2.0
"""The least width of a piece, so that it can be seen."""


class Piece(msgspec.Struct, frozen=True):
    """A part of a bar, from one value to another."""

    begin: float
    end: float
    kind: str
    """The class that sets its colour."""
    title: str
    """The text that a browser shows under the mouse."""


class Scale(msgspec.Struct, frozen=True):
    """The values at the left end and at the right end of a bar."""

    low: float
    high: float

    def x(self, value: float) -> float:
        """Return the place of a value, from 0 to 1000; values outside are cut off."""
        part = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(_WIDE * min(1.0, max(0.0, part)), 2)

    @property
    def times(self) -> list[str]:
        """The times at the left end, in the middle, and at the right end."""
        days = self.high - self.low > 86_400
        times = (self.low + part * (self.high - self.low) for part in (0.0, 0.5, 1.0))
        return [clock(at, days=days) for at in times]


class Bar(msgspec.Struct, frozen=True):
    """The bar of a row: its rectangles, and the texts for it."""

    row: Row
    rects: Sequence[tuple[str, str, str, str]]
    """Each rectangle has x, width, kind and title."""
    told: str
    """The text for readers who cannot see the bar."""
    beside: str
    """The text beside the bar."""


def _bar(
    row: Row, pieces: Iterable[Piece], scale: Scale, beside: str, told: str = ""
) -> Bar:
    rects = []
    for piece in pieces:
        left = min(scale.x(piece.begin), _WIDE - _LEAST)
        width = max(_LEAST, scale.x(piece.end) - left)
        rects.append((f"{left:g}", f"{width:g}", piece.kind, piece.title))
    return Bar(row, rects, told or beside, beside)


def time_scale(data: Row) -> Scale:
    """Return the time scale of bursts and jobs. There must be at least one burst."""
    bursts, jobs = data["bursts"][-MOST:], data["jobs"][-MOST:]
    begins = [row["made"] for row in bursts] + [job["submitted"] for job in jobs]
    ends = [_end_of(data, row) for row in bursts]
    ends += [_end_of_job(data, job) for job in jobs]
    return Scale(min(begins), max(ends))


def _end_of(data: Row, row: Row) -> float:
    return float(data["now"] if row["ended"] is None else row["ended"])


def _end_of_job(data: Row, job: Row) -> float:
    return float(job["finished"] or job["left"] or data["now"])


def burst_bar(data: Row, row: Row, scale: Scale) -> Bar:
    """Return the bar of a burst: its states over time."""
    end = _end_of(data, row)
    lasted = rounded_span(end - row["made"])
    stops = [*row["states"], {"state": "inactive", "at": end}]
    pieces = [
        Piece(one["at"], then["at"], one["state"], _title(one["state"], one, then))
        for one, then in pairwise(stops)
        if one["state"] != "inactive"
    ] or [Piece(row["made"], end, "wait", f"lived {lasted}")]
    told = f"{row['id']}: {'; '.join(piece.title for piece in pieces)}"
    return _bar(row, pieces, scale, f"{when(row['made'])[5:16]}, {lasted}", told)


def _title(state: str, one: Row, then: Row) -> str:
    return f"{state} {rounded_span(then['at'] - one['at'])}"


def job_bar(data: Row, job: Row, scale: Scale) -> Bar:
    """Return the bar of a job: how long it waited and ran."""
    started, finished = job["started"], _end_of_job(data, job)
    until = finished if started is None else started
    waited = f"waited {rounded_span(until - job['submitted'])}"
    pieces = [Piece(job["submitted"], until, "wait", waited)]
    if started is not None:
        kind = "lost" if job["result"] in {"failed", "timeout"} else "run"
        ran = f"ran {rounded_span(finished - started)}"
        pieces.append(Piece(started, finished, kind, ran))
    beside = ", ".join(piece.title for piece in pieces)
    return _bar(job, pieces, scale, beside, f"{job['id']}: {beside}")


def wait_bars(data: Row) -> list[Bar]:
    """Return a bar for each job with a forecast: its wait with a burst, and without."""
    jobs = [j for j in data["jobs"] if j["here"] is not None and j["started"]][-MOST:]
    longest = max((max(wait(job), wait_here(job)) for job in jobs), default=0.0)
    bars = []
    for job in jobs:
        with_it, here = wait(job), wait_here(job)
        told = f"{rounded_span(with_it)} instead of {rounded_span(here)}"
        pieces = [Piece(0.0, with_it, "run", told), Piece(0.0, here, "here", told)]
        # The shorter one is drawn over the longer one.
        pieces.sort(key=lambda piece: -piece.end)
        bars.append(_bar(job, pieces, Scale(0.0, longest), told))
    return bars


def month_bars(months: Sequence[Row]) -> list[Bar]:
    """Return a bar for the cost of each month, by kind of money."""
    scale = Scale(0.0, max((month["settled"] for month in months), default=0.0))
    bars = []
    for month in months:
        spent = [month[key] for key, _, _ in KINDS]
        ends = accumulate(spent)
        pieces = [
            Piece(end - part, end, style, f"{name} {amount(part)}")
            for (_, style, name), part, end in zip(KINDS, spent, ends, strict=True)
            if part > 0
        ]
        told = "; ".join(piece.title for piece in pieces) or "nothing settled"
        bars.append(_bar(month, pieces, scale, amount(month["settled"]), told))
    return bars
