# SPDX-License-Identifier: MIT
"""The screen of `burst watch`, and what its keys do."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.coordinate import Coordinate
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import DataTable, Footer, Static

from burst.cli.colours import HEAD, NOTICE, QUIET, WRONG, plain_text
from burst.cli.explain_text import story_lines
from burst.cli.listing import Column, Row
from burst.cli.status import provider_notices
from burst.cli.terminal import rich_text
from burst.model.decision import clock_time
from burst.model.exit_status import shell_status
from burst.model.printable import printable
from burst_watch.calls import Connect, DaemonCall, DaemonCalls
from burst_watch.rows import Section, headline, sections, troubles

HELP = """\
up, down, j, k       select another row; left, right: show the end of a long one
page up, page down   a screen of rows at once; home, end: the first, the last
tab                  the next table
enter, e             explain what is selected: why a job waits, what happened to
                     a burst, how a provider is
d                    take the selected burst down, once its jobs have ended
r                    release the selected job: it gets its urgency back
a                    show all bursts that are on record, or live ones alone
q, Escape            back; at the tables q quits, which ends nothing else

STARTS IN: until the nodes of a job's burst are expected, by how long such
bursts took; with `here`, until the lead's own nodes are expected to be free."""
_KINDS = ("burst", "job", "slot", "provider", "budget")
_OF_TABLES = {"explain", "take_down", "release", "show_all", "help"}
_WIDEST = 24
"""The most columns of a cell, except the last of a row."""


class SectionTable(DataTable[Text]):
    """The table of a section; its selected row is marked while it has the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "cursor_up", show=False),
        Binding("j", "cursor_down", show=False),
        Binding("space", "page_down", show=False),
        Binding("home", "scroll_top", show=False),
        Binding("end", "scroll_bottom", show=False),
        Binding("left", "scroll_left", show=False),
        Binding("right", "scroll_right", show=False),
    ]

    def __init__(self, kind: str) -> None:
        super().__init__(
            id=kind, cursor_type="row", cursor_foreground_priority="renderable"
        )
        self.display = False
        self.section = Section(kind, (), ())

    def on_focus(self) -> None:
        # Several colours in a reversed row are hard to read.
        self.cursor_foreground_priority = "css"

    def on_blur(self) -> None:
        self.cursor_foreground_priority = "renderable"

    def show(self, section: Section) -> None:
        """Show a section. The selected row stays selected, or the one in its place."""
        before, self.section = self.section, section
        names, at = section.names, self.cursor_row
        if before.columns != section.columns or before.names != names:
            if at < len(before.rows) and before.names[at] in names:
                at = names.index(before.names[at])
            self.clear(columns=True)
            self.add_columns(*(column.title for column in section.columns))
            for row in section.rows:
                self.add_row(*(_cell(section, row, each) for each in section.columns))
            self.move_cursor(row=max(0, min(at, len(names) - 1)))
            # Each table gets an equal share of the lines, but no more than it needs.
            self.styles.max_height = max(1, len(names)) + 1
            self.can_focus, self.display = bool(names), True
        else:
            for line, row in enumerate(section.rows):
                for number, column in enumerate(section.columns):
                    cell, place = _cell(section, row, column), Coordinate(line, number)
                    if cell != self.get_cell_at(place):
                        self.update_cell_at(place, cell, update_width=True)
        told = f"  {len(names)} of {len(names) + section.more}" if section.more else ""
        title = section.columns[-1].title, (told if names else "  none", QUIET)
        self.ordered_columns[-1].label = Text.assemble(*title)


def _cell(section: Section, row: Row, column: Column) -> Text:
    text = Text(printable(column.show(row)), column.style(row))
    if column is not section.columns[-1]:
        text.truncate(_WIDEST, overflow="ellipsis")
    return text


class TextPage(VerticalScroll):
    """A text that is shown instead of the tables."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "scroll_up", show=False),
        Binding("j", "scroll_down", show=False),
        Binding("space", "page_down", show=False),
        Binding("q,escape", "app.close", "back", key_display="q"),
    ]


class Confirmation(ModalScreen[bool]):
    """Asks for a y; any other key is a no. Keys typed before it shows do not count."""

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        asked = Text(f"{self._question} y/n", f"{NOTICE} {HEAD}")
        yield Static(asked.append("\ny does it, any other key does not", "not bold"))

    def on_key(self, event: events.Key) -> None:
        event.stop()
        self.dismiss(event.key == "y")


