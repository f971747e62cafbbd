# SPDX-License-Identifier: MIT
"""Tells why nothing could ever serve a job, even after all other jobs have ended.

Live bursts count with the nodes that they have, even if the settings or a provider no
longer allow such a burst to be made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand
from burst.core.plan.fit import nodes_needed
from burst.core.plan.judged_offers import WantedOffers
from burst.core.plan.lenders import LiveBurst
from burst.model.reason import Reason
from burst.model.shape import Shape


def why_impossible(
    demand: Demand, wanted: WantedOffers, context: PlanContext
) -> tuple[Reason, dict[str, object]] | None:
    """Return why nothing could ever serve a demand, None if something could."""
    live = _live(demand, context)
    if _suffice(demand, live, context):
        return None
    least = context.slots.least_nodes(demand.request)
    limit = context.usage.why_never(least, demand.userid)
    if limit:
        return Reason.OVER_LIMIT, limit
    if wanted.unread:
        # A further answer may show that the job can be served; a failed job is lost.
        return None
    too_long = context.eligible.run_times.why_never(demand)
    if too_long:
        return Reason.TOO_LONG, too_long
    if not wanted.most_nodes:
        return None
    return _too_large(demand, wanted, live, context)


def _live(demand: Demand, context: PlanContext) -> Sequence[LiveBurst]:
    """Return the live bursts that a job may have once others have left them."""
    if demand.job is None:
        return ()
    return [
        live
        for live in context.live
        if demand.job not in live.jobs
        and nodes_needed(demand.request, live.pool.shape)
        and not context.eligible.why_not(demand, live.source)
    ]


def _suffice(demand: Demand, bursts: Sequence[LiveBurst], context: PlanContext) -> bool:
    """Tell whether a job could have all its nodes from these bursts."""
    sizes: dict[Shape, list[int]] = {}
    for live in bursts:
        sizes.setdefault(live.pool.shape, []).append(_size(demand, live, context))
    together = sum if context.may_spread(demand) else max
    return any(
        together(its) >= nodes_needed(demand.request, shape) - demand.coming
        for shape, its in sizes.items()
    )


def _size(demand: Demand, live: LiveBurst, context: PlanContext) -> int:
    """Return how many nodes of a burst a job may have by its constraint."""
    admitted, ranks = context.admitted(demand), live.pool.whole.keys()
    return len(ranks if admitted is None else ranks & admitted)


def _too_large(
    demand: Demand,
    wanted: WantedOffers,
    bursts: Sequence[LiveBurst],
    context: PlanContext,
) -> tuple[Reason, dict[str, object]] | None:
    """Return why slots, offers and live bursts have not enough nodes together."""
    caps, lent = dict(wanted.most_nodes), Counter[str]()
    for live in bursts:
        provider, nodes = live.source.provider, _size(demand, live, context)
        caps[provider] = max(caps.get(provider, 0), nodes)
        lent[live.source.key] += nodes
    spread = context.may_spread(demand)
    never = context.slots.why_never(demand.request, caps, spread)
    if never is not None and never[0] is not Reason.TOO_LARGE:
        return never
    in_all = sum(
        max(wanted.totals.get(key, 0), lent[key])
        for key in wanted.totals.keys() | lent.keys()
    )
    least = context.slots.least_nodes(demand.request)
    if spread and in_all < least - demand.coming:
        return Reason.TOO_LARGE, {"need": least, "most": int(in_all)}
    if never is not None and (spread or max(wanted.most_nodes.values()) >= least):
        # A lead can get further rank slots, a provider no further nodes. A spread job
        # has one burst in each, so none of its bursts needs to have all its nodes.
        return Reason.NO_ROOM, never[1]
    return never
