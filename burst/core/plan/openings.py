# SPDX-License-Identifier: MIT
"""New bursts for a job: the first offer that may be had now, and the ranks it gets."""

from __future__ import annotations

from typing import NamedTuple

from burst.core.isolated.placement import IsolatedPlacement
from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand
from burst.core.plan.eligible import OfferSorter, WantedOffer
from burst.core.plan.fit import describe_need, nodes_needed
from burst.core.plan.limits import FurtherUse
from burst.core.plan.offers import ProviderOffer
from burst.core.plan.planned_bursts import DemandKey, Piece
from burst.core.plan.run_time import RunTimes
from burst.core.plan.slot_ranks import RankNeed, SlotClass
from burst.core.plan.slots import NO_REASON
from burst.core.plan.trials import PlanTrials
from burst.model.decision import Decision, OfferRejection
from burst.model.jobid import format_f58
from burst.model.ranks import format_idset
from burst.model.reason import Reason


class Opening(NamedTuple):
    """Bursts that may be made for a job."""

    candidate: ProviderOffer
    pieces: list[Piece]
    """The ranks of each; none of an isolated burst, which is placed already."""


class _Asks(NamedTuple):
    """A demand, with what is the same for each offer."""

    demand: Demand
    needed: float
    """For how many seconds a burst has to last."""
    admitted: frozenset[int] | None
    extra: int