class WatchApp(App[None]):
    """Shows the last answer to `status`, and asks the daemon what keys ask for."""

    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    CSS_PATH = "watch.tcss"
    VERTICAL_BREAKPOINTS = [(0, "-low"), (24, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e,enter", "explain", "explain", key_display="enter"),
        Binding("d", "take_down", "take down"),
        Binding("r", "release", "release"),
        Binding("a", "show_all", "all bursts"),
        Binding("question_mark,h", "help", "help", key_display="?"),
        Binding("q", "end(0)", "quit"),
        Binding("ctrl+c", f"end({int(signal.SIGINT)})", show=False, priority=True),
    ]

    def __init__(self, connect: Connect, every: float) -> None:
        # The colours of the terminal, not those of a theme.
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self._calls = DaemonCalls(connect, every, self._answered)
        self._found: Row | None = None
        self._failure = ""
        self._everything = False
        self._left: Widget | None = None
        """The widget that had the focus before a page was shown; None without a page.
        """

    def compose(self) -> ComposeResult:
        yield Static("burst watch\nwaiting for the daemon", id="head")
        with Vertical(id="tables"):
            yield from map(SectionTable, _KINDS)
        with TextPage():
            yield Static()
        yield Static(id="message")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.action_end, number)
        self._calls.start()

    def on_unmount(self) -> None:
        self._calls.stop()

    def on_resize(self) -> None:
        self._draw()

    def on_data_table_row_selected(self) -> None:
        self.action_explain()

    def _answered(self, call: DaemonCall, found: Row | None, failure: str) -> None:
        """Take an answer; called in the thread of the calls."""
        self.call_later(self._take_in, call, found, failure)

    def _take_in(self, call: DaemonCall, found: Row | None, failure: str) -> None:
        if not self.query("#head"):
            # The screen is being closed.
            return
        if not call.about:
            self._found, self._failure = found or self._found, failure
            self._draw()
        elif found is None:
            self._say(failure)
        elif call.method == "explain":
            lines = map(rich_text, story_lines(found, time.time()))
            self._read(Text("\n").join(lines))
        elif call.method == "release":
            self._say(f"released: {' '.join(found['released']) or 'nothing is held'}")
        else:
            self._say(f"{call.about} is being taken down")

    def _draw(self) -> None:
        """Show the last answer: the lead, the time, errors, and the tables."""
        lines, found = [Text("burst watch", HEAD)], self._found
        if found is not None:
            lead = f"  {clock_time(found['now'])}  {found['lead']['uri']}"
            lines[0].append(printable(lead), f"not bold {QUIET}")
            lines.append(Text(headline(found)))
        wrong = troubles(found, self._failure)
        lines += [Text(printable(each), WRONG) for each in wrong]
        if len(lines) > 1:
            self.query_one("#head", Static).update(Text("\n").join(lines))
        if found is None:
            return
        shown = sections(found, self.size.width, everything=self._everything)
        kinds = {section.kind: section for section in shown}
        with self.batch_update():
            for table in self.query(SectionTable):
                if table.id in kinds:
                    table.show(kinds[table.id])
                else:
                    table.display = False
        if self.focused is None:
            self.screen.focus_next(SectionTable)

    def _say(self, text: str) -> None:
        self.query_one("#message", Static).update(Text(printable(text), HEAD))

    def _read(self, text: Text) -> None:
        """Show a text instead of the tables."""
        page = self.query_one(TextPage)
        page.query_one(Static).update(text)
        self._left = self._left or self.focused
        self.set_class(True, "-reading")
        page.scroll_home(animate=False)
        page.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Disable the actions of the tables while a page is shown."""
        return not (self.has_class("-reading") and action in _OF_TABLES)

    def _selected(self, kind: str) -> Row | None:
        """Return the selected row if it is in the table of that kind, else None."""
        table = self._table()
        if table is None or table.section.kind != kind:
            return None
        return table.section.rows[table.cursor_row]

    def _table(self) -> SectionTable | None:
        """Return the table with the selected row. An empty one keeps the focus."""
        table = self.focused
        if isinstance(table, SectionTable) and table.section.rows:
            return table
        return None

    def _burst(self) -> str:
        """Return the selected burst, or that of the selected slot; empty for none."""
        burst, slot = self._selected("burst"), self._selected("slot")
        if burst is not None:
            return str(burst["id"])
        return str(slot["burst"]).partition(",")[0] if slot else ""

    def action_explain(self) -> None:
        """Show what the daemon, or its last answer, says about the selected row."""
        table, job = self._table(), self._selected("job")
        name = job["id"] if job else self._burst()
        self._say("" if table else "nothing is selected")
        if name:
            self._calls.post(DaemonCall("explain", {"id": name}, name))
        elif table:
            row = table.section.rows[table.cursor_row]
            cells = (f"{c.title}: {c.show(row)}" for c in table.section.columns)
            told = provider_notices(row, row["now"]) if table.id == "provider" else []
            lines = [*cells, *map(plain_text, told)]
            self._read(Text("\n".join(map(printable, lines))))

    def action_take_down(self) -> None:
        """Take the selected burst down if the user types y."""
        name = self._burst()
        if not name:
            self._say("select a burst to take it down")
            return

        def take_down(wanted: bool | None) -> None:
            self._say("" if wanted else f"{name} is left as it is")
            if wanted:
                asked = {"burst": name, "note": "taken down in burst watch"}
                self._calls.post(DaemonCall("down", asked, name))

        question = f"Take {name} down, once its jobs have ended?"
        self.push_screen(Confirmation(question), take_down)

    def action_release(self) -> None:
        """Release the selected job."""
        job = self._selected("job")
        if job is None:
            self._say("select a job to release it")
        elif not job["held"]:
            self._say(f"{job['id']} is not held")
        else:
            self._say("")
            self._calls.post(DaemonCall("release", {"ids": [job["id"]]}, job["id"]))

    def action_show_all(self) -> None:
        """Switch between all bursts on record and only live ones."""
        self._everything = not self._everything
        self._draw()
        shown = "all bursts on record" if self._everything else "live bursts"
        self._say(f"{shown} are shown")

    def action_help(self) -> None:
        """Show what each key does."""
        self._read(Text(HELP))

    def action_close(self) -> None:
        """Show the tables again, with the focus where it was."""
        self.set_class(False, "-reading")
        self.screen.set_focus(self._left)
        self._left = None

    def action_end(self, number: int) -> None:
        """Quit; `number` is 0, or that of the signal that ends the program."""
        self.exit(return_code=shell_status(-number) if number else 0)
