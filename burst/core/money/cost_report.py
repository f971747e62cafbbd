# SPDX-License-Identifier: MIT
"""The answer to `burst cost`: reserved, settled, left and wasted, ready for JSON.

Amounts are in the unit of the prices. A user other than the instance owner sees only
their own part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, get_args

import msgspec

from burst.config import BudgetSettings
from burst.config.policy import as_tuple
from burst.core.money.budget import BudgetState, numbers_of
from burst.core.money.ledger import (
    OTHERS,
    STANDING,
    Costs,
    PaidBurst,
    SettledBurst,
    Share,
    by_share,
)
from burst.core.money.money import Money, to_units
from burst.core.money.periods import Group, day_of, month_of, sum_of
from burst.core.records import Records
from burst.model.jobid import format_f58

Row = dict[str, Any]
By = Literal["user", "bank", "queue", "provider", "rule", "job"]
DIMENSIONS: tuple[By, ...] = get_args(By)
_SUMMED: Mapping[str, Callable[[Group], object]] = {
    "user": lambda group: group.payer.userid,
    "bank": lambda group: group.payer.bank,
    "queue": lambda group: group.payer.queue,
    "provider": lambda group: group.provider,
    "rule": lambda group: group.payer.rule,
}


class CostReport:
    """Sums over what was settled and what is reserved."""

    def __init__(
        self,
        records: Records,
        since: str = "",
        userid: int | None = None,
        archived: Iterable[SettledBurst] = (),
    ) -> None:
        """Report on bursts that were made since a day such as 2026-11-01.

        Old days are known by month only: a month counts if the day is in it or before.
        With `userid`, only that user's part counts. `archived` are settled bursts from
        the archive; they may be on record as well.
        """
        self._records, self._since, self._userid = records, since, userid
        rows = {(row.burst, row.made): row for row in archived}
        rows |= {(row.burst, row.made): row for row in records.settled.values()}
        self._settled = list(rows.values())

    @property
    def begins(self) -> str:
        """The first day that counts in months and groups; empty for all."""
        month = month_of(self._since)
        return f"{month}-01" if month in self._records.periods else self._since

    def months(self) -> list[Row]:
        """Return a row for each month, the latest last."""
        settled: dict[str, list[Costs]] = {}
        for name, period in self._records.periods.items():
            if self._counts(name):
                costs = [each for group, each in period.groups if self._theirs(group)]
                settled.setdefault(month_of(name), []).extend(costs)
        reserved: dict[str, int] = {}
        for made, _, _, amount in self._reserved():
            month = month_of(day_of(made))
            reserved[month] = reserved.get(month, 0) + amount
        names = sorted(settled.keys() | reserved.keys())
        return [
            {
                "month": name,
                **_amounts(sum_of(settled.get(name, [])), reserved.get(name, 0)),
            }
            for name in names
        ]

    def rows(self, by: By) -> list[Row]:
        """Return a row for each user, bank, queue, provider, rule or job.

        The most expensive one comes first. Jobs are listed only if their bursts are
        known one by one.
        """
        found = self._by_job() if by == "job" else self._by_group(_SUMMED[by])
        rows = [
            {"name": name, **_amounts(costs, reserved)}
            for name, (costs, reserved) in found.items()
        ]
        return sorted(
            rows, key=lambda row: (-row["settled"] - row["reserved"], row["name"])
        )

    def prices(self) -> list[Row]:
        """Return what a node of each offer cost last, and where that price came from.

        Each row also has how many bursts of the offer ended, and how many of these as
        the cloud took nodes back. Only bursts that are known one by one count.
        """
        paid: list[PaidBurst] = [*self._settled, *self._records.entries.values()]
        known = [burst for burst in paid if burst.is_for(self._userid)]
        latest = {
            f"{burst.provider}/{burst.offer}": burst
            for burst in sorted(known, key=lambda burst: burst.made)
            if self._counts(day_of(burst.made))
        }
        ended: Counter[str] = Counter()
        reclaimed: Counter[str] = Counter()
        for settled in self._settled:
            if self._counts(day_of(settled.made)) and settled.is_for(self._userid):
                key = f"{settled.provider}/{settled.offer}"
                ended[key] += 1
                reclaimed[key] += settled.reclaimed
        return [
            {
                "offer": key,
                "price": to_units(burst.price),
                "fee": to_units(burst.fee),
                "from": burst.priced_by,
                "ended": ended[key],
                "reclaimed": reclaimed[key],
            }
            for key, burst in sorted(latest.items())
        ]

    def _by_group(self, key: Callable[[Group], object]) -> dict[str, tuple[Costs, int]]:
        sums: dict[str, tuple[Costs, int]] = {}
        for name, period in self._records.periods.items():
            if self._counts(name):
                for group, costs in period.groups:
                    if self._theirs(group):
                        _add(sums, _name(group, key), costs, 0)
        for _, group, _, amount in self._reserved():
            _add(sums, _name(group, key), Costs(), amount)
        return sums

    def _by_job(self) -> dict[str, tuple[Costs, int]]:
        sums: dict[str, tuple[Costs, int]] = {}
        for settled in self._settled:
            if self._counts(day_of(settled.made)):
                for share, costs in by_share(settled.shares, settled.costs):
                    if self._userid in (None, share.payer.userid):
                        _add(sums, _job_name(share), costs, 0)
        for _, _, share, amount in self._reserved():
            _add(sums, _job_name(share), Costs(), amount)
        return sums

    def _reserved(self) -> Iterator[tuple[float, Group, Share, int]]:
        """Yield for each share of an entry when it was made, who pays, and how much."""
        for entry in self._records.entries.values():
            if not self._counts(day_of(entry.made)):
                continue
            for share, part in by_share(entry.shares, Costs(idle=entry.reserved)):
                group = Group(share.payer, entry.provider, entry.offer)
                if self._theirs(group):
                    yield entry.made, group, share, part.total

    def _counts(self, period: str) -> bool:
        """Tell whether a day or month counts: it is not before the first day."""
        return period >= self._since[: len(period)]

    def _theirs(self, group: Group) -> bool:
        return self._userid in (None, group.payer.userid)


def budget_row(state: BudgetState) -> Row:
    """Return how a budget stands."""
    until = state.budget.until
    return {
        "budget": str(state.budget),
        "per": state.budget.per,
        "limit": to_units(state.limit),
        "settled": to_units(state.settled),
        "reserved": to_units(state.reserved),
        "left": to_units(state.left),
        "warns": state.warns,
        "over": state.over,
        "until": until.isoformat() if until else None,
        "anew": state.window.ends,
        "unread": state.unread,
    }


def budget_row_for(state: BudgetState, userid: int, userids: Mapping[str, int]) -> Row:
    """Return how a budget stands, for one of its users: it does not name the others."""
    match, replace = state.budget.match, msgspec.structs.replace
    own = tuple(
        name for name in as_tuple(match.user) if userid in numbers_of([name], userids)
    )
    budget = replace(state.budget, match=replace(match, user=own))
    return {**budget_row(state), "budget": str(budget)}


def names_user(budget: BudgetSettings, userid: int, userids: Mapping[str, int]) -> bool:
    """Tell whether a budget is for a user by name or number."""
    return userid in numbers_of(as_tuple(budget.match.user), userids)


def _name(group: Group, key: Callable[[Group], object]) -> str:
    """Return the name of what a group is summed by; `-` where there is none."""
    if group.payer == OTHERS:
        return "others"
    value = key(group)
    if value in (None, ""):
        return STANDING.rule if group.payer == STANDING else "-"
    return str(value)


def _job_name(share: Share) -> str:
    if share.job is None:
        return STANDING.rule if share.payer == STANDING else "-"
    return format_f58(share.job)


def _add(
    sums: dict[str, tuple[Costs, int]], name: str, costs: Costs, reserved: int
) -> None:
    known, before = sums.get(name, (Costs(), 0))
    sums[name] = known.plus(costs), before + reserved


def _amounts(costs: Costs, reserved: int) -> Row:
    return {
        "settled": to_units(costs.total),
        "work": to_units(costs.work),
        "wasted": to_units(costs.wasted),
        "idle": to_units(costs.idle),
        "boot": to_units(costs.boot),
        "teardown": to_units(costs.teardown),
        "never_joined": to_units(costs.never_joined),
        "reserved": to_units(Money(reserved)),
    }
