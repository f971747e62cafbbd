# SPDX-License-Identifier: MIT
"""Tells why nothing could ever serve a job, even after all other jobs have ended.

Live bursts count with the nodes that they have, even if the settings or a provider no
longer allow such a burst to be made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand
from burst.core.plan.fit import describe_need, nodes_needed
from burst.core.plan.slot_ranks import SlotClass
from burst.core.plan.sources import LiveBurst
from burst.model.reason import Reason
from burst.model.shape import Shape


def why_impossible(
    demand: Demand, context: PlanContext
) -> tuple[Reason, dict[str, object]] | None:
    """Return why nothing could ever serve a demand, None if something could."""
    lent = _lent(demand, context)
    if _suffice(demand, lent, context):
        return None
    needs = {
        kind: need
        for kind in context.table.kinds
        if (need := nodes_needed(demand.request, kind[0]))
    }
    limit = context.usage.why_never(min(needs.values(), default=0), demand.userid)
    if limit:
        return Reason.OVER_LIMIT, limit
    if any(map(demand.preferences.takes, context.catalog.unknown)):
        # Further offers may show that the job can be served; a failed job is lost.
        return None
    too_long = context.run_times.why_never(demand)
    if too_long:
        return Reason.TOO_LONG, too_long
    return _too_large(demand, needs, lent, context)


def _lent(demand: Demand, context: PlanContext) -> list[tuple[LiveBurst, int]]:
    """Return the live bursts that a job may have once others have left them, and how
    many of the nodes of each by its constraint.
    """
    if demand.job is None:
        return []
    lent = [
        live
        for live in context.live
        if demand.job not in live.jobs
        and nodes_needed(demand.lacks, live.pool.shape)
        and not context.why_not(demand, live.source)
    ]
    admitted = context.admitted(demand)
    if admitted is None:
        return [(live, len(live.pool.whole)) for live in lent]
    return [(live, len(live.pool.whole.keys() & admitted)) for live in lent]


def _suffice(
    demand: Demand, lent: Sequence[tuple[LiveBurst, int]], context: PlanContext
) -> bool:
    """Tell whether a job could have all its nodes from these bursts."""
    sizes: dict[Shape, list[int]] = {}
    for live, nodes in lent:
        sizes.setdefault(live.pool.shape, []).append(nodes)
    together = sum if context.may_spread(demand) else max
    return any(
        together(its) >= nodes_needed(demand.lacks, shape)
        for shape, its in sizes.items()
    )


def _too_large(
    demand: Demand,
    needs: Mapping[SlotClass, int],
    lent: Sequence[tuple[LiveBurst, int]],
    context: PlanContext,
) -> tuple[Reason, dict[str, object]] | None:
    """Return why slots, offers and live bursts have not enough nodes together.

    `needs` are the nodes that the job needs in each kind of slots, with those that it
    has. None also if it may have no offer at all: then size is not the reason.
    """
    catalog, takes = context.catalog, demand.preferences.takes
    largest = {name: n for name, n in catalog.most_nodes.items() if takes(name)}
    if not largest:
        return None
    facts: dict[str, object] = {"want": describe_need(demand.request)}
    if not needs:
        return Reason.NEVER_FITS, facts
    spread = context.may_spread(demand)
    caps, totals = dict(largest), Counter[str]()
    for live, nodes in lent:
        provider = live.source.provider
        caps[provider] = max(caps.get(provider, 0), nodes)
        totals[live.source.key] += nodes
    most = _most_by_kind(demand, needs, caps, context)
    lacks = {kind: nodes_needed(demand.lacks, kind[0]) for kind in needs}
    small = all(most[kind] < need for kind, need in lacks.items())
    if small and not context.table.has_any(context.admitted(demand)):
        return Reason.EXCLUDED, facts
    further = min(lacks.values())
    offers = [each for each in catalog.known if each.provider in largest]
    if spread and all(each.offer.total for each in offers):
        for each in offers:
            totals[each.key] = max(totals[each.key], each.offer.total)
        if totals.total() < further:
            facts = {"need": min(needs.values()), "most": totals.total()}
            return Reason.TOO_LARGE, facts
    if not small:
        return None
    # A lead can get further rank slots, a provider no further nodes. A spread job has
    # one burst in each, so none of its bursts needs to have all its nodes.
    waits = spread or max(largest.values()) >= further
    facts |= {"need": max(needs.values()), "most": max(most.values())}
    return Reason.NO_ROOM if waits else Reason.TOO_LARGE, facts


def _most_by_kind(
    demand: Demand,
    kinds: Iterable[SlotClass],
    caps: Mapping[str, int],
    context: PlanContext,
) -> dict[SlotClass, int]:
    """Return the most nodes that a job could have in each of these kinds of slots.

    `caps` are the most that one burst of each provider may have.
    """
    admitted, spread = context.admitted(demand), context.may_spread(demand)
    most: dict[SlotClass, int] = {}
    for kind in kinds:
        allowed = [caps[name] for name in kind[1] or caps if name in caps]
        cap = max(allowed, default=0)
        most[kind] = context.table.capacity(kind, admitted, cap, spread=spread)
    return most
