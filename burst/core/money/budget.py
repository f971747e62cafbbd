# SPDX-License-Identifier: MIT
"""Budgets: how much of each is settled, reserved and left, and what may not be bought.

A burst counts in the day, week or month in which it was made. While it lives, it counts
in later ones, too, and all that is reserved for it counts, in full for each payer. If a
standing minimum pays for the burst, payers of its jobs count what the jobs have used,
and may use while they have its nodes. Once the burst is gone, what it has cost counts,
for each payer by their share. So no purchase takes the sum of settled and reserved
money over a limit.

A burst that lives longer than money was reserved for is not ended; `Entry.grown` tells
how much more was reserved then.
"""

from __future__ import annotations

import copy
import datetime
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

import msgspec

from burst.config import BudgetSettings
from burst.config.policy import as_tuple
from burst.core.money.ledger import OTHERS, STANDING, Entry, Payer
from burst.core.money.life import borne
from burst.core.money.money import Money, from_units, reserve_for, reserve_part
from burst.core.money.periods import Window, midnight, sum_of, window
from burst.core.records import RecordsView

_DAY_S = 86400.0
# The part of its limit from which on a budget warns: of a month's money, there is
# usually a week left to react.
_WARNS_FROM = 0.8


class BudgetState(msgspec.Struct, frozen=True, kw_only=True):
    """How a budget stands in one of its days, weeks or months."""

    budget: BudgetSettings
    window: Window
    limit: Money
    """0 once the budget's last day is over."""
    settled: Money
    reserved: Money
    grown: Money
    """The part of `reserved` that was added as bursts outlived their reservation."""
    over: bool = False
    """Whether its last day is over."""
    unread: str = ""
    """Key of a record that cannot be read, so that more may be used; empty if none."""

    @property
    def used(self) -> Money:
        """What is settled and reserved."""
        return Money(self.settled + self.reserved)

    @property
    def left(self) -> Money:
        """What may still be bought, never less than 0."""
        return Money(0 if self.unread else max(0, self.limit - self.used))

    def has_again(self, need: Money) -> float:
        """Return when the budget begins anew, in seconds since the epoch.

        math.inf if it does not have `need` even then, unless something is changed.
        """
        never = self.unread or self.over or need > self.limit
        return math.inf if never else self.window.ends

    @property
    def warns(self) -> bool:
        """Whether so much is used that people are told."""
        return self.used >= _WARNS_FROM * self.limit


class Commitment(msgspec.Struct, frozen=True, kw_only=True):
    """Money that is or would be reserved for one burst."""

    provider: str
    price: Money
    fee: Money = Money(0)
    nodes: int
    made: float
    until: float
    payers: frozenset[Payer]
    borne: Mapping[Payer, float] | None = None
    """What `booked.borne` returns."""

    @property
    def amount(self) -> Money:
        """What is reserved: the price of all its nodes, and its fee, for its life."""
        return reserve_for(self.nodes, self.until - self.made, self.price, self.fee)


class Budgets:
    """The budgets at one time; what is left shrinks as a plan is made."""

    def __init__(
        self,
        budgets: Sequence[BudgetSettings],
        records: RecordsView,
        userids: Mapping[str, int],
        now: float,
    ) -> None:
        """`userids` are the numbers of the users that budgets name."""
        self._terms = [_Terms(budget, userids) for budget in budgets]
        self._records = records
        self._now = now
        self._states: dict[tuple[int, Window], BudgetState] = {}

    def __bool__(self) -> bool:
        return bool(self._terms)

    def copy(self) -> Budgets:
        """Return the budgets as they are now."""
        made = copy.copy(self)
        made._states = dict(self._states)
        return made

    def states(self) -> list[BudgetState]:
        """Return how each budget stands now."""
        return [self._state(number, self._now) for number in range(len(self._terms))]

    def refusing(
        self, after: Sequence[Commitment], before: Commitment | None = None
    ) -> tuple[BudgetState, Money] | None:
        """Return the budget that allows `after` last, and what `after` needs of it.

        None if all budgets allow `after` now. `before` is what is reserved already, in
        place of which `after` would be reserved.
        """
        short = []
        for number, at, more in self._further(after, before):
            state = self._state(number, at)
            if more > state.left:
                short.append((state, more))
        return max(short, key=lambda found: found[0].has_again(found[1]), default=None)

    def commit(
        self, after: Sequence[Commitment], before: Commitment | None = None
    ) -> None:
        """Count `after` as reserved, in place of `before`."""
        for number, at, more in self._further(after, before):
            state = self._state(number, at)
            reserved = Money(state.reserved + more)
            self._states[number, state.window] = msgspec.structs.replace(
                state, reserved=reserved
            )

    def _further(
        self, after: Sequence[Commitment], before: Commitment | None
    ) -> Iterator[tuple[int, float, Money]]:
        """Yield budgets, a time in each window that counts, and the further amount."""
        for number, terms in enumerate(self._terms):
            known = terms.part_of(before, before.amount) if before is not None else 0
            more = sum(terms.part_of(each, each.amount) for each in after) - known
            if more <= 0:
                continue
            yield number, self._now, Money(more)
            made = before.made if before is not None else self._now
            if window(terms.budget.per, made) != window(terms.budget.per, self._now):
                yield number, made, Money(more)

    def _state(self, number: int, at: float) -> BudgetState:
        terms = self._terms[number]
        key = number, window(terms.budget.per, at)
        if key not in self._states:
            self._states[key] = self._reckon(terms, key[1])
        return self._states[key]

    def _reckon(self, terms: _Terms, its: Window) -> BudgetState:
        records, budget = self._records, terms.budget
        current = its.begins <= self._now < its.ends
        entries = [
            entry
            for entry in records.entries.values()
            if (current or its.begins <= entry.made < its.ends)
            and terms.matches(entry.payers, entry.provider)
        ]
        settled = sum_of(
            costs
            for name in its.periods(records.periods)
            for group, costs in records.periods[name].groups
            if terms.matches([group.payer], group.provider)
        )
        last = budget.until
        over = last is not None and self._now >= midnight(last) + _DAY_S
        return BudgetState(
            budget=budget,
            window=its,
            limit=Money(0) if over else from_units(budget.limit),
            over=over,
            settled=settled.total,
            reserved=Money(
                sum(
                    terms.part_of(commitment_of(entry, self._now), entry.reserved)
                    for entry in entries
                )
            ),
            grown=Money(
                sum(
                    entry.grown
                    for entry in entries
                    if terms.bears_all(entry.payers, entry.provider)
                )
            ),
            unread=_unread(records.unreadable, its),
        )