class Openings:
    """Finds them for the jobs of one plan. Takes no ranks."""

    def __init__(
        self,
        context: PlanContext,
        isolated: IsolatedPlacement,
        sorter: OfferSorter,
        trials: PlanTrials,
        run_times: RunTimes,
    ) -> None:
        self._context = context
        self._isolated = isolated
        self._sorter = sorter
        self._trials = trials
        self._run_times = run_times

    def key(self, demand: Demand) -> DemandKey:
        """Return what demands have in common for which the plan has the same answer.

        But for their time limits, where ranks are promised to others.
        """
        return (
            demand.request,
            demand.preferences,
            demand.userid,
            demand.coming,
            demand.isolated is not None,
            self._run_times.rank(demand),
            *self._context.usage.purchases.key(demand),
        )

    def wanted(self, demand: Demand) -> tuple[WantedOffer, ...]:
        """Return the offers that can be taken now, as the job's user sees them."""
        return self._sorter.wanted(demand.preferences).offers

    def may_spread(self, demand: Demand) -> bool:
        """Tell whether the job may have several bursts."""
        return self._context.settings.spread and demand.preferences.where != "together"

    def find(self, demand: Demand, extra: int = 0) -> Opening | Decision:
        """Return new bursts for a demand, or why there can be none now.

        `extra` is how many further nodes count against its user with them.
        """
        refusals: list[OfferRejection] = []
        wanted = self._sorter.wanted(demand.preferences)
        asks = _Asks(
            demand,
            self._run_times.needed(demand),
            self._context.admitted(demand),
            extra,
        )
        for offer in wanted.offers:
            found = offer.unwanted or self._try(offer, asks)
            if not isinstance(found, OfferRejection):
                return Opening(offer.candidate, found)
            refusals.append(found)
        if not self._context.slots and not wanted.some_isolated:
            return Decision(Reason.NO_SLOTS)
        refusals.extend(self._context.catalog.refusals)
        if not refusals:
            return Decision(Reason.NO_OFFERS)
        never = None if wanted.some_isolated else self._never(demand)
        reason, facts = never or (Reason.TURNED_DOWN, {})
        return Decision(reason, facts, tuple(refusals))

    def _never(self, demand: Demand) -> tuple[Reason, dict[str, object]] | None:
        """Return why nothing could ever serve a demand, None if something could."""
        context, wanted = self._context, self._sorter.wanted(demand.preferences)
        least = context.slots.least_nodes(demand.request)
        limit = context.usage.why_never(least, demand.userid)
        if limit:
            return Reason.OVER_LIMIT, limit
        if wanted.unread:
            # A job that is failed for what one more answer would show is lost.
            return None
        too_long = self._run_times.why_never(demand)
        if too_long:
            return Reason.TOO_LONG, too_long
        caps = wanted.most_nodes
        spread = self.may_spread(demand)
        never = context.slots.why_never(demand.request, caps, spread)
        if not caps or not never:
            return None
        if never[0] is Reason.TOO_LARGE and max(caps.values()) >= least:
            # A lead can get further rank slots, a provider no further nodes.
            return Reason.NO_ROOM, never[1]
        return never

    def _try(self, wanted: WantedOffer, asks: _Asks) -> list[Piece] | OfferRejection:
        """Return what a job may have of an offer that it wants; or why it may not."""
        candidate, demand = wanted.candidate, asks.demand
        refused = self._trials.why_tried(candidate)
        if refused is None and candidate.run_time < asks.needed:
            refused = self._run_times.why_too_short(candidate, demand)
        if refused:
            return refused
        context, refusal = self._context, None
        until = demand.end(context.now + candidate.offer.join_time)
        if wanted.isolated:
            taken = self._isolated.take(candidate, demand, self._trials, until)
            return taken or []
        want = RankNeed(until, asks.admitted)
        for slot_class in context.table.free_classes(candidate.provider, until):
            pieces = self._choose(candidate, demand, slot_class, want)
            if isinstance(pieces, OfferRejection):
                refusal = pieces
                continue
            refusal = self._too_much(candidate, demand, pieces, until, asks.extra)
            if refusal is None:
                return pieces
        return refusal or self._busy_or_promised(candidate, demand, want)

    def _too_much(
        self,
        candidate: ProviderOffer,
        demand: Demand,
        pieces: list[Piece],
        until: float,
        extra: int,
    ) -> OfferRejection | None:
        usage = self._context.usage
        sizes = tuple(len(ranks) for _, ranks in pieces)
        asked = FurtherUse.new(candidate.key, sizes, demand.userid, until, extra)
        return usage.why_not(asked) or usage.purchases.refuse(
            candidate, demand, sum(sizes)
        )

    def _choose(
        self,
        candidate: ProviderOffer,
        demand: Demand,
        slot_class: SlotClass,
        want: RankNeed,
    ) -> list[Piece] | OfferRejection:
        """Return free ranks of one kind of slots for a job; or why there are none.

        Of the smallest slot that holds all nodes; of several, largest first, where the
        job may be spread and there is none, or the provider has no capacity for so
        large a burst.
        """
        need = _nodes_needed(candidate, demand, slot_class)
        if isinstance(need, OfferRejection):
            return need
        table, trials = self._context.table, self._trials
        most = int(min(candidate.offer.max_nodes, self._context.usage.largest_burst))
        refused: OfferRejection | None = None
        if need <= most:
            for slot, ranks in table.fitting(slot_class, need, want):
                refused = trials.why_refused(candidate, slot.slot.name, need)
                if refused is None:
                    return [(slot, ranks)]
        lacks = (Reason.OFFER_COOLDOWN, Reason.ON_TRIAL)
        if self.may_spread(demand) and (refused is None or refused.reason in lacks):
            size = trials.split_size(candidate, most)
            pieces = table.split(slot_class, need, size, want)
            if pieces:
                each = (
                    trials.why_refused(candidate, slot.slot.name, len(ranks))
                    for slot, ranks in pieces
                )
                return next(filter(None, each), pieces)
            if size < most:
                refused = trials.why_refused(candidate, "", need)
        return refused or self._too_few(candidate, demand, need, (slot_class, want))

    def _too_few(
        self,
        candidate: ProviderOffer,
        demand: Demand,
        need: int,
        where: tuple[SlotClass, RankNeed],
    ) -> OfferRejection:
        """Return what keeps a job from so many nodes of an offer."""
        most, limit = candidate.offer.max_nodes, self._context.usage.largest_burst
        if need > most and not self.may_spread(demand):
            facts: dict[str, object] = {"most": most, "need": need}
            return OfferRejection(candidate.key, Reason.FEW_NODES, facts)
        if need > limit and limit < most:
            facts = {"limit": limit, "need": need}
            return OfferRejection(candidate.key, Reason.LIMIT_BURST, facts)
        if drained := self._why_drained(candidate.key, demand, need, where):
            return drained
        facts = {"most": self._context.table.largest(*where), "need": need}
        return OfferRejection(candidate.key, Reason.SLOTS_SMALL, facts)

    def _busy_or_promised(
        self, candidate: ProviderOffer, demand: Demand, want: RankNeed
    ) -> OfferRejection:
        """Return why no rank of any slot is to be had."""
        table, key = self._context.table, candidate.key
        for slot_class in table.classes(candidate.provider):
            need = _nodes_needed(candidate, demand, slot_class)
            where = (slot_class, want)
            if not isinstance(need, OfferRejection):
                drained = self._why_drained(key, demand, need, where)
                if drained is not None:
                    return drained
        ahead = table.first_promised()
        if ahead is None:
            return OfferRejection(key, Reason.SLOTS_BUSY)
        facts = {"job": format_f58(ahead)}
        return OfferRejection(key, Reason.SLOTS_RESERVED, facts)

    def _why_drained(
        self, offer: str, demand: Demand, need: int, where: tuple[SlotClass, RankNeed]
    ) -> OfferRejection | None:
        """Return that the job lacks ranks which a person has drained, if so."""
        drained = self._context.table.drained_for(
            *where, need, spread=self.may_spread(demand)
        )
        if not drained:
            return None
        why = "; ".join(dict.fromkeys(each or NO_REASON for each in drained.values()))
        facts = {"ranks": format_idset(drained), "why": why}
        return OfferRejection(offer, Reason.SLOTS_DRAINED, facts)


def _nodes_needed(
    candidate: ProviderOffer, demand: Demand, slot_class: SlotClass
) -> int | OfferRejection:
    """Return how many nodes of such slots the job still needs, or why none do."""
    shape, offer = slot_class[0], candidate.offer
    if not offer.shape.holds(shape):
        facts = {"has": str(offer.shape), "want": str(shape)}
        return OfferRejection(candidate.key, Reason.SHAPE_MISMATCH, facts)
    need = nodes_needed(demand.request, shape)
    if not need:
        facts = {"has": str(shape), "want": describe_need(demand.request)}
        return OfferRejection(candidate.key, Reason.NODE_SMALL, facts)
    return need - demand.coming
