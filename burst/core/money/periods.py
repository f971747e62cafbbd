# SPDX-License-Identifier: MIT
"""What was settled in each day and month, and when days, weeks and months begin.

All that a burst has cost counts in the day on which it was made, in UTC. The sums of a
day are one record, which never has more than MOST_GROUPS groups. Days that no budget
covers any more are merged into one record of their month, which is kept without end.
The clock alone, which may be ahead for a while, does not make a day old: there are also
KEPT_DAYS records of later days.
"""

from __future__ import annotations

import datetime
from collections.abc import Container, Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec

from burst.core.money.ledger import OTHERS, Costs, Payer, SettledBurst, by_payer
from burst.model.burst import PriceSource

Per = Literal["day", "week", "month"]
MOST_GROUPS = 2000
"""The most groups of a record: each has at most 500 bytes, a record at most 1 MiB."""
KEPT_DAYS = 40
"""How many days are known one by one; a month has at most 31."""
_DAY_S = 86400.0
_LENGTH_OF_DAY = len("2026-11-22")


class Group(msgspec.Struct, frozen=True, array_like=True):
    """The fields by which costs are summed up: costs with equal ones are one sum."""

    payer: Payer
    provider: str
    offer: str
    priced_by: PriceSource = "offer"


class Period(msgspec.Struct, frozen=True):
    """What was settled of the bursts that were made in a day or month."""

    groups: tuple[tuple[Group, Costs], ...] = ()
    bursts: int = 0

    @property
    def total(self) -> Costs:
        """The sum of all groups."""
        return sum_of(costs for _, costs in self.groups)

    def plus(self, groups: Iterable[tuple[Group, Costs]], bursts: int) -> Period:
        """Return the period with further costs; those of equal groups are one sum."""
        sums = dict(self.groups)
        for group, costs in groups:
            known = group
            if group not in sums and len(sums) >= MOST_GROUPS - 1:
                known = Group(OTHERS, "", "")
            sums[known] = sums.get(known, Costs()).plus(costs)
        return Period(tuple(sums.items()), self.bursts + bursts)


class Window(NamedTuple):
    """The time that a budget is for, in seconds since the epoch."""

    begins: float
    ends: float

    def periods(self, names: Iterable[str]) -> list[str]:
        """Return the names of the records that count in it: its days, and its month.

        The month counts only if the window is the whole month. Days of the window are
        merged into it if the clock was far ahead, and was set back.
        """
        first, after = day_of(self.begins), day_of(self.ends)
        month = month_of(first) if window("month", self.begins) == self else ""
        return [
            name
            for name in names
            if name == month or (first <= name < after and _is_day(name))
        ]


def sum_of(costs: Iterable[Costs]) -> Costs:
    """Return the sum, kind by kind."""
    found = Costs()
    for each in costs:
        found = found.plus(each)
    return found


def day_of(at: float) -> str:
    """Return the day of a time in UTC, such as 2026-11-22."""
    return _date(at).isoformat()


def window(per: Per, at: float) -> Window:
    """Return the day, week or month in which a time is."""
    day = _date(at)
    if per == "day":
        begins, ends = day, day + datetime.timedelta(days=1)
    elif per == "week":
        begins = day - datetime.timedelta(days=day.weekday())
        ends = begins + datetime.timedelta(days=7)
    else:
        begins = day.replace(day=1)
        ends = (begins + datetime.timedelta(days=31)).replace(day=1)
    return Window(midnight(begins), midnight(ends))


def midnight(day: datetime.date) -> float:
    """Return when a day begins in UTC, in seconds since the epoch."""
    begins = datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC)
    return begins.timestamp()


def groups_of(settled: SettledBurst) -> list[tuple[Group, Costs]]:
    """Return what each payer pays for a burst."""
    return [
        (Group(payer, settled.provider, settled.offer, settled.priced_by), costs)
        for payer, costs in by_payer(settled.shares, settled.costs).items()
    ]


def month_of(period: str) -> str:
    """Return the month, such as 2026-11, of the name of a day or a month."""
    return period[: len("2026-11")]


def merge_old(
    periods: Mapping[str, Period], unreadable: Container[str], now: float
) -> dict[str, Period]:
    """Return the periods with old days merged into their months.

    `unreadable` are keys of records; a month that cannot be read is not added to.
    """
    found = dict(periods)
    days = sorted(filter(_is_day, periods))
    for name in days[:-KEPT_DAYS]:
        month, is_old = month_of(name), name < day_of(now - KEPT_DAYS * _DAY_S)
        if is_old and f"ledger/{month}" not in unreadable:
            day = found.pop(name)
            found[month] = found.get(month, Period()).plus(day.groups, day.bursts)
    return found


def _is_day(period: str) -> bool:
    return len(period) == _LENGTH_OF_DAY


def _date(at: float) -> datetime.date:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).date()
