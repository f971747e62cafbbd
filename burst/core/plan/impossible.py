# SPDX-License-Identifier: MIT
"""Why nothing could ever serve a job, whatever ends and whoever gives nodes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand
from burst.core.plan.eligible import Eligibility
from burst.core.plan.fit import nodes_needed
from burst.core.plan.lenders import LiveBurst
from burst.core.plan.offer_sorter import WantedOffers
from burst.model.reason import Reason
from burst.model.shape import Shape


class Impossible:
    """Tells which jobs of one plan are impossible.

    Live bursts have what they have, though the settings or a provider may say since
    that no such burst can be made any more.
    """

    def __init__(self, context: PlanContext, eligible: Eligibility) -> None:
        self._context = context
        self._eligible = eligible

    def why(
        self, demand: Demand, wanted: WantedOffers
    ) -> tuple[Reason, dict[str, object]] | None:
        """Return why nothing could ever serve a demand, None if something could."""
        context, live = self._context, self._live(demand)
        if self._suffice(demand, live):
            return None
        least = context.slots.least_nodes(demand.request)
        limit = context.usage.why_never(least, demand.userid)
        if limit:
            return Reason.OVER_LIMIT, limit
        if wanted.unread:
            # A job that is failed for what one more answer would show is lost.
            return None
        too_long = self._eligible.run_times.why_never(demand)
        if too_long:
            return Reason.TOO_LONG, too_long
        if not wanted.most_nodes:
            return None
        return self._too_large(demand, wanted, least, live)

    def _live(self, demand: Demand) -> Sequence[LiveBurst]:
        """Return the live bursts that a job may have once others have left them."""
        if demand.job is None:
            return ()
        return [
            live
            for live in self._context.live
            if demand.job not in live.jobs
            and nodes_needed(demand.request, live.pool.shape)
            and not self._eligible.why_not(demand, live.source)
        ]

    def _suffice(self, demand: Demand, bursts: Sequence[LiveBurst]) -> bool:
        """Tell whether a job could have all its nodes of these bursts."""
        sizes: dict[Shape, list[int]] = {}
        for live in bursts:
            sizes.setdefault(live.pool.shape, []).append(self._size(demand, live))
        together = sum if self._context.may_spread(demand) else max
        return any(
            together(its) >= nodes_needed(demand.request, shape) - demand.coming
            for shape, its in sizes.items()
        )

    def _size(self, demand: Demand, live: LiveBurst) -> int:
        """Return how many nodes of a burst a job may have by its constraint."""
        admitted = self._context.admitted(demand)
        ranks = live.pool.whole.keys()
        return len(ranks if admitted is None else ranks & admitted)

    def _too_large(
        self,
        demand: Demand,
        wanted: WantedOffers,
        least: int,
        bursts: Sequence[LiveBurst],
    ) -> tuple[Reason, dict[str, object]] | None:
        """Return why rank slots, offers and live bursts have not enough nodes together.

        `least` is how many of some slot would do.
        """
        caps, lent = dict(wanted.most_nodes), Counter[str]()
        for live in bursts:
            provider, nodes = live.source.terms.provider, self._size(demand, live)
            caps[provider] = max(caps.get(provider, 0), nodes)
            lent[live.source.key] += nodes
        spread = self._context.may_spread(demand)
        never = self._context.slots.why_never(demand.request, caps, spread)
        if never is not None and never[0] is not Reason.TOO_LARGE:
            return never
        in_all = sum(
            max(wanted.totals.get(key, 0), lent[key])
            for key in wanted.totals.keys() | lent.keys()
        )
        if spread and in_all < least - demand.coming:
            return Reason.TOO_LARGE, {"need": least, "most": int(in_all)}
        if never is not None and max(wanted.most_nodes.values()) >= least:
            # A lead can get further rank slots, a provider no further nodes.
            return Reason.NO_ROOM, never[1]
        return never
