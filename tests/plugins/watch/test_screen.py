# SPDX-License-Identifier: MIT
"""The screen of `burst watch`: what it shows of an answer, and what each key does."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from burst_watch.app import SectionTable, TextPage, WatchApp
from burst_watch.rows import headline
from textual.app import App
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Static

from burst.errors import BurstError
from tests.plugins.watch.watch_answers import answer, burst_row, job_row, provider_row
from tests.support.waiting import HANG_S

STORY: dict[str, Any] = {
    "id": "ƒjob1",
    "state": "sched",
    "needs": "",
    "why": "it waits\x1b[2J\nfor long",
    "here": None,
    "held": None,
    "refusals": [],
    "bursts": [],
}


class FakeDaemon:
    """A lead whose daemon answers what it is told to, or is gone."""

    def __init__(self, **changes: Any) -> None:
        self.status = answer(**changes)
        self.failure = ""
        self.broken = False
        self.refuses = ""
        self.asked: list[tuple[str, Any]] = []
        self.free = threading.Event()
        """Each call waits for this."""
        self.free.set()

    @contextmanager
    def connect(self) -> Iterator[Any]:
        yield self

    def call(self, method: str, payload: Any, timeout: float = 0.0) -> Any:
        assert self.free.wait(HANG_S)
        if self.failure:
            raise BurstError(self.failure)
        if self.broken:
            raise KeyError("lead")
        if method == "status":
            return self.status
        if self.refuses:
            raise BurstError(self.refuses)
        self.asked.append((method, payload))
        return {"explain": STORY, "release": {"released": payload.get("ids")}}.get(
            method, {}
        )


Story = Callable[[WatchApp, Pilot[None]], Any]


def watch(daemon: FakeDaemon, story: Story, size: tuple[int, int] = (80, 24)) -> None:
    """Open the screen in a terminal of that size, and play a story on it."""

    async def play() -> None:
        app = WatchApp(daemon.connect, 0.2)
        async with app.run_test(size=size) as pilot:
            await story(app, pilot)

    asyncio.run(play())


def shown(app: App[None]) -> str:
    """What there is to be read, as wide and high as it may be."""
    lines = [_text(app.query_one("#head", Static)), _text(app.query_one("#message"))]
    lines += [
        _text(part) for part in app.screen.query("TextPage Static, Confirmation Static")
    ]
    for table in app.query(SectionTable):
        if table.display:
            titles = [str(column.label) for column in table.ordered_columns]
            rows = [map(str, table.get_row_at(n)) for n in range(table.row_count)]
            lines += ["  ".join(cells) for cells in (titles, *rows)]
    return "\n".join(lines)


def _text(part: Widget) -> str:
    assert isinstance(part, Static)
    return str(part.content) if part.display else ""


async def until(pilot: Pilot[None], what: Callable[[], object]) -> None:
    """Wait until that is so."""
    deadline = time.monotonic() + HANG_S
    while not what():
        assert time.monotonic() < deadline, shown(pilot.app)
        await pilot.pause(0.01)


async def shows(pilot: Pilot[None], *texts: str) -> None:
    """Wait until all that can be read."""
    await until(pilot, lambda: all(text in shown(pilot.app) for text in texts))


def selected(app: WatchApp) -> str:
    """The first cell of the selected row; empty for none."""
    table = app.focused
    if not isinstance(table, SectionTable) or not table.row_count:
        return ""
    return str(table.get_row_at(table.cursor_row)[0])


def test_it_shows_all_tables_and_what_is_wrong() -> None:
    daemon = FakeDaemon()
    daemon.free.clear()

    async def story(app: WatchApp, pilot: Pilot[None]) -> None:
        assert "waiting for the daemon" in shown(app)
        daemon.free.set()
        await shows(
            pilot,
            "burst watch  22:13:20  local:///run/flux/local",
            "2 bursts; 8 of 16 nodes, 20.00 an hour, 1.25 so far; 3 jobs may burst",
            "burst-0-aaaaaa  gke/n2  4/4  online 1m12s  provision 0.9s > join 12s",
            "burst-1-bbbbbb  gke/n2  1/4  join 4.0s  2 pods pend; provision 0.9s",
            "burst-2-cccccc  gke/n2  ?/4  failed  quota; provision 0.9s > join 54s",
            "ƒjob2  2m00s  1h06m here  gke/n2: the largest free rank slot for it has 4",
            "ƒjob3  3m00s  ?  gke/n2",
            "burst-1  2-5  4 cores  free  -",
            "gke  ok  n2 4 cores at 2.50",
            "everything, per week  12.50  300.00  2023-11-15 22:13",
        )
        assert "burst-3-dddddd" not in shown(app)
        daemon.failure = "no route"
        await shows(pilot, "no answer: no route; it is tried again", "burst-0-aaaaaa")
        trouble = {"uri": "local://", "trouble": "it reloads", "halt": ""}
        daemon.status = answer(daemon=None, lead=trouble, budgets=[])
        daemon.failure = ""
        await shows(pilot, "the lead cannot be read: it reloads", "no daemon serves")
        assert "no answer" not in shown(app)
        assert "BUDGET" not in shown(app)

    watch(daemon, story)


def test_a_wide_terminal_shows_more_of_each_job() -> None:
    async def story(app: WatchApp, pilot: Pilot[None]) -> None:
        await shows(pilot, "JOB  WAITS")
        await pilot.resize_terminal(120, 30)
        await shows(pilot, "JOB  USER  NAME  WAITS", "ƒ2aJemcj +1", "4000000  lammps")
        await pilot.resize_terminal(80, 16)
        await shows(pilot, "JOB  WAITS")

    watch(FakeDaemon(jobs=[job_row(1, userid=4_000_000, name="lammps")]), story)


@pytest.mark.parametrize("size", [(80, 16), (80, 24), (20, 5)])
def test_every_table_has_lines_on_the_screen(size: tuple[int, int]) -> None:
    jobs = [job_row(n) for n in range(40)]

    async def story(app: WatchApp, pilot: Pilot[None]) -> None:
        await shows(pilot, "40 of 1000")
        await pilot.pause()
        for table in app.query(SectionTable):
            assert table.region.bottom <= size[1]
            assert table.size.height >= 2 or size[1] < 16
        await pilot.press("tab", *["pagedown"] * 3)
        table = app.query_one("#job", SectionTable)
        assert app.focused is table
        assert table.cursor_row > 0 or size[1] < 16

    watch(FakeDaemon(jobs=jobs, pending=1000), story, size)


def test_keys_select_rows_and_the_selection_stays() -> None:
    daemon = FakeDaemon()

    async def story(app: WatchApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: selected(app) == "burst-0-aaaaaa")
        await pilot.press("j", "down")
        assert selected(app) == "burst-2-cccccc"
        await pilot.press("k", "home", "up")
        assert selected(app) == "burst-0-aaaaaa"
        await pilot.press("end", "tab", "j")
        assert selected(app) == "ƒjob2"
        daemon.status = answer(jobs=[job_row(n) for n in (9, 8, 2)])
        await shows(pilot, "ƒjob9")
        assert selected(app) == "ƒjob2"
        daemon.status = answer(jobs=[job_row(n) for n in (9, 8)])
        await until(pilot, lambda: "ƒjob2" not in shown(app))
        assert selected(app) == "ƒjob8"
        await pilot.press("shift+tab")
        assert selected(app) == "burst-2-cccccc"

    watch(daemon, story)


def test_what_is_explained_is_read_until_q() -> None:
    daemon = FakeDaemon()

    async def story(app: WatchApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: selected(app))
        daemon.free.clear()
        await pilot.press("tab", "enter")
        # No key waits for a daemon that is slow.
        await pilot.press("a")
        await shows(pilot, "all bursts on record are shown", "burst-3-dddddd")
        daemon.free.set()
        told = "it waits\N{REPLACEMENT CHARACTER}[2J for long"
        await shows(pilot, told)
        assert isinstance(app.focused, TextPage)
        await pilot.press("d", "r", "j", "k", "space", "down")
        assert told in shown(app)
        await pilot.press("q")
        assert selected(app) == "ƒjob1"
        await pilot.press("a", "question_mark")
        await shows(pilot, "live bursts are shown", "STARTS IN: until the nodes")
        await pilot.press("escape", "escape")
        assert selected(app) == "ƒjob1"
        assert app.return_code is None
        await pilot.press("q")

    watch(daemon, story)
    assert daemon.asked == [("explain", {"id": "ƒjob1"})]


def test_of_other_rows_the_last_answer_tells() -> None:
    wrong = provider_row(disabled="no quota", trouble="late")

    async def story(app: WatchApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: selected(app))
        await pilot.press("shift+tab", "enter")
        await shows(pilot, "LEFT: 12.50")
        await pilot.press("q", "shift+tab", "e")
        await shows(pilot, "burst enable gke", "gke: late", "9 of 10 within 2m00s")
        await pilot.press("q", "shift+tab", "end", "e")
        await shows(pilot, "SLOT: burst-1", "STATE: free")

    watch(FakeDaemon(providers=[wrong]), story)


def test_a_burst_is_taken_down_after_a_y_alone() -> None:
    daemon = FakeDaemon()

    async def story(app: WatchApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: selected(app))
        for key in ("n", "enter", "q", "escape", "Y"):
            await pilot.press("d")
            await shows(pilot, "Take burst-0-aaaaaa down, once its jobs have ended?")
            await pilot.press(key)
            await shows(pilot, "burst-0-aaaaaa is left as it is")
        assert daemon.asked == []
        await pilot.press("d")
        # What is asked about is taken down, whatever is selected by then.
        daemon.status = answer(bursts=[burst_row("burst-9-zzzzzz")])
        table = app.query_one("#burst", SectionTable)
        await until(pilot, lambda: table.section.names == ["burst-9-zzzzzz"])
        await pilot.press("y")
        await shows(pilot, "burst-0-aaaaaa is being taken down")
        await pilot.press("tab", "tab", "end", "d")
        await shows(pilot, "select a burst to take it down")
        await pilot.press("home", "d", "y")
        await until(pilot, lambda: len(daemon.asked) == 2)

    watch(daemon, story)
    asked = {"burst": "burst-0-aaaaaa", "note": "taken down in burst watch"}
    assert daemon.asked == [("down", asked)] * 2


def test_a_held_job_is_released() -> None:
    daemon = FakeDaemon(jobs=[job_row(1), job_row(2, held=None)])

    async def story(app: WatchApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: selected(app))
        await pilot.press("r")
        await shows(pilot, "select a job to release it")
        await pilot.press("tab", "r")
        await shows(pilot, "released: ƒjob1")
        await pilot.press("down", "r")
        await shows(pilot, "ƒjob2 is not held")

    watch(daemon, story)
    assert daemon.asked == [("release", {"ids": ["ƒjob1"]})]


def test_a_table_whose_last_row_went_has_none_selected() -> None:
    daemon = FakeDaemon()

    async def story(app: WatchApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: selected(app))
        daemon.status = answer(bursts=[])
        await until(pilot, lambda: not selected(app))
        await pilot.press("d")
        await shows(pilot, "select a burst to take it down")
        await pilot.press("e")
        await shows(pilot, "nothing is selected")

    watch(daemon, story)


def test_a_call_that_fails_is_told() -> None:
    daemon = FakeDaemon()

    async def story(app: WatchApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: selected(app))
        daemon.refuses = "not yours"
        await pilot.press("enter")
        await shows(pilot, "not yours")

    watch(daemon, story)


def test_what_is_asked_while_nobody_answers_is_never_done() -> None:
    daemon = FakeDaemon()

    async def story(app: WatchApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: selected(app))
        daemon.failure = "no route"
        await shows(pilot, "no answer: no route")
        await pilot.press("d", "y")
        await shows(pilot, "not asked: no route")
        daemon.failure = ""
        await until(pilot, lambda: "no answer" not in shown(app))
        await pilot.press("tab", "r")
        await until(pilot, lambda: daemon.asked)

    watch(daemon, story)
    assert [method for method, _ in daemon.asked] == ["release"]


def test_an_error_in_the_program_is_told_and_the_requests_go_on() -> None:
    daemon = FakeDaemon()

    async def story(app: WatchApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: selected(app))
        daemon.broken = True
        await shows(pilot, "no answer: internal error: KeyError('lead')")
        daemon.broken = False
        await until(pilot, lambda: "no answer" not in shown(app))

    watch(daemon, story)


def test_where_nothing_is_or_nobody_answers_no_key_does_anything() -> None:
    names = ("bursts", "jobs", "slots", "providers", "budgets")
    nothing: dict[str, Any] = {name: [] for name in names}
    daemon = FakeDaemon(**nothing)
    daemon.failure = "no route"

    async def story(app: WatchApp, pilot: Pilot[None]) -> None:
        await shows(pilot, "no answer: no route")
        await pilot.press("d", "enter", "r")
        assert "select a job to release it" in shown(app)
        daemon.failure = ""
        await shows(pilot, "BEFORE  none", "WHY  none")
        await pilot.press("up", "tab", "enter", "d", "r", "x", "escape")
        assert selected(app) == ""
        assert app.return_code is None

    watch(daemon, story)


def test_without_a_daemon_it_is_not_said_how_many_jobs_may_burst() -> None:
    assert headline(answer()).endswith("; 3 jobs may burst")
    assert "may burst" not in headline(answer(daemon=None, pending=0))