class _Terms:
    """What a budget matches, ready to be compared; None where everything matches."""

    def __init__(self, budget: BudgetSettings, userids: Mapping[str, int]) -> None:
        self.budget = budget
        match = budget.match
        users = as_tuple(match.user)  # 0 is a user, too
        self._users = numbers_of(users, userids) if users else None
        self._banks = _words(match.bank)
        self._queues = _words(match.queue)
        self._providers = _words(match.provider)

    def part_of(self, bought: Commitment, amount: Money) -> Money:
        """Return how much of the amount that is reserved for a burst counts."""
        if bought.borne is None or self.matches([STANDING], bought.provider):
            return amount if self.matches(bought.payers, bought.provider) else Money(0)
        seconds = sum(
            used
            for payer, used in bought.borne.items()
            if self.matches([payer], bought.provider)
        )
        return reserve_part(seconds, bought.price, bought.fee, bought.nodes)

    def bears_all(self, payers: Set[Payer], provider: str) -> bool:
        """Tell whether all that is reserved counts, not only what jobs may use."""
        return STANDING not in payers or self.matches([STANDING], provider)

    def matches(self, payers: Iterable[Payer], provider: str) -> bool:
        """Tell whether nodes of a provider that are bought for these payers count."""
        if provider and self._providers is not None and provider not in self._providers:
            return False
        return any(payer == OTHERS or self._matches_payer(payer) for payer in payers)

    def _matches_payer(self, payer: Payer) -> bool:
        return (
            (self._users is None or payer.userid in self._users)
            and (self._banks is None or payer.bank in self._banks)
            and (self._queues is None or payer.queue in self._queues)
        )


def commitment_of(entry: Entry, now: float) -> Commitment:
    """Return what is reserved now for a burst that is on record."""
    return Commitment(
        provider=entry.provider,
        price=entry.price,
        fee=entry.fee,
        nodes=entry.nodes,
        made=entry.made,
        until=entry.until,
        payers=entry.payers,
        borne=borne(entry, now),
    )


def next_begin(budgets: Sequence[BudgetSettings], now: float) -> float:
    """Return when the next day, week or month of a budget begins; math.inf if none."""
    ends = (window(budget.per, now).ends for budget in budgets)
    return min(ends, default=math.inf)


def budget_warnings(
    budgets: Sequence[BudgetSettings], userids: Mapping[str, int], now: float
) -> list[str]:
    """Return warnings of budgets whose settings are allowed, but hardly meant."""
    found: list[str] = []
    today = datetime.datetime.fromtimestamp(now, datetime.UTC).date()
    for budget in budgets:
        if budget.until is not None and budget.until < today:
            found.append(
                f"budget {budget}: its last day was {budget.until}; nothing that it"
                " matches is bought (remove it, or set until)"
            )
        elif not budget.limit:
            found.append(
                f"budget {budget}: its limit is 0; nothing that it matches is bought"
            )
        for name in as_tuple(budget.match.user):
            if not numbers_of([name], userids):
                found.append(
                    f"budget {budget}: user {name} is not known, so nothing counts"
                    " towards it"
                )
    return found


def numbers_of(
    names: Iterable[str | int], userids: Mapping[str, int]
) -> frozenset[int]:
    """Return the numbers of users that are given by name or number."""
    found = (
        int(name) if str(name).isdecimal() else userids.get(str(name)) for name in names
    )
    return frozenset(number for number in found if number is not None)


def _words(value: str | tuple[str, ...]) -> frozenset[str] | None:
    return frozenset(as_tuple(value)) if value else None


def _unread(unreadable: Mapping[str, str], its: Window) -> str:
    """Return the key of a record of money that cannot be read; empty if there is none.

    An unreadable entry counts in each window.
    """
    sums = [key.partition("/")[2] for key in unreadable if key.startswith("ledger/")]
    known = its.periods(sums)
    if known:
        return f"ledger/{known[0]}"
    found = (key for key in unreadable if key.startswith("entry/"))
    return next(found, "")
