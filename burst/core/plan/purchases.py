# SPDX-License-Identifier: MIT
"""What a plan buys, checked against the budgets: an offer that exceeds one is refused.

For each burst this counts the amount that `burst.core.money.accounts` reserves for it
once the plan is on record. Without budgets nothing is counted.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from burst.config import Settings
from burst.core.lifecycle import BEFORE_ONLINE
from burst.core.money.budget import (
    Budgets,
    BudgetState,
    Commitment,
    commitment_of,
)
from burst.core.money.ledger import Payer
from burst.core.money.life import (
    Life,
    boot_limit,
    life_parts,
    lives_until,
    node_seconds,
)
from burst.core.money.money import format_money, from_price
from burst.core.plan.demands import Demand
from burst.core.plan.offers import ProviderOffer
from burst.core.records import Records, RecordsView
from burst.model.burst import Burst, BurstId
from burst.model.decision import OfferRejection, moment
from burst.model.fsd import format_fsd
from burst.model.jobid import JobId
from burst.model.reason import Reason


class Purchases:
    """Counts what one plan buys, and compares it with the budgets."""

    def __init__(
        self,
        records: RecordsView,
        settings: Settings,
        userids: Mapping[str, int],
        payer: Callable[[JobId], Payer | None],
        now: float,
    ) -> None:
        """`payer` returns for whom a job's nodes are bought, None if not known.

        `userids` are the numbers of the users that budgets name.
        """
        self._budgets = Budgets(settings.budget, records, userids, now)
        self._ahead = self._budgets.copy()
        """The budgets as if what is promised to jobs were bought, too."""
        self._settings, self._payer, self._now = settings, payer, now
        self._live: dict[BurstId, tuple[Burst, Commitment]] = {}
        """Bursts that jobs may still use, and the money reserved for each."""
        if self._budgets:
            self._live = {
                name: (records.bursts[name], commitment_of(entry, now))
                for name, entry in records.entries.items()
                if name in records.bursts
            }

    @property
    def limited(self) -> bool:
        """Whether there are budgets."""
        return bool(self._budgets)

    def copy(self) -> Purchases:
        """Return what was counted until now, to go back to if a job gets no nodes."""
        made = copy.copy(self)
        made._budgets, made._live = self._budgets.copy(), dict(self._live)
        made._ahead = self._ahead.copy()
        return made

    def key(self, demand: Demand) -> tuple[object, ...]:
        """Return a key that demands share if budgets treat them alike."""
        if not self._budgets:
            return ()
        return self._payers(demand), demand.duration

    def refuse(
        self,
        candidate: ProviderOffer,
        demand: Demand,
        nodes: int,
        before: Commitment | None = None,
        later: bool = False,
    ) -> OfferRejection | None:
        """Return why so many nodes of an offer may not be bought, None if they may.

        `before` is what is reserved already for a burst of the plan that grows or gets
        the job; None for a new burst. `later`: they are to be promised.
        """
        if not self._budgets:
            return None
        bought = self._bought(candidate, demand, nodes, before)
        parts = life_parts(_life(candidate, demand), self._settings, self._now)
        budgets = self._ahead if later else self._budgets
        return self._refusal(budgets, candidate.key, [bought], before, parts)

    def buy(
        self,
        candidate: ProviderOffer,
        demand: Demand,
        nodes: int,
        before: Commitment | None = None,
    ) -> Commitment | None:
        """Count a purchase that was not refused; return it, None without budgets."""
        if not self._budgets:
            return None
        bought = self._bought(candidate, demand, nodes, before)
        self._commit([bought], before)
        return bought

    def promise(self, candidate: ProviderOffer, demand: Demand, nodes: int) -> None:
        """Count a promised purchase, beside which no other may be promised."""
        if self._budgets:
            self._ahead.commit([self._bought(candidate, demand, nodes, None)])

    def refuse_use(
        self, demand: Demand, burst: BurstId, key: str
    ) -> OfferRejection | None:
        """Return why a live burst may not be kept for as long as a job needs it.

        None if it may be. `key` is that of its offer.
        """
        if burst not in self._live:
            return self._unbooked(key)
        before, after = self._used(demand, burst)
        return self._refusal(self._budgets, key, [after], before)

    def use(self, demand: Demand, burst: BurstId) -> None:
        """Count that a live burst is kept for a job."""
        if burst in self._live:
            before, after = self._used(demand, burst)
            self._commit([after], before)
            self._live[burst] = self._live[burst][0], after

    def refuse_growth(
        self, burst: BurstId, key: str, more: int
    ) -> OfferRejection | None:
        """Return why a live burst may not have `more` further nodes; None if it may.

        They cost money from now on, for as long as money is reserved for the burst.
        `key` is that of its offer.
        """
        if burst not in self._live:
            return self._unbooked(key)
        _, before = self._live[burst]
        further = self._further(before, more)
        return self._refusal(self._budgets, key, [before, further], before)

    def grow(self, burst: BurstId, more: int) -> bool:
        """Count that a live burst grows by `more` nodes; tell whether it may.

        The whole burst is kept for longer, by the time that the further nodes take to
        come online.
        """
        if not self._budgets:
            return True
        if burst not in self._live:
            return False
        known, before = self._live[burst]
        boot = boot_limit(before.provider, self._settings)
        until = before.until if known.lease.end else before.until + boot
        kept = msgspec.structs.replace(before, until=until)
        further = self._further(kept, more)
        if self._budgets.refusing([kept, further], before) is not None:
            return False
        self._commit([kept, further], before)
        return True

    def _commit(self, after: Sequence[Commitment], before: Commitment | None) -> None:
        self._budgets.commit(after, before)
        self._ahead.commit(after, before)

    def _unbooked(self, key: str) -> OfferRejection | None:
        """Return why a burst without an entry costs no more; None if it may.

        What an entry that cannot be read has reserved is not known, and it is not
        changed. A burst without any, of before there was a ledger, gets one by the end
        of this tick.
        """
        states = self._budgets.states()
        return next((_unread(key, state) for state in states if state.unread), None)

    def _further(self, bought: Commitment, more: int) -> Commitment:
        """Return what is reserved for `more` further nodes of a live burst."""
        return msgspec.structs.replace(
            bought,
            nodes=more,
            fee=from_price(0.0),
            made=self._now,
            borne=None if bought.borne is None else {},
        )

    def _used(self, demand: Demand, name: BurstId) -> tuple[Commitment, Commitment]:
        """Return what is reserved for a live burst, and what would be with the job."""
        burst, before = self._live[name]
        life = Life(
            provider=before.provider,
            lease_end=burst.lease.end,
            run_times=(demand.duration,),
            # As `accounts` reserves: a job may wait for nodes that are coming.
            online=burst.state not in BEFORE_ONLINE and not burst.coming,
        )
        ends = lives_until(life, self._settings, self._now)
        payers, borne = self._payers(demand), before.borne
        if borne is not None:
            rest = ends - self._now
            seconds = node_seconds(demand.request, demand.duration, before.nodes, rest)
            borne = {**borne, **{p: borne.get(p, 0.0) + seconds for p in payers}}
        after = msgspec.structs.replace(
            before,
            until=max(before.until, ends),
            payers=before.payers | payers,
            borne=borne,
        )
        return before, after

    def _bought(
        self,
        candidate: ProviderOffer,
        demand: Demand,
        nodes: int,
        before: Commitment | None,
    ) -> Commitment:
        until = lives_until(_life(candidate, demand), self._settings, self._now)
        payers = self._payers(demand)
        if before is not None:
            until, payers = max(until, before.until), payers | before.payers
        return Commitment(
            provider=candidate.provider,
            price=from_price(candidate.offer.price),
            fee=from_price(candidate.offer.fee),
            nodes=nodes,
            made=self._now,
            until=until,
            payers=payers,
        )

    def _payers(self, demand: Demand) -> frozenset[Payer]:
        payer = None if demand.job is None else self._payer(demand.job)
        return frozenset({payer or Payer(demand.userid)})

    @staticmethod
    def _refusal(
        budgets: Budgets,
        key: str,
        after: Sequence[Commitment],
        before: Commitment | None,
        parts: Mapping[str, float] = MappingProxyType({}),
    ) -> OfferRejection | None:
        refusing = budgets.refusing(after, before)
        if refusing is None:
            return None
        state, need = refusing
        if state.unread:
            return _unread(key, state)
        budget = {"budget": str(state.budget)}
        if state.over:
            last = budget | {"last": str(state.budget.until)}
            return OfferRejection(key, Reason.BUDGET_OVER, last)
        sums = budget | {"limit": format_money(state.limit), "need": format_money(need)}
        if need > state.limit:
            small = sums | {"parts": _made_up(after[-1], parts)}
            is_lease = "lease" in parts
            why = Reason.BUDGET_LEASE if is_lease else Reason.BUDGET_SMALL
            return OfferRejection(key, why, small)
        again = f"its next period begins on {moment(state.window.ends)}"
        facts = sums | {"left": format_money(state.left), "again": again}
        return OfferRejection(key, Reason.OVER_BUDGET, facts)


def _unread(key: str, state: BudgetState) -> OfferRejection:
    """Return the refusal of a budget of which a record cannot be read."""
    facts = {"budget": str(state.budget), "record": state.unread}
    return OfferRejection(key, Reason.BUDGET_UNREAD, facts)


def _life(candidate: ProviderOffer, demand: Demand) -> Life:
    """Return what is known of the life of a burst that is bought now."""
    run_times: tuple[float, ...] = ()
    if demand.isolated is not None:
        run_times = (demand.isolated.duration,) if demand.isolated.ends else ()
    elif demand.job is not None:
        run_times = (demand.duration,)
    return Life(
        provider=candidate.provider,
        lease_end=candidate.lease_end,
        run_times=run_times,
    )


_SET_BY = {
    "provision and join": "[providers.NAME] provision and [deadlines] join",
    **{key: f"[deadlines] {key}" for key in ("lease", "run", "idle", "reap")},
}
"""Which settings say how long each part of a life is (`life_parts`)."""


def _made_up(bought: Commitment, parts: Mapping[str, float]) -> str:
    """Return in words what a sum consists of, and what would make it less."""
    if not parts:
        return ""
    span = format_fsd(round(bought.until - bought.made))
    told = ", ".join(
        f"{name} {format_fsd(round(seconds))}"
        for name, seconds in parts.items()
        if seconds
    )
    longest = max(parts, key=lambda name: parts[name])
    word = "node" if bought.nodes == 1 else "nodes"
    what = _SET_BY.get(longest, longest)
    return f" for {bought.nodes} {word} over {span}: {told}; the longest part is {what}"


NO_PURCHASES = Purchases(Records(), Settings(), {}, lambda _: None, 0.0)
"""For plans without budgets."""
