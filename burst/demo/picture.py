# SPDX-License-Identifier: MIT
"""The timeline as a picture: a lane for each job and each burst, SVG 1.1. Pure.

It needs no font and nothing else of the outside, and follows the reader's colours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree as ET

import msgspec

from burst.demo.scene import JobSeen, Row
from burst.model.jobid import format_f58

WIDTH = 960
_LEFT, _RIGHT = 200, 36
_TOP = 92
_LANE, _BAR = 42, 20
_HEADING = 34
_AXIS = 44
_LEGEND_STEP = 4.0
_TICKS = 10
_LETTER = 6.6
"""Width of a letter of the legend, about: no font is measured here."""
_NAMESPACE = "http://www.w3.org/2000/svg"

PHASES = {
    "provision": ("decide", "#94a3b8"),
    "joined": ("start followers", "#f59e0b"),
    "online": ("join", "#3b82f6"),
    "started": ("release", "#06b6d4"),
    "finished": ("run", "#22c55e"),
    "drained": ("idle, drain", "#a78bfa"),
    "reaped": ("reap", "#f43f5e"),
}
"""Stage to what goes on until it is reached, and its colour."""
WAIT = ("wait", "#94a3b8")
RUN = PHASES["finished"]

_STYLE = """
text { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #0f172a }
.paper { fill: #ffffff }
.title { font-size: 20px; font-weight: 600 }
.name { font-size: 13px; font-weight: 600 }
.small { font-size: 11px; fill: #64748b }
.tick { text-anchor: middle }
.legend { font-size: 12px }
.grid { stroke: #e2e8f0; stroke-width: 1 }
.lane { fill: #f1f5f9 }
@media (prefers-color-scheme: dark) {
  text { fill: #e2e8f0 }
  .paper { fill: #0f172a }
  .small { fill: #94a3b8 }
  .grid { stroke: #334155 }
  .lane { fill: #1e293b }
}
"""


class Span(msgspec.Struct, frozen=True):
    """A bar: seconds from and to, and what went on meanwhile."""

    begin: float
    end: float
    what: tuple[str, str]
    """In words, and as a colour."""


class Lane(msgspec.Struct, frozen=True):
    """One line of the picture."""

    name: str
    about: str
    spans: tuple[Span, ...]


def draw(title: str, jobs: Sequence[JobSeen], bursts: Sequence[Row]) -> str:
    """Return the picture as the text of an SVG file.

    Seconds count from the first submission.
    """
    starts = [job.t_submit for job in jobs] + [row["t_submit"] for row in bursts]
    zero = min(starts, default=0.0)
    groups = {
        "jobs": [job_lane(job, zero) for job in jobs],
        "bursts": [burst_lane(burst, zero) for burst in bursts],
    }
    groups = {name: lanes for name, lanes in groups.items() if lanes}
    return _render(title, groups)


def job_lane(job: JobSeen, zero: float) -> Lane:
    """Return the lane of a job: its wait and its run."""
    submitted = job.t_submit - zero
    waited = max(submitted, (job.t_start or job.t_end) - zero)
    spans = [Span(submitted, waited, WAIT)]
    if job.t_start:
        spans.append(Span(waited, max(waited, job.t_end - zero), RUN))
    about = f"{job.nodes} nodes"
    if job.hosts:
        about += f" on {job.hosts}"
    if job.state != "completed":
        about += f", {job.state}"
    return Lane(format_f58(job.id), about, tuple(spans))


def burst_lane(burst: Row, zero: float) -> Lane:
    """Return the lane of a burst: what went on between its stages."""
    offset = burst["t_submit"] - zero
    spans = []
    begin = offset
    for stage, what in PHASES.items():
        if stage in burst["timeline"]:
            end = max(begin, offset + burst["timeline"][stage])
            spans.append(Span(begin, end, what))
            begin = end
    about = f"{burst['nodes']} nodes, ranks {burst['ranks']}"
    if burst["result"] != "completed":
        about += f", {burst['result'] or burst['state']}"
    return Lane(burst["id"], about, tuple(spans))


def ticks(seconds: float) -> list[float]:
    """Return round moments from 0, ten at the most, the last at or after the end."""
    if seconds <= 0:
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(seconds / _TICKS))
    step = next(s * power for s in (1, 2, 5, 10, 20) if s * power * _TICKS >= seconds)
    return [step * n for n in range(math.ceil(seconds / step - 1e-9) + 1)]


def _render(title: str, groups: Mapping[str, Sequence[Lane]]) -> str:
    count = sum(len(lanes) for lanes in groups.values())
    bottom = _TOP + count * _LANE + len(groups) * _HEADING
    lanes = [lane for group in groups.values() for lane in group]
    end = max((span.end for lane in lanes for span in lane.spans), default=0.0)
    moments = ticks(end)
    scale = (WIDTH - _LEFT - _RIGHT) / moments[-1]
    picture = _picture(title, bottom + _AXIS)
    _text(picture, 24, 40, title, "title")
    shown = {span.what: None for lane in lanes for span in lane.spans}
    _draw_legend(picture, [what for what in (WAIT, *PHASES.values()) if what in shown])
    _draw_axis(picture, moments, scale, bottom)
    y = float(_TOP)
    for name, group in groups.items():
        _text(picture, 24, y + 20, name, "small")
        y += _HEADING
        for lane in group:
            _draw_lane(picture, lane, y, scale)
            y += _LANE
    ET.indent(picture)
    return ET.tostring(picture, encoding="unicode") + "\n"


def _picture(title: str, height: int) -> ET.Element:
    size = {"width": str(WIDTH), "height": str(height)}
    box = f"0 0 {WIDTH} {height}"
    names = {"xmlns": _NAMESPACE, "role": "img", "viewBox": box}
    picture = ET.Element("svg", {**names, **size})
    ET.SubElement(picture, "title").text = title
    ET.SubElement(picture, "style").text = _STYLE
    ET.SubElement(picture, "rect", {**size, "class": "paper", "rx": "10"})
    return picture


def _draw_legend(picture: ET.Element, shown: Sequence[tuple[str, str]]) -> None:
    x = 24.0
    for words, colour in _merge_equal(shown):
        place = {"x": _number(x), "y": "62", "width": "12", "height": "12", "rx": "3"}
        ET.SubElement(picture, "rect", {**place, "fill": colour})
        _text(picture, x + 18, 72.5, words, "legend")
        x += 18 + _LETTER * len(words) + 18


def _merge_equal(shown: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield each colour once, with all that it stands for."""
    words: dict[str, list[str]] = {}
    for what, colour in shown:
        words.setdefault(colour, []).append(what)
    yield from ((", ".join(what), colour) for colour, what in words.items())


def _draw_axis(
    picture: ET.Element, moments: Sequence[float], scale: float, bottom: int
) -> None:
    for moment in moments:
        x = _number(_LEFT + moment * scale)
        line = {"x1": x, "x2": x, "y1": str(_TOP), "y2": str(bottom)}
        ET.SubElement(picture, "line", {**line, "class": "grid"})
        _text(picture, float(x), bottom + 20, f"{moment:g} s", "small tick")


def _draw_lane(picture: ET.Element, lane: Lane, y: float, scale: float) -> None:
    _text(picture, 24, y + 12, lane.name, "name")
    _text(picture, 24, y + 27, lane.about, "small")
    top = y + (_LANE - _BAR) / 2 - 3
    whole = {"x": str(_LEFT), "width": str(WIDTH - _LEFT - _RIGHT), "rx": "4"}
    high = {"y": _number(top), "height": str(_BAR)}
    ET.SubElement(picture, "rect", {**whole, **high, "class": "lane"})
    for span in lane.spans:
        words, colour = span.what
        # What took no time to speak of is still to be seen.
        wide = max((span.end - span.begin) * scale, 1.5)
        place = {"x": _number(_LEFT + span.begin * scale), "width": _number(wide)}
        bar = ET.SubElement(picture, "rect", {**place, **high, "fill": colour})
        took = f"{words}: {span.begin:.2f} s to {span.end:.2f} s"
        ET.SubElement(bar, "title").text = f"{lane.name}, {took}"


def _text(picture: ET.Element, x: float, y: float, words: str, kind: str) -> None:
    place = {"x": _number(x), "y": _number(y), "class": kind}
    ET.SubElement(picture, "text", place).text = words


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
