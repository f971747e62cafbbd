# SPDX-License-Identifier: MIT
"""Makes the pictures of the README by a run of the demo, with the embedded lead.

    python -m tests.demo.pictures [DIRECTORY]      # docs, if none is named

`watch.svg` is the screen of `burst watch` while the bursts are online, `timeline.svg`
what happened in the whole run. Both are text: no font and nothing else is fetched.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from burst_watch.app import SectionTable, WatchApp
from burst_watch.rows import STATUS

from burst.demo.play import find_stand_in
from burst.demo.story import Story
from burst.errors import BurstError
from burst.lead import Lead
from burst.model.fsd import rounded_span
from burst.runtime.connect import connect
from tests.demo.scratch import short_directory

DOCS = Path(__file__).parents[2] / "docs"
_COLUMNS, _LINES = 100, 20
_LOOK_S = 0.05
_STYLE = """text { font: 13px "DejaVu Sans", Verdana, sans-serif; fill: #1c2430; }
.quiet { fill: #5a6675; } .inside { fill: #fff; font-size: 11px; }
.rule { stroke: #d8dde4; } .provision { fill: #b98500; } .join { fill: #1d7ea3; }
.online { fill: #2b8a4f; } .drain { fill: #8a5cbc; } .reap { fill: #66717f; }
.wait { fill: #8794a4; } .run { fill: #2b8a4f; }
@media (prefers-color-scheme: dark) { text { fill: #e4e9f0; } .quiet { fill: #9aa7b6; }
.inside { fill: #fff; } .rule { stroke: #323b47; } }"""
_STAGES = {
    "provision": "provider called",
    "join": "brokers join",
    "online": "online, job runs",
    "reap": "being deleted",
    "wait": "job waits",
}
_WIDE, _LEFT, _ROW = 880, 210, 30
_TEXT_PX = 6.4
"""Of a character of the small texts in the bars."""

Row = dict[str, Any]


class DemoObserver:
    """Looks at the daemon of the demo all the time, and keeps what is a good picture.

    Call `start`, then `stop`.
    """

    def __init__(self, story: Story) -> None:
        self._story = story
        self.screen: Row = {}
        """The answer to `status` in which most bursts were online and jobs waited."""
        self.report: Row = {}
        """The last answer to `report`."""
        self._most = -1
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(_LOOK_S):
            uri = self._story.processes.environment.get("FLUX_URI", "")
            # The lead and its daemon come, and go again at the end.
            with contextlib.suppress(BurstError):
                if uri:
                    self._ask(uri)

    def _ask(self, uri: str) -> None:
        with closing(connect(uri)) as lead:
            while not self._over.wait(_LOOK_S):
                found = lead.call(*STATUS)
                self.report = lead.call("report", {})
                online = sum(row["state"] == "online" for row in found["bursts"])
                if 2 * online + len(found["jobs"]) > self._most:
                    self.screen, self._most = found, 2 * online + len(found["jobs"])


def make_pictures(directory: Path) -> None:
    """Run the demo, and write both pictures. Raises BurstError."""
    with short_directory() as files:
        story = Story(files, "hold", find_stand_in())
        seen = DemoObserver(story)
        seen.start()
        try:
            story.tell()
        finally:
            seen.stop()
            story.take_down()
            story.processes.kill_all()
    draw_pictures(directory, seen.screen, seen.report)


def draw_pictures(directory: Path, screen: Row, report: Row) -> None:
    """Write both pictures, of the daemon's answers to `status` and to `report`."""
    (directory / "watch.svg").write_text(_screen(screen), "utf-8")
    (directory / "timeline.svg").write_text(_timeline(report), "utf-8")


class _Answered:
    """A lead whose daemon always answers the same."""

    def __init__(self, found: Row) -> None:
        self._found = found

    def call(self, method: str, _: Mapping[str, Any]) -> Row:
        """Return it."""
        assert method == STATUS[0]
        return self._found


def _screen(found: Row) -> str:
    async def draw() -> str:
        app = WatchApp(lambda: nullcontext(cast(Lead, _Answered(found))), 60.0)
        async with app.run_test(size=(_COLUMNS, _LINES)) as pilot:
            while not app.query_one("#burst", SectionTable).row_count:
                await pilot.pause(_LOOK_S)
            await pilot.pause()
            return app.export_screenshot(title="burst watch")

    fetched = r"@font-face {.*?}|<!--.*?-->"
    picture = re.sub(fetched, "", asyncio.run(draw()), flags=re.DOTALL)
    return picture.replace("Fira Code", "DejaVu Sans Mono, Menlo, Consolas")


def _timeline(found: Row) -> str:
    """Return bursts and their jobs over time, in seconds since the first submission."""
    bursts, jobs = found["bursts"], found["jobs"]
    begin = min(job["submitted"] for job in jobs)
    end = max(burst["ended"] for burst in bursts)
    scale = (_WIDE - _LEFT - 10) / (end - begin)
    rows: list[Element] = []
    for burst in bursts:
        stages = [
            (one["state"], one["at"] - begin, then["at"] - begin)
            for one, then in pairwise(burst["states"])
        ]
        rows.append(_line(len(rows), burst["id"], stages, scale))
        for job in (job for job in jobs if burst["id"] in job["bursts"]):
            times = [job[key] - begin for key in ("submitted", "started", "finished")]
            name = f"job {job['id']}"
            stages = [("wait", times[0], times[1]), ("run", times[1], times[2])]
            rows.append(_line(len(rows), name, stages, scale))
    height = len(rows) * _ROW + 60
    parts = [_tag("style", _STYLE), *_seconds(end - begin, scale, height - 30)]
    picture = _tag("svg", *parts, *rows, *_legend(height - 16))
    picture.set("viewBox", f"0 0 {_WIDE} {height}")
    picture.set("xmlns", "http://www.w3.org/2000/svg")
    return f"{ElementTree.tostring(picture, 'unicode')}\n"


def _tag(name: str, *children: Element | str, **attributes: object) -> Element:
    """Return an element; `class_` is its attribute `class`."""
    named = {key.rstrip("_"): str(value) for key, value in attributes.items()}
    made = Element(name, named)
    for child in children:
        if isinstance(child, str):
            made.text = child
        else:
            made.append(child)
    return made


def _line(
    number: int, name: str, stages: Sequence[tuple[str, float, float]], scale: float
) -> Element:
    """Return a row: its name, and a bar for each stage with what it is and lasts."""
    y = number * _ROW + 4
    parts = [_tag("text", name, x=0, y=y + 16)]
    for stage, begin, end in stages:
        x, width = _LEFT + begin * scale, max(1.5, (end - begin) * scale)
        where = {"x": f"{x:.1f}", "y": y, "width": f"{width:.1f}", "height": 22}
        told = f"{stage} {rounded_span(end - begin)}"
        drawn = [_tag("title", told), _tag("rect", class_=stage, **where)]
        if len(told) * _TEXT_PX < width:
            drawn.append(
                _tag("text", told, x=f"{x + 5:.1f}", y=y + 15, class_="inside")
            )
        parts.append(_tag("g", *drawn))
    return _tag("g", *parts)


def _legend(y: int) -> list[Element]:
    """Return which colour is which stage."""
    parts = []
    for number, (stage, told) in enumerate(_STAGES.items()):
        x = _LEFT + number * 130
        square = {"x": x, "y": y, "width": 12, "height": 12}
        parts.append(_tag("rect", class_=stage, **square))
        parts.append(_tag("text", told, x=x + 18, y=y + 11, class_="quiet"))
    return parts


def _seconds(lasts: float, scale: float, height: int) -> list[Element]:
    """Return a line and a number for each second of the scale."""
    parts = []
    step = 1 if lasts < 15 else 5
    for second in range(0, int(lasts) + 1, step):
        x = f"{_LEFT + second * scale:.1f}"
        ends = {"x1": x, "x2": x, "y1": 0, "y2": height - 22}
        parts.append(_tag("line", class_="rule", **ends))
        parts.append(_tag("text", f"{second}s", x=x, y=height - 6, class_="quiet"))
    return parts


if __name__ == "__main__":
    make_pictures(Path(sys.argv[1]) if sys.argv[1:] else DOCS)
