# SPDX-License-Identifier: MIT
"""Bursts and jobs over time."""

from __future__ import annotations

from itertools import pairwise

from burst.model.fsd import rounded_span
from burst.report_page.charts import Piece, Scale, axis, bar, labelled, legend
from burst.report_page.figures import FAILED, Row
from burst.report_page.markup import Html, join, tag
from burst.report_page.words import when

MOST = 60
"""So many bursts and so many jobs are drawn, the latest."""
_STATES = (
    ("provision", "provider called"),
    ("join", "joining"),
    ("online", "online"),
    ("drain", "draining"),
    ("reap", "being deleted"),
    ("wait", "on record as made and gone only"),
)
_JOBS = (("wait", "waits"), ("run", "runs"))


def timeline_section(data: Row) -> Html:
    """Return bursts over time and jobs over time, on one scale."""
    title = tag("h2", "Bursts and jobs over time")
    bursts, jobs = data["bursts"][-MOST:], data["jobs"][-MOST:]
    if not bursts:
        return join([title, tag("p", "There was no burst.")])
    begins = [row["made"] for row in bursts] + [job["submitted"] for job in jobs]
    ends = [_end_of(data, row) for row in bursts]
    ends += [job["finished"] or data["now"] for job in jobs]
    scale = Scale(min(begins), max(ends))
    parts = [title, tag("h3", _drawn("bursts", len(bursts), len(data["bursts"])))]
    parts += [legend(_STATES), axis(scale)]
    parts += [_burst(data, row, scale) for row in bursts]
    if jobs:
        parts.append(tag("h3", _drawn("jobs on them", len(jobs), len(data["jobs"]))))
        parts += [legend(_JOBS), axis(scale)]
        parts += [_job(data, job, scale) for job in jobs]
    return join(parts)


def _drawn(what: str, drawn: int, of: int) -> str:
    return f"{of} {what}" if drawn == of else f"The last {drawn} of {of} {what}"


def _end_of(data: Row, row: Row) -> float:
    return float(data["now"] if row["ended"] is None else row["ended"])


def _burst(data: Row, row: Row, scale: Scale) -> Html:
    end = _end_of(data, row)
    stops = [*row["states"], {"state": "inactive", "at": end}]
    pieces = [
        Piece(
            one["at"],
            then["at"],
            one["state"],
            f"{one['state']} {rounded_span(then['at'] - one['at'])}",
        )
        for one, then in pairwise(stops)
        if one["state"] != "inactive"
    ] or [Piece(row["made"], end, "wait", f"lived {rounded_span(end - row['made'])}")]
    state = row["result"] or row["state"]
    nodes = f"{row['nodes']} node{'s' * (row['nodes'] != 1)}"
    style = "bad" if row["result"] in FAILED else None
    name = join(
        [
            tag("code", row["id"]),
            tag("span", f"{row['provider']}/{row['offer']}, {nodes}"),
            tag("span", state, class_=style),
        ]
    )
    lived = f"{when(row['made'])[5:16]}, {rounded_span(end - row['made'])}"
    told = "; ".join(piece.title for piece in pieces)
    return labelled(name, lived, bar(pieces, scale, f"{row['id']}: {told}"))


def _job(data: Row, job: Row, scale: Scale) -> Html:
    started, finished = job["started"], job["finished"] or data["now"]
    until = finished if started is None else started
    waited = f"waited {rounded_span(until - job['submitted'])}"
    pieces = [Piece(job["submitted"], until, "wait", waited)]
    if started is not None:
        kind = "lost" if job["result"] in {"failed", "timeout"} else "run"
        ran = f"ran {rounded_span(finished - started)}"
        pieces.append(Piece(started, finished, kind, ran))
    told = ", ".join(piece.title for piece in pieces)
    result = job["result"] or ("runs" if started is not None else "waits")
    name = join(
        [
            tag("code", job["id"]),
            tag("span", result),
            tag("span", ", ".join(job["bursts"])),
        ]
    )
    return labelled(name, told, bar(pieces, scale, f"{job['id']}: {told}"))
