# SPDX-License-Identifier: MIT
"""The budgets of a settings file in a replay: what is reserved, settled and refused.

Reckoned by the daemon's own ledger and budgets (`burst.core.worth`). Times that go in
are those of the trace; the days, weeks and months of budgets are those of its start.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

import msgspec

from burst.config import Settings
from burst.core.plan.offers import ProviderOffer
from burst.core.worth.budget import (
    Accounts,
    Budgets,
    Commitment,
    commitment_of,
)
from burst.core.worth.ledger import Entry, NodeSeconds, Payer, Share, settle
from burst.core.worth.life import Life, lives_until
from burst.core.worth.money import Money, from_price
from burst.core.worth.periods import Period, day_of, groups_of
from burst.model.burst import BurstId
from burst.replay.bought_nodes import NodeHours
from burst.replay.trace import TraceJob

# No window of a budget is longer than a month; a burst counts in that of its making.
_KEPT_S = 100 * 86400.0


class BurstPlan(msgspec.Struct, frozen=True):
    """A burst that is about to be made."""

    nodes: int
    price: float | None
    """Of a node and hour, with its part of the burst's fee; None for the one price that
    all have."""
    boot: float
    """Seconds until it is online."""
    lasts: float
    """How many seconds it is paid for at most, as the replay makes it."""
    sold: ProviderOffer | None = None
    """None where no offer is known."""


class Spending:
    """The money of one replay."""

    def __init__(
        self,
        settings: Settings,
        userids: Mapping[str, int],
        started: float,
        price: float,
    ) -> None:
        """`userids` as `World.userids`; `started`: seconds since the epoch; `price`: of
        a node and hour, where there is but one.
        """
        self._settings = settings
        self._userids = userids
        self._started = started
        self._price = price
        self._entries: dict[BurstId, Entry] = {}
        self._periods: dict[str, Period] = {}
        self._used: defaultdict[BurstId, dict[Payer, float]] = defaultdict(dict)
        self._known: tuple[float, Budgets] | None = None

    def may_make(self, job: TraceJob, plan: BurstPlan, now: float) -> float | None:
        """Return None if there is money for this burst.

        Else when there may be anew, as the next day, week or month of the budget that
        lacks it begins; math.inf if that does not help.
        """
        bought = self._commitment(job, plan, now)
        refusing = self._budgets(now).refusing([bought])
        if refusing is None:
            return None
        state, need = refusing
        never = state.over or need > state.limit
        return math.inf if never else state.window.ends - self._started

    def make(self, number: int, job: TraceJob, plan: BurstPlan, now: float) -> None:
        """Reserve for a burst."""
        bought = self._commitment(job, plan, now)
        name = _name(number)
        self._entries[name] = Entry(
            burst=name,
            provider=bought.provider,
            offer=plan.sold.offer.name if plan.sold else "",
            nodes=plan.nodes,
            price=bought.price,
            made=bought.made,
            reserved=bought.amount,
            shares=(Share(_payer(job)),),
            until=bought.until,
            at=bought.made,
        )
        self._known = None

    def may_use(self, number: int, job: TraceJob, lasts: float, now: float) -> bool:
        """Tell whether a burst may be kept for a job, paid for `lasts` s from now."""
        before, after = self._longer(number, job, lasts, now)
        return self._budgets(now).refusing([after], before) is None

    def use(self, number: int, job: TraceJob, lasts: float, now: float) -> None:
        """Reserve for a further job on a burst."""
        _, after = self._longer(number, job, lasts, now)
        name = _name(number)
        entry = self._entries[name]
        shares = {*entry.shares, Share(_payer(job))}
        self._entries[name] = msgspec.structs.replace(
            entry,
            until=after.until,
            reserved=Money(max(entry.reserved, after.amount)),
            shares=tuple(sorted(shares, key=repr)),
        )
        self._known = None

    def work(self, number: int, job: TraceJob, node_seconds: float) -> None:
        """Count what a job used of a burst."""
        used, payer = self._used[_name(number)], _payer(job)
        used[payer] = used.get(payer, 0.0) + node_seconds

    def settle(self, number: int, paid: NodeHours, now: float) -> None:
        """Settle a burst that is gone; `paid` is in node-seconds."""
        name = _name(number)
        entry, used = self._entries.pop(name), self._used.pop(name, {})
        shares = tuple(
            msgspec.structs.replace(share, node_seconds=used.get(share.payer, 0.0))
            for share in entry.shares
        )
        spent = NodeSeconds(paid.work, paid.idle, paid.boot, paid.teardown)
        at = self._started + now
        entry = msgspec.structs.replace(
            entry, shares=shares, spent=spent, joined=True, at=at
        )
        day = day_of(entry.made)
        known = self._periods.get(day, Period())
        self._periods[day] = known.plus(groups_of(settle(entry, at)), 1)
        oldest = day_of(max(0.0, at - _KEPT_S))
        self._periods = {key: its for key, its in self._periods.items() if key > oldest}
        self._known = None

    def _budgets(self, now: float) -> Budgets:
        if self._known is None or self._known[0] != now:
            accounts = Accounts(self._entries, self._periods, {}, self._userids)
            budgets = Budgets(self._settings.budget, accounts, self._started + now)
            self._known = now, budgets
        return self._known[1]

    def _commitment(self, job: TraceJob, plan: BurstPlan, now: float) -> Commitment:
        at, sold = self._started + now, plan.sold
        # The offers were read as of time 0: the end of a lease is its length.
        length = sold.lease_end if sold else 0.0
        life = Life(
            provider=sold.provider if sold else "",
            lease_end=at + length if length else 0.0,
            run_times=(job.limit,),
        )
        return Commitment(
            provider=life.provider,
            price=from_price(self._price if plan.price is None else plan.price),
            nodes=plan.nodes,
            made=at,
            until=max(lives_until(life, self._settings, at), at + plan.lasts),
            payers=frozenset({_payer(job)}),
        )

    def _longer(
        self, number: int, job: TraceJob, lasts: float, now: float
    ) -> tuple[Commitment, Commitment]:
        """Return what is reserved for a burst, and what would be with a job."""
        before, at = commitment_of(self._entries[_name(number)]), self._started + now
        life = Life(
            provider=before.provider,
            lease_end=0.0,
            run_times=(job.limit,),
            online=True,
        )
        until = max(before.until, lives_until(life, self._settings, at), at + lasts)
        payers = before.payers | {_payer(job)}
        return before, msgspec.structs.replace(before, until=until, payers=payers)


def _name(number: int) -> BurstId:
    return BurstId(f"burst-{number}")


def _payer(job: TraceJob) -> Payer:
    return Payer(userid=job.userid, bank=job.bank, queue=job.queue)
