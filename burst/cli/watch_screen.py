# SPDX-License-Identifier: MIT
"""Draws the screen of `burst watch`: a function of what is known and of its size."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from burst.cli.colours import HEAD, NOTICE, QUIET, WRONG
from burst.cli.listing import counted
from burst.cli.status import bill
from burst.cli.watch_rows import Item, Section, sections
from burst.cli.watch_state import WatchState
from burst.model.decision import clock_time
from burst.model.printable import printable

WIDTH, HEIGHT = 80, 16
"""The smallest terminal on which something can be read."""
_KEYS = "↑↓ tab  enter explain  d take down  r release  a all bursts  ? help  q quit"
_BACK = "↑↓ page up, page down  q back"
HELP = (
    "up, down, j, k       select another row",
    "page up, page down   ten rows at once",
    "tab                  the next table",
    "enter, e             explain what is selected: why a job waits, what happened to",
    "                     a burst, how a provider is",
    "d                    take the selected burst down, once its jobs have ended",
    "r                    release the selected job: it gets its urgency back",
    "a                    show all bursts that are on record, or live ones alone",
    "q, Escape            back; at the tables q quits, which ends nothing else",
    "",
    "STARTS IN: until the nodes of a job's burst are expected, by how long such",
    "bursts took; with `here`, until the lead's own nodes are expected to be free.",
)


def draw(state: WatchState, width: int, height: int) -> list[Text]:
    """Return what fills a terminal of so many columns and lines, a text for each."""
    if width < WIDTH or height < HEIGHT:
        told = (
            f"{width} columns, {height} lines: burst watch needs {WIDTH} and {HEIGHT}"
        )
        return _fitted([Text(told, NOTICE)], width, height)
    foot = _foot(state)
    top = _head(state, width)
    room = height - len(top) - len(foot)
    if state.page is not None:
        body = wrapped(state.page, width)
        first = min(state.offset, max(0, len(body) - room))
        body = body[first : first + room]
    elif state.found is None:
        body = [Text("the daemon is asked", QUIET)]
    else:
        shown = sections(state.found, width, everything=state.everything)
        body = _tables(shown, state, room)
    body += [Text()] * (room - len(body))
    return _fitted([*top, *body[:room], *foot], width, height)


def wrapped(page: Sequence[Text], width: int) -> list[Text]:
    """Return lines of a text as wide as a terminal, long ones broken after words."""
    lines: list[Text] = []
    for line in page:
        lines += _broken(line, width)
    return lines


def _broken(line: Text, width: int) -> list[Text]:
    """Return a line as several; all but the first are indented as it is, and more."""
    plain = line.plain
    indent = len(plain) - len(plain.lstrip()) + 4
    found = []
    while cell_len(line.plain) > width:
        cut = line.plain.rfind(" ", indent, width)
        cut = cut if cut > indent else width - 1
        found.append(line[:cut])
        rest = line[cut:]
        spare = len(rest.plain) - len(rest.plain.lstrip())
        line = Text(" " * indent) + rest[spare:]
    return [*found, line]


def _fitted(lines: Sequence[Text], width: int, height: int) -> list[Text]:
    """Return exactly so many lines, none of them wider than that."""
    for line in lines:
        line.no_wrap = True
        line.truncate(width, overflow="ellipsis")
    return list(lines)[:height]


def _head(state: WatchState, width: int) -> list[Text]:
    """Return the lines at the top: the lead, the bill, the time, what is wrong."""
    found = state.found
    title = Text.assemble(("burst watch", HEAD))
    if found is not None:
        title.append(f"  {printable(found['lead']['uri'])}", QUIET)
        live = sum(row["state"] != "inactive" for row in found["bursts"])
        told = f"{counted(live, 'burst')}; {bill(found['totals'])}"
        told += f"; {counted(found['pending'], 'job')} may burst"
    else:
        told = ""
    clock = clock_time(found["now"]) if found else ""
    title.truncate(width - len(clock) - 2, overflow="ellipsis")
    title.append(f"{clock:>{width - title.cell_len}}")
    lines = [title, Text(told)]
    lines += [Text(printable(text), WRONG) for text in state.troubles()]
    return [*lines, Text()]


def _foot(state: WatchState) -> list[Text]:
    if state.confirm is not None:
        ask = f"Take {state.confirm} down, once its jobs have ended? y/n"
        return [
            Text(ask, f"{NOTICE} {HEAD}"),
            Text("y does it, any other key does not"),
        ]
    keys = _KEYS if state.page is None else _BACK
    return [Text(printable(state.message), HEAD), Text(keys, QUIET)]


def _tables(shown: Sequence[Section], state: WatchState, room: int) -> list[Text]:
    """Return all tables, each with its share of the lines."""
    lines: list[Text] = []
    wanted = [max(1, len(section.items)) for section in shown]
    blank = room >= sum(min(each, 3) for each in wanted) + 2 * len(shown) - 1
    shares = share_out(wanted, room - (1 + blank) * len(shown) + blank)
    for section, share in zip(shown, shares, strict=True):
        if lines and blank:
            lines.append(Text())
        lines += _table(section, share, state.selected_in(section))
    return lines


def share_out(wanted: Sequence[int], room: int) -> list[int]:
    """Return how many lines each gets: as equal as can be, and no more than wanted.

    What one does not need is for the others.
    """
    shares = [0] * len(wanted)
    left = max(0, room)
    while left and any(has < want for has, want in zip(shares, wanted, strict=True)):
        # The one that has least gets a line; of several the first.
        open_ones = [i for i, want in enumerate(wanted) if shares[i] < want]
        least = min(open_ones, key=lambda i: shares[i])
        shares[least] += 1
        left -= 1
    return shares


def _table(section: Section, share: int, selected: int | None) -> list[Text]:
    """Return the titles of a table and so many of its rows, the selected among them."""
    items = section.items
    first = 0
    if selected is not None:
        first = max(0, min(selected - share // 2, len(items) - share))
    seen = items[first : first + share]
    widths = _widths(section)
    titles = _line([Text(title) for title in section.titles], widths, "  ")
    titles.stylize(HEAD)
    if len(seen) < len(items) or section.more:
        total = len(items) + section.more
        titles.append(f"  {first + 1}-{first + len(seen)} of {total}", QUIET)
    lines = [titles]
    for number, item in enumerate(seen, first):
        mark = "> " if number == selected else "  "
        line = _line(item.cells, widths, mark)
        # Reversed, several colours in one line are hard to read.
        lines.append(Text(line.plain, "reverse") if number == selected else line)
    if not items and share:
        lines.append(Text("  none", QUIET))
    return lines


def _widths(section: Section) -> list[int]:
    """Return the width of each column but the last, which has what is left."""
    columns = len(section.titles) - 1
    return [
        max(
            [cell_len(section.titles[number])]
            + [_cell_width(item, number) for item in section.items]
        )
        for number in range(columns)
    ]


def _cell_width(item: Item, number: int) -> int:
    return min(24, item.cells[number].cell_len)


def _line(cells: Sequence[Text], widths: Sequence[int], mark: str) -> Text:
    """Return one row of a table; `cells` has one more than `widths`."""
    line = Text(mark)
    for cell, width in zip(cells, widths, strict=False):
        shown = cell.copy()
        shown.truncate(width, overflow="ellipsis", pad=True)
        line.append_text(shown).append("  ")
    return line.append_text(cells[-1].copy())
