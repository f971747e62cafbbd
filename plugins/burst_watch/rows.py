# SPDX-License-Identifier: MIT
"""Tables and lines of `burst watch`, from the daemon's answer to `status`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec

from burst.cli.colours import NOTICE, QUIET, WRONG, result_style, state_style
from burst.cli.cost import name_of_user
from burst.cli.listing import Column, Row, counted, money
from burst.cli.status import SLOTS, bill, idle_text, lead_troubles
from burst.model.decision import moment, why_waits
from burst.model.fsd import rounded_span

STATUS: tuple[str, dict[str, Any]] = ("status", {"jobs": 200})
"""The method that is called, and its payload: at most 200 waiting jobs."""
WIDE = 110
"""Terminals with this many columns or more show further columns of the tables."""
NAMES = {"burst": "id", "job": "id", "slot": "name", "provider": "name"}
"""The key that identifies a row, by the kind of the section; default: the kind."""
_LATELY_S = 60.0
"""Seconds for which a burst that has ended is shown."""


class Section(msgspec.Struct, frozen=True):
    """One table of the screen."""

    kind: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    more: int = 0
    """How many further rows there are, which were not asked for."""

    @property
    def names(self) -> list[str]:
        """The name that identifies each row."""
        return [row[NAMES.get(self.kind, self.kind)] for row in self.rows]


def sections(found: Row, width: int, *, everything: bool = False) -> list[Section]:
    """Return the tables for `width` columns of a terminal.

    With `everything`, they have all bursts on record.
    """
    now, jobs = {"now": found["now"]}, found.get("jobs", [])
    bursts = [row for row in found["bursts"] if everything or _is_shown(row)]
    more = max(0, found["pending"] - len(jobs))
    shown = [
        Section("burst", _fitting(_BURSTS, width), bursts),
        Section("job", _fitting(_JOBS, width), [{**row, **now} for row in jobs], more),
        Section("slot", SLOTS, found["slots"]),
        Section("provider", _PROVIDERS, [{**row, **now} for row in found["providers"]]),
        Section("budget", _BUDGETS, found["budgets"]),
    ]
    return [section for section in shown if section.rows or section.kind != "budget"]


def _fitting(columns: Sequence[Column], width: int) -> Sequence[Column]:
    return [each for each in columns if width >= WIDE or each not in _ONLY_WIDE]


def _is_shown(row: Row) -> bool:
    return bool(row["state"] != "inactive" or row["age"] < _LATELY_S)


def headline(found: Row) -> str:
    """Return the sums of an answer in one line."""
    live = sum(row["state"] != "inactive" for row in found["bursts"])
    told = [counted(live, "burst"), bill(found["totals"])]
    # Without a daemon nobody has decided which jobs may burst.
    if found["daemon"] is not None:
        told.append(f"{counted(found['pending'], 'job')} may burst")
    return "; ".join(told)


def troubles(found: Row | None, failure: str) -> list[str]:
    """Return a line for each reason why the shown status is old or wrong.

    `failure` is why the last call had no answer; empty if it had one.
    """
    lines = [f"no answer: {failure}; it is tried again"] if failure else []
    if found:
        lines += lead_troubles(found["lead"])
    if found and found["daemon"] is None:
        lines.append("no daemon serves this lead; this is what is on record")
    return lines


def _few(row: Row) -> str:
    names = row["jobs"] or ["-"]
    return f"{names[0]} +{len(names) - 1}" if names[1:] else str(names[0])


def _nodes(row: Row) -> str:
    return f"{'?' if row['online'] is None else row['online']}/{row['nodes']}"


def _state(row: Row) -> str:
    """Return the state of a burst and how long it has lasted, or the result."""
    if row["state"] == "inactive":
        return row["result"] or "inactive"
    return f"{row['state']} {rounded_span(row['age'])}"


def _state_style(row: Row) -> str:
    return result_style(row) if row["state"] == "inactive" else state_style(row)


def _before(row: Row) -> str:
    """Return notes on a burst, and how long its earlier states lasted.

    The state `new` is left out, because it lasts only milliseconds.
    """
    earlier = (
        f"{one['state']} {rounded_span(then['at'] - one['at'])}"
        for one, then in pairwise(row["states"])
        if one["state"] != "new"
    )
    return "; ".join(filter(None, (idle_text(row), row["note"], " > ".join(earlier))))


def _starts(row: Row) -> str:
    """Return how long until a job is expected to start, with `here` for own nodes."""
    if row["expected"] is None:
        return "?"
    left = rounded_span(max(0.0, row["expected"] - row["now"]))
    return left if row["by"] == "burst" else f"{left} here"


def _starts_style(row: Row) -> str:
    if row["expected"] is None:
        return QUIET
    return "green" if row["by"] == "burst" else ""


def _is_paused(row: Row) -> bool:
    return bool(row["breaker_until"] and row["breaker_until"] > row["now"])


def _health(row: Row) -> str:
    if row["disabled"]:
        return "disabled"
    if _is_paused(row):
        return f"paused {rounded_span(row['breaker_until'] - row['now'])}"
    return "trouble" if row["trouble"] else "ok"


def _health_style(row: Row) -> str:
    if row["disabled"]:
        return WRONG
    return NOTICE if row["trouble"] or _is_paused(row) else "green"


def _offers(row: Row) -> str:
    """Return the offers of a provider, or what is wrong with it."""
    offers = "; ".join(_offer(offer, row["now"]) for offer in row["offers"])
    return row["disabled"] or row["trouble"] or offers or "-"


def _offers_style(row: Row) -> str:
    return _health_style(row) if row["disabled"] or row["trouble"] else ""


def _offer(offer: Row, now: float) -> str:
    text = f"{offer['name']} {offer['shape']}"
    if offer["price"]:
        text += f" at {money(offer['price'])}"
    until = offer["set_aside_until"]
    if until and until > now:
        text += f", set aside for {rounded_span(until - now)}"
    return text


_BURSTS = (
    Column("BURST", lambda row: row["id"]),
    Column("PROVIDER", lambda row: f"{row['provider']}/{row['offer']}"),
    Column("NODES", _nodes),
    Column("JOBS", _few),
    Column("STATE", _state, _state_style),
    Column("BEFORE", _before),
)
_JOBS = (
    Column("JOB", lambda row: row["id"]),
    Column("USER", lambda row: name_of_user(str(row["userid"]))),
    Column("NAME", lambda row: row["name"] or "-"),
    Column("WAITS", lambda row: rounded_span(max(0.0, row["now"] - row["submitted"]))),
    Column("STARTS IN", _starts, _starts_style),
    Column("WHY", why_waits),
)
_PROVIDERS = (
    Column("PROVIDER", lambda row: row["name"]),
    Column("HEALTH", _health, _health_style),
    Column("OFFERS", _offers, _offers_style),
)
_BUDGETS = (
    Column("BUDGET", lambda row: row["budget"]),
    Column(
        "LEFT",
        lambda row: money(row["left"]),
        lambda row: NOTICE if row["warns"] else "",
    ),
    Column("OF", lambda row: money(row["limit"])),
    Column("UNTIL", lambda row: moment(row["anew"])),
)
_ONLY_WIDE = (_BURSTS[3], _JOBS[1], _JOBS[2])
