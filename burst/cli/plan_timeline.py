# SPDX-License-Identifier: MIT
"""The next hours of each rank slot, as `burst plan --timeline` draws them.

slot     ranks  14:10                   16:10
burst-0  2-4    ##############          burst-0-ab12 for ƒ3x, until 15:20
2-5                  ::::::::>  kept for ƒ4y from about 15:20
5      ........................  free
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from burst.cli.picture import save_picture
from burst.model.decision import near_moment

Row = Mapping[str, Any]

_SHORTEST_S = 3600.0
_LONGEST_S = 86400.0
_LEAST_COLUMNS = 17
_LABEL_COLUMNS = 44
_GAPS = 6
_JOBS_NAMED = 2
_MARKS = {
    "burst": "#",
    "planned": "+",
    "promised": ":",
    "free": ".",
    "ending": "-",
    "closed": "x",
}
_WITHOUT_BURST = {
    "free": "free",
    "ending": "free soon: the burst that had the ranks has ended",
    "closed": "closed: drained, excluded or of unknown use",
}
_WITH_BURST = {
    "ending": "free soon: {} shrinks",
    "closed": "closed: {} is quarantined",
}
_COLOURS = {
    "burst": "#4477aa",
    "planned": "#66ccee",
    "promised": "#ccbb44",
    "free": "#dddddd",
    "ending": "#bbbbbb",
    "closed": "#bb5566",
}


def timeline_lines(rows: Sequence[Row], now: float, width: int) -> list[str]:
    """Return a line for each row, under a line that tells the time.

    `rows` are those of `burst plan --json`, `width` the columns of the terminal.
    """
    names = [row["slot"] for row in rows]
    left = max(len(name) for name in ["slot", *names])
    ranks = max(len(row["ranks"]) for row in [{"ranks": "ranks"}, *rows])
    columns = max(_LEAST_COLUMNS, width - left - ranks - _GAPS - _LABEL_COLUMNS)
    end = _horizon(rows, now)
    times = _axis(now, end, columns)
    lines = [f"{'slot':{left}}  {'ranks':{ranks}}  {times}"]
    before = ""
    for row in rows:
        name = row["slot"] if row["slot"] != before else ""
        before = row["slot"]
        bar = _bar(row, now, end, columns)
        lines.append(
            f"{name:{left}}  {row['ranks']:{ranks}}  {bar}  {_label(row, now)}"
        )
    return lines


def write_picture(path: Path, rows: Sequence[Row], now: float) -> None:
    """Write the timeline as a picture, in the format of the file's suffix.

    Raises PictureError.
    """
    end = _horizon(rows, now)

    def draw(axes: Any) -> None:
        for place, row in enumerate(rows):
            begins = (row["from"] - now) / 60.0
            until = end if row["until"] is None else row["until"]
            spans = [(begins, (until - now) / 60.0 - begins)]
            axes.broken_barh(spans, (place - 0.4, 0.8), color=_COLOURS[row["holder"]])
            axes.annotate(_label(row, now), (begins, place), va="center", fontsize=7)
        labels = [f"{row['slot']} {row['ranks']}" for row in rows]
        axes.set_yticks(range(len(rows)), labels, fontsize=7)
        axes.set(xlabel="minutes from now", xlim=(0, (end - now) / 60.0))
        axes.invert_yaxis()

    save_picture(path, (9.0, 1.0 + 0.3 * len(rows)), draw)


def _horizon(rows: Sequence[Row], now: float) -> float:
    """Return the time at which the drawing ends.

    That is after the last known time, an hour to a day from now.
    """
    times = [row[key] for row in rows for key in ("from", "until") if row[key]]
    last = max(times, default=now)
    return now + min(max(1.2 * (last - now), _SHORTEST_S), _LONGEST_S)


def _axis(now: float, end: float, columns: int) -> str:
    # Without the year, so that both fit.
    first, last = near_moment(now, now), near_moment(end, now)[-len("12-31 23:59") :]
    return f"{first}{last:>{max(0, columns - len(first))}}"


def _bar(row: Row, now: float, end: float, columns: int) -> str:
    """Return a row's time as marks; a time without a known end ends in an arrow."""
    scale = columns / (end - now)
    begins = min(columns - 1, round((row["from"] - now) * scale))
    is_open = row["until"] is None
    ends = columns if is_open else round((min(row["until"], end) - now) * scale)
    marks = _MARKS[row["holder"]] * max(1, ends - begins)
    if is_open and row["holder"] in {"burst", "planned", "promised"}:
        marks = f"{marks[:-1]}>"
    return f"{' ' * begins}{marks}".ljust(columns)


def _label(row: Row, now: float) -> str:
    """Return who has the ranks, in words."""
    jobs = " ".join(row["jobs"][:_JOBS_NAMED])
    if len(row["jobs"]) > _JOBS_NAMED:
        jobs += f" and {len(row['jobs']) - _JOBS_NAMED} more"
    if row["holder"] in _WITHOUT_BURST and not row["burst"]:
        return _WITHOUT_BURST[row["holder"]]
    if row["holder"] in _WITH_BURST:
        return _WITH_BURST[row["holder"]].format(row["burst"])
    if row["holder"] == "promised":
        return _promised(row, jobs, now)
    made = "" if row["holder"] == "burst" else " would get the ranks"
    if row["until"] == row["from"]:
        return f"{row['burst']}{made}, without jobs"
    until = "without a known end"
    if row["until"] is not None:
        until = f"until {near_moment(row['until'], now)}"
    whose = f" for {jobs}" if jobs else ""
    return f"{row['burst']}{made}{whose}, {until}"


def _promised(row: Row, jobs: str, now: float) -> str:
    """Return in words from or until when `burst.core.plan.promises` keeps ranks."""
    if not row["known"]:
        until = near_moment(row["until"], now)
        return f"kept for {jobs} until {until}, as no end is known"
    if row["from"] <= now:
        return f"kept for {jobs} as soon as they are free"
    return f"kept for {jobs} from about {near_moment(row['from'], now)}"
