# SPDX-License-Identifier: MIT
import io
import re

import pytest
from rich.console import Console

from burst.demo.scene import Scene
from burst.demo.view import LiveView, PlainView, draw_bursts, draw_jobs, open_view
from tests.demo.build import burst_row, seen

SCENE = Scene(
    now="the daemon starts",
    jobs=(seen(1, "held", why="it needs 9 nodes; the most that any offer has is 8"),),
    bursts=(burst_row(until="online"), burst_row(1, online=None, result="failed")),
)


def terminal(width=100, **changes):
    fields = {"force_terminal": True, "color_system": None, **changes}
    return Console(file=io.StringIO(), width=width, **fields)


def written(console):
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def printed(*tables, width=100):
    console = terminal(width)
    for table in tables:
        console.print(table)
    return [line.rstrip() for line in written(console).splitlines()]


def test_without_a_terminal_each_change_is_a_line_without_control_characters():
    console = Console(file=io.StringIO())
    view = open_view("title", console)
    for scene in (SCENE, SCENE, Scene(now="b", jobs=SCENE.jobs, bursts=SCENE.bursts)):
        view.show(scene)
    view.close()

    lines = written(console).splitlines()
    assert isinstance(view, PlainView)
    assert all(re.match(r" *\d+\.\ds  ", line) for line in lines)
    assert [line.split("s  ", 1)[1] for line in lines][:2] == ["title", SCENE.now]
    assert lines[-1].endswith("s  b")
    assert all(line.isprintable() for line in lines)


def test_a_long_line_is_not_broken_where_there_is_no_terminal():
    console = Console(file=io.StringIO())
    view = open_view("title", console)
    view.show(Scene(now="x" * 300))

    assert "x" * 300 in written(console)


@pytest.mark.parametrize(
    ("variables", "kind"), [({}, LiveView), ({"TERM": "dumb"}, PlainView)]
)
def test_only_a_terminal_that_can_redraw_gets_the_live_view(variables, kind):
    view = open_view("title", terminal(_environ={"TERM": "xterm", **variables}))
    view.close()

    assert type(view) is kind


def test_the_live_view_is_drawn_and_taken_off_the_screen_again():
    console = terminal(_environ={"TERM": "xterm"})
    view = LiveView("a title", console)
    view.show(SCENE)
    view.close()

    text = written(console)
    assert "a title" in text
    assert "the daemon starts" in text
    assert "burst-0-abcdef" in text
    assert text.endswith("\x1b[2K")  # the last line of it is erased
    assert "\x1b[?25h" in text  # the cursor is back


def test_a_job_is_shown_with_where_it_is_or_why_it_waits():
    assert printed(
        draw_jobs((*SCENE.jobs, seen(2, "run", hosts="n0", why="late")))
    ) == [
        "JOB  NODES  STATE  WHERE, OR WHY NOT",
        "ƒ2   2      held   it needs 9 nodes; the most that any offer has is 8",
        "ƒ3   2      run    n0",
    ]


def test_a_burst_is_shown_with_its_progress():
    bar = "━" * 20

    assert printed(draw_bursts(SCENE.bursts)) == [
        "BURST           STATE     NODES  RANKS  PROGRESS",
        f"burst-0-abcdef  online    4/4    2-5    {bar} online 0.8s",
        f"burst-1-abcdef  inactive  ?/4    6-9    {bar} reaped 3.5s",
    ]


def test_a_narrow_terminal_cuts_lines_instead_of_breaking_them():
    lines = printed(draw_jobs(SCENE.jobs), draw_bursts(SCENE.bursts), width=60)

    assert len(lines) == 2 + 3
    assert all(len(line) <= 60 for line in lines)
    assert lines[1].endswith("…")


class Closed(io.StringIO):
    """A pipe whose reader is gone."""

    def write(self, text):
        raise BrokenPipeError


def test_a_view_that_nobody_reads_any_more_is_silent():
    view = PlainView("title", Console(file=Closed()))
    view.show(SCENE)
    view.close()
