# SPDX-License-Identifier: MIT
"""Shows scenes as they come: in place on a terminal, else a line for each change."""

from __future__ import annotations

import time
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from burst.core.timeline import STAGES
from burst.demo.scene import JobSeen, Row, Scene, changes, stage_of
from burst.model.jobid import format_f58

_REDRAWS_A_SECOND = 8
_STATE_STYLES = {
    "completed": "green",
    "online": "green",
    "run": "cyan",
    "held": "yellow",
    "failed": "red",
    "timeout": "red",
    "inactive": "dim",
    "canceled": "dim",
}


class View(Protocol):
    """Is told of each scene."""

    def show(self, scene: Scene) -> None:
        """Show what is new."""
        ...

    def close(self) -> None:
        """Show no more."""
        ...


def open_view(title: str, console: Console) -> View:
    """Return the view that fits where the console writes."""
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveView(title, console)
    return PlainView(title, console)


class PlainView:
    """A line for each change, with the seconds since the beginning."""

    def __init__(self, title: str, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._before = Scene()
        self._read = True
        self._print(title)

    def show(self, scene: Scene) -> None:
        """Print what changed."""
        for line in changes(self._before, scene):
            self._print(line)
        self._before = scene

    def close(self) -> None:
        """Nothing is left open."""

    def _print(self, line: str) -> None:
        # Written past rich, which would break lines at the 80th column.
        elapsed = time.monotonic() - self._began
        try:
            if self._read:
                self._console.file.write(f"{elapsed:5.1f}s  {line}\n")
                self._console.file.flush()
        except BrokenPipeError:
            # Nobody reads any more, as with `| head`. What was started is still to
            # be taken down.
            self._read = False


class LiveView:
    """Tables that are redrawn in place."""

    def __init__(self, title: str, console: Console) -> None:
        self._title = title
        self._began = time.monotonic()
        self._scene = Scene()
        self._spinner = Spinner("dots", style="cyan")
        self._live = Live(
            console=console,
            get_renderable=self._draw,
            refresh_per_second=_REDRAWS_A_SECOND,
            # The report says it all once more, and better.
            transient=True,
        )
        self._live.start()

    def show(self, scene: Scene) -> None:
        """Have the next redraw show it."""
        self._scene = scene

    def close(self) -> None:
        """Take it off the screen."""
        self._live.stop()

    def _draw(self) -> RenderableType:
        elapsed = time.monotonic() - self._began
        title = Text.assemble((self._title, "bold"), (f"   {elapsed:.1f}s", "dim"))
        parts: list[RenderableType] = [title]
        if self._scene.jobs:
            parts += [Text(), draw_jobs(self._scene.jobs)]
        if self._scene.bursts:
            parts += [Text(), draw_bursts(self._scene.bursts)]
        self._spinner.update(text=Text(self._scene.now))
        return Group(*parts, Text(), self._spinner)


def draw_jobs(jobs: tuple[JobSeen, ...]) -> Table:
    """Return a table of jobs: state, and where they run or why they wait."""
    table = _table("JOB", "NODES", "STATE", "WHERE, OR WHY NOT")
    for job in jobs:
        name, nodes = format_f58(job.id), str(job.nodes)
        news = Text(job.news, no_wrap=True, overflow="ellipsis")
        table.add_row(name, nodes, _state(job.state), news)
    return table


def draw_bursts(bursts: tuple[Row, ...]) -> Table:
    """Return a table of bursts: how many are there, and how far they have come."""
    table = _table("BURST", "STATE", "NODES", "RANKS", "PROGRESS")
    for burst in bursts:
        online = "?" if burst["online"] is None else burst["online"]
        table.add_row(
            str(burst["id"]),
            _state(burst["state"]),
            f"{online}/{burst['nodes']}",
            str(burst["ranks"]),
            _progress(burst),
        )
    return table


def _table(*titles: str) -> Table:
    """Return a table of which only the last column gives way to a narrow terminal."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in titles[:-1]:
        table.add_column(title, no_wrap=True)
    table.add_column(Text(titles[-1], no_wrap=True, overflow="ellipsis"))
    return table


def _state(state: str) -> Text:
    return Text(state, style=_STATE_STYLES.get(state, ""))


def _progress(burst: Row) -> Text:
    """Return a bar with two cells for each stage, and the stage's name."""
    stage, after = stage_of(burst)
    done = list(STAGES).index(stage) + 1
    failed = burst["result"] not in {None, "completed"}
    style = "red" if failed else "green" if done == len(STAGES) else "cyan"
    return Text.assemble(
        ("━━" * done, style),
        ("━━" * (len(STAGES) - done), "bright_black"),
        f" {stage} ",
        (f"{after:.1f}s", "dim"),
        no_wrap=True,
        overflow="ellipsis",
    )
