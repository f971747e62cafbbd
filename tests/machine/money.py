# SPDX-License-Identifier: MIT
"""What was bought for each user and bank, reckoned from the ledger's rows alone.

Beside the product's own reckoning, which is compared with it. It leaves out what Flux
started on lent nodes by itself, and time for which a job had nodes past what was booked
for it: these count, and cannot be refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from burst.config import BudgetSettings
from burst.config.policy import as_tuple
from burst.core.money.budget import BudgetState
from burst.core.money.ledger import (
    STANDING,
    PaidBurst,
    Payer,
    Share,
    by_share,
    counted,
)
from burst.core.money.money import Money
from burst.model.burst import BurstId
from tests.machine.world import World


class Spending:
    """Remembers which jobs bursts were assigned to."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._assigned: dict[BurstId, set[int]] = {}
        self._booked: dict[tuple[BurstId, int | None], float] = {}

    def note(self) -> None:
        """Note the jobs of each burst that were given to it before they began."""
        for burst in self._world.bursts:
            given = burst.jobs - burst.started
            self._assigned.setdefault(burst.id, set()).update(given)
        for entry in self._world.records.entries.values():
            booked = {(entry.burst, s.job): s.booked for s in entry.shares if s.booked}
            self._booked.update(booked)

    def given(self, burst: BurstId) -> set[int]:
        """Return the jobs that were given a burst before they began."""
        return self._assigned.get(burst, set())

    def used(self, state: BudgetState) -> tuple[int, int]:
        """Return what counts towards a budget, and what of that was bought.

        Of a budget of all users and banks, that is all.
        """
        records, its = self._world.records, state.window
        match = state.budget.match
        if not match.user and not match.bank:
            return state.used, state.used - state.grown
        counts = bought = 0
        for entry in records.entries.values():
            shares = _of(state.budget, entry.shares, entry.provider)
            if STANDING in entry.payers:
                now = counted(entry, self._world.now)
                mine = _of(state.budget, now.shares, entry.provider)
                counts += _price(entry, (max(s.node_seconds, s.booked) for s in mine))
                bought += _price(entry, (self._booked_of(entry, s) for s in mine))
                continue
            counts += entry.reserved if shares else 0
            if any(self._is_bought(entry.burst, share) for share in shares):
                bought += entry.reserved - entry.grown
        for row in records.settled.values():
            if not its.begins <= row.made < its.ends:
                continue
            shares = _of(state.budget, row.shares, row.provider)
            for share, costs in by_share(row.shares, row.costs):
                if share in shares:
                    counts += costs.total
                    is_bought = self._is_bought(row.burst, share)
                    most = costs.total
                    if STANDING in row.payers:
                        most = _price(row, [self._booked_of(row, share)])
                    bought += min(costs.total, most) if is_bought else 0
        return counts, bought

    def _booked_of(self, row: PaidBurst, share: Share) -> float:
        """Return for how many node-seconds a job was let on nodes that stand."""
        known = self._booked.get((row.burst, share.job), 0.0)
        return share.booked or min(known, share.node_seconds)

    def _is_bought(self, burst: BurstId, share: Share) -> bool:
        return share.job is None or share.job in self.given(burst)


def _price(row: PaidBurst, seconds: Iterable[float]) -> Money:
    each = Fraction(row.price) + Fraction(row.fee, row.nodes)
    return Money(math.ceil(Fraction(sum(seconds)) * each / 3600))


def _of(budget: BudgetSettings, shares: Iterable[Share], provider: str) -> list[Share]:
    """Return the shares that count towards a budget."""
    providers = as_tuple(budget.match.provider)
    if providers and provider not in providers:
        return []
    return [share for share in shares if _matches(budget, share.payer)]


def _matches(budget: BudgetSettings, payer: Payer) -> bool:
    users, banks = as_tuple(budget.match.user), as_tuple(budget.match.bank)
    of_user = not users or str(payer.userid) in map(str, users)
    return of_user and (not banks or payer.bank in banks)
