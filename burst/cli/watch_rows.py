# SPDX-License-Identifier: MIT
"""What `burst watch` shows of the daemon's answer: sections of rows of texts.

Pure: of an answer of the method `status` it makes what is drawn, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
from rich.text import Text

from burst.cli.colours import NOTICE, QUIET, WRONG, result_style, state_style
from burst.cli.listing import Row, money, span
from burst.cli.status import idle_text
from burst.model.decision import moment
from burst.model.printable import printable
from burst.report_page.figures import why_waits
from burst.report_page.words import span as precise_span

WIDE = 110
"""Columns of a terminal from which on more is shown of each job."""
_LATELY_S = 60.0
"""For so long a burst is shown that has ended."""

Cells = tuple[Text, ...]
Key = tuple[str, str]
"""Of an item: its kind (`job`, `burst`, `slot`, `provider`, `budget`) and its name."""


class Item(msgspec.Struct, frozen=True):
    """One row that can be selected."""

    key: Key
    cells: Cells
    row: Row
    """Of the daemon's answer."""


class Section(msgspec.Struct, frozen=True):
    """One table of the screen; the last column has what is left of the width."""

    titles: tuple[str, ...]
    items: tuple[Item, ...]
    more: int = 0
    """So many rows were not asked for."""


def sections(found: Row, width: int, *, everything: bool = False) -> list[Section]:
    """Return what is to be drawn in so many columns; with `everything` all bursts."""
    bursts = [row for row in found["bursts"] if everything or _is_shown(row)]
    wide = width >= WIDE
    shown = [_bursts(bursts, wide=wide), _jobs(found, wide=wide)]
    shown += [_slots(found["slots"]), _providers(found["providers"], found["now"])]
    if found["budgets"]:
        shown.append(_budgets(found["budgets"]))
    return shown


def _is_shown(row: Row) -> bool:
    return bool(row["state"] != "inactive" or row["age"] < _LATELY_S)


def _item(kind: str, name: str, row: Row, *cells: str | Text) -> Item:
    texts = tuple(c if isinstance(c, Text) else Text(printable(c)) for c in cells)
    return Item((kind, name), texts, row)


def _bursts(rows: Sequence[Row], *, wide: bool) -> Section:
    more = ("JOBS",) if wide else ()
    titles = ("BURST", "PROVIDER", "NODES", *more, "STATE", "BEFORE")
    items = []
    for row in rows:
        online = "?" if row["online"] is None else row["online"]
        where = f"{row['provider']}/{row['offer']}", f"{online}/{row['nodes']}"
        jobs = (_few(row["jobs"]),) if wide else ()
        cells = (row["id"], *where, *jobs, _state(row), _before(row))
        items.append(_item("burst", row["id"], row, *cells))
    return Section(titles, tuple(items))


def _few(names: Sequence[str]) -> str:
    if not names:
        return "-"
    return names[0] if len(names) == 1 else f"{names[0]} +{len(names) - 1}"


def _state(row: Row) -> Text:
    """Return the state of a burst and for how long it has had it, or its result."""
    if row["state"] == "inactive":
        return Text(row["result"] or "inactive", result_style(row))
    return Text(f"{row['state']} {precise_span(row['age'])}", state_style(row))


def _before(row: Row) -> Text:
    """Return what is to be known of a burst, and how long its earlier states lasted.

    That it was new is left out: it lasts for milliseconds.
    """
    told = Text("; ".join(filter(None, (idle_text(row), printable(row["note"])))))
    earlier = Text()
    for one, then in pairwise(row["states"]):
        if one["state"] != "new":
            earlier.append(" > " if earlier else "", QUIET)
            lasted = precise_span(then["at"] - one["at"])
            earlier.append(f"{one['state']} {lasted}", state_style(one))
    return Text("; ").join(text for text in (told, earlier) if text)


def _jobs(found: Row, *, wide: bool) -> Section:
    rows, now = found.get("jobs", []), found["now"]
    titles: tuple[str, ...] = ("JOB", "WAITS", "STARTS IN", "WHY")
    if wide:
        titles = ("JOB", "USER", "NAME", "WAITS", "STARTS IN", "WHY")
    items = []
    for row in rows:
        who = (row.get("user", row["userid"]), row["name"] or "-") if wide else ()
        waits = span(max(0.0, now - row["submitted"]))
        cells = (row["id"], *who, waits, _starts(row, now), why_waits(row))
        items.append(_item("job", row["id"], row, *cells))
    return Section(titles, tuple(items), max(0, found["pending"] - len(rows)))


def _starts(row: Row, now: float) -> Text:
    """Return in how long a job is expected to start: elsewhere, or `here`."""
    if row["expected"] is None:
        return Text("?", QUIET)
    left = span(max(0.0, row["expected"] - now))
    return Text(left, "green") if row["by"] == "burst" else Text(f"{left} here")


def _slots(rows: Sequence[Row]) -> Section:
    return Section(
        ("SLOT", "RANKS", "NODES", "STATE", "BURST"),
        tuple(
            _item(
                "slot",
                row["name"],
                row,
                *(row["name"], row["ranks"], row["shape"]),
                Text(row["state"], state_style(row)),
                row["burst"] or "-",
            )
            for row in rows
        ),
    )


def _providers(rows: Sequence[Row], now: float) -> Section:
    return Section(
        ("PROVIDER", "HEALTH", "OFFERS"),
        tuple(
            _item("provider", row["name"], row, row["name"], *_health(row, now))
            for row in rows
        ),
    )


def _health(row: Row, now: float) -> tuple[Text, Text]:
    """Return what is wrong with a provider, and what it offers."""
    offers = Text(
        printable("; ".join(_offer(each, now) for each in row["offers"]) or "-")
    )
    if row["disabled"]:
        return Text("disabled", WRONG), Text(printable(row["disabled"]), WRONG)
    if row["breaker_until"] and row["breaker_until"] > now:
        left = span(row["breaker_until"] - now)
        health = Text(f"paused {left}", NOTICE)
        return health, Text(printable(row["trouble"]), NOTICE) if row[
            "trouble"
        ] else offers
    if row["trouble"]:
        return Text("trouble", NOTICE), Text(printable(row["trouble"]), NOTICE)
    return Text("ok", "green"), offers


def _offer(offer: Row, now: float) -> str:
    text = f"{offer['name']} {offer['shape']}"
    if offer["price"]:
        text += f" at {money(offer['price'])}"
    until = offer["set_aside_until"]
    if until and until > now:
        text += f", set aside for {span(until - now)}"
    return text


def _budgets(rows: Sequence[Row]) -> Section:
    return Section(
        ("BUDGET", "LEFT", "OF", "UNTIL"),
        tuple(
            _item(
                "budget",
                row["budget"],
                row,
                row["budget"],
                Text(money(row["left"]), NOTICE if row["warns"] else ""),
                money(row["limit"]),
                moment(row["anew"]),
            )
            for row in rows
        ),
    )
