# SPDX-License-Identifier: MIT
"""The budgets of a replay: what is settled, and what may still be bought.

Days, weeks and months are those of the trace. Times are seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from burst.config import Settings
from burst.core.plan.purchases import NO_PURCHASES, Purchases
from burst.core.records import Records
from burst.core.worth.ledger import Payer, SettledBurst
from burst.core.worth.periods import Period, day_of, groups_of
from burst.model.jobid import JobId
from burst_replay.bought_burst import BoughtBurst

# No period of a budget is longer than a month; a burst counts in the one in which it
# was made.
_KEPT_S = 100 * 86400.0


class Spending:
    """The money that one replay has spent."""

    def __init__(
        self,
        settings: Settings,
        userids: Mapping[str, int],
        payer: Callable[[JobId], Payer],
    ) -> None:
        """`userids` is as in `World`, `payer` as in `Purchases`."""
        self._settings = settings
        self._userids, self._payer = userids, payer
        self._periods: dict[str, Period] = {}

    def purchases(self, bought: Collection[BoughtBurst], now: float) -> Purchases:
        """Return what may be bought at a time; `bought` are not settled yet."""
        if not self._settings.budget:
            return NO_PURCHASES
        bursts = {each.burst.id: each.burst for each in bought}
        entries = {each.burst.id: each.entry for each in bought}
        records = Records(bursts=bursts, entries=entries, periods=self._periods)
        return Purchases(records, self._settings, self._userids, self._payer, now)

    def settle(self, settled: SettledBurst) -> None:
        """Add the cost of a settled burst."""
        if not self._settings.budget:
            return
        day = day_of(settled.made)
        known = self._periods.get(day, Period())
        self._periods[day] = known.plus(groups_of(settled), 1)
        oldest = day_of(max(0.0, settled.ended - _KEPT_S))
        self._periods = {key: its for key, its in self._periods.items() if key > oldest}
