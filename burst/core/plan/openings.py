# SPDX-License-Identifier: MIT
"""New bursts for a job: the first offer that may be had now, and the ranks it gets."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand
from burst.core.plan.eligible import nodes_wanted
from burst.core.plan.impossible import why_impossible
from burst.core.plan.judged_offers import JudgedOffers
from burst.core.plan.limits import NOT_JOINED, FurtherUse, Joined
from burst.core.plan.offers import ProviderOffer
from burst.core.plan.planned_bursts import DemandKey, Piece
from burst.core.plan.slot_ranks import RankNeed, SlotClass, by_need
from burst.core.plan.slots import NO_REASON
from burst.core.plan.sources import Portion, Source
from burst.model.decision import Decision, OfferRejection
from burst.model.jobid import format_f58
from burst.model.next_step import ends_by_waiting
from burst.model.ranks import format_idset
from burst.model.reason import Reason
from burst.model.request import ResourceRequest

_OF_NO_USE = (Reason.SHAPE_MISMATCH, Reason.NODE_SMALL, Reason.SLOTS_FEW)
"""Why a kind of slots never serves a job."""


class Opening(NamedTuple):
    """Bursts that may be made for a job."""

    candidate: ProviderOffer
    nodes: int
    """Number of nodes of all these bursts together."""
    pieces: list[Piece]
    """The ranks of each burst; empty for an isolated burst."""


class _Asks(NamedTuple):
    """A demand, with the facts that are the same for each offer."""

    demand: Demand
    admitted: frozenset[int] | None
    spread: bool
    """Whether the job may have several bursts."""
    beside: Joined
    """Other bursts that it joins."""


class Openings:
    """Finds new bursts for the jobs of one plan. Changes nothing."""

    def __init__(self, context: PlanContext) -> None:
        self._context = context
        self._offers = JudgedOffers(context.eligible)
        self._eligible = context.eligible
        self._keys: dict[tuple[object, ...], DemandKey] = {}

    def key(self, demand: Demand) -> DemandKey:
        """Return a key that demands share if the plan has the same answer for them.

        Where ranks are promised to others, the time limit of a demand matters, too.
        """
        content = (
            demand.request,
            demand.preferences,
            demand.userid,
            demand.rest,
            demand.isolated is not None,
            self._eligible.run_times.rank(demand),
            *self._context.usage.purchases.key(demand),
        )
        return self._keys.setdefault(content, len(self._keys))

    def wanted(self, demand: Demand) -> list[Source]:
        """Return the offers that can be taken now and that the job may have."""
        return [source for source, why in self._offers.judged(demand) if not why]

    def find(
        self,
        demand: Demand,
        beside: Joined = NOT_JOINED,
        rest: ResourceRequest | None = None,
    ) -> Opening | Decision:
        """Return new bursts for a demand, or why there can be none now.

        `beside` are other bursts that it joins, and `rest` is what it needs beside what
        it gets of them.
        """
        context, whole = self._context, demand
        if rest is not None:
            demand = msgspec.structs.replace(demand, rest=rest)
        refusals: list[OfferRejection] = []
        wanted = self._offers.wanted(demand.preferences)
        spread = context.possible.may_spread(demand)
        asks = _Asks(demand, context.admitted(demand), spread, beside)
        for source, rejection in self._offers.judged(demand):
            found = rejection or self._try(source, asks)
            if isinstance(found, Opening):
                return found
            refusals.append(found)
        if not context.table.kinds and not wanted.some_isolated:
            lead = context.eligible.isolated.identity
            return Decision(Reason.NO_SLOTS if lead.endpoint else Reason.NO_ADDRESS)
        refusals.extend(context.eligible.catalog.refusals)
        if not refusals:
            return Decision(Reason.NO_OFFERS)
        never = None
        if not wanted.some_isolated:
            # The nodes that it joins are in live bursts, and count as theirs.
            never = why_impossible(whole, wanted, context)
        reason, facts = never or (Reason.TURNED_DOWN, {})
        return Decision(reason, facts, tuple(refusals))

    def _try(self, source: Source, asks: _Asks) -> Opening | OfferRejection:
        """Return the bursts that a job may have of an offer, or why there are none.

        The offer itself was judged before; here only how much of it the job gets is.
        """
        candidate, demand = source.candidate, asks.demand
        assert candidate is not None
        until = self._context.until(candidate, demand)
        if source.isolated:
            return self._isolate(source, demand, until)
        table, want = self._context.table, RankNeed(until, asks.admitted)
        refused: list[OfferRejection] = []
        for slot_class in by_need(demand.lacks, table.classes(candidate.provider)):
            found = self._choose(source, asks, slot_class, want)
            if not isinstance(found, OfferRejection):
                nodes = sum(len(ranks) for _, ranks in found)
                return Opening(candidate, nodes, found)
            refused.append(found)
        if not refused:  # all slots are kept for other providers
            facts = {"most": 0, "need": demand.lacks.nodes or 1}
            return OfferRejection(source.key, Reason.SLOTS_FEW, facts)
        # A kind of slots that never serves it says nothing of one that is busy.
        return min(refused, key=_how_lasting)

    def _isolate(
        self, source: Source, demand: Demand, until: float
    ) -> Opening | OfferRejection:
        """Return an isolated burst for a job until `until`, or why there is none."""
        candidate = source.candidate
        assert candidate is not None
        nodes = nodes_wanted(demand, source, candidate.offer.shape)
        if isinstance(nodes, OfferRejection):
            return nodes
        use = FurtherUse.new(candidate.key, (nodes,), demand.userid, until)
        portion = Portion(use, (("", nodes),))
        why = self._eligible.why_not_so_much(source, portion, demand)
        return why or Opening(candidate, nodes, [])

    def _why_not(
        self, source: Source, asks: _Asks, pieces: list[Piece], want: RankNeed
    ) -> OfferRejection | None:
        """Return why a job may not have bursts on these ranks, None if it may."""
        demand = asks.demand
        parts = tuple((slot.slot.name, len(ranks)) for slot, ranks in pieces)
        sizes = tuple(nodes for _, nodes in parts)
        use = FurtherUse.new(source.key, sizes, demand.userid, want.until, asks.beside)
        return self._eligible.why_not_so_much(source, Portion(use, parts), demand)

    def _choose(
        self, source: Source, asks: _Asks, slot_class: SlotClass, want: RankNeed
    ) -> list[Piece] | OfferRejection:
        """Return free ranks of one kind of slots for a job, or why there are none.

        They are of the smallest slot that holds all nodes. If there is none, or the
        provider has no capacity for so large a burst, a job that may be spread gets
        ranks of several slots, largest first.
        """
        need = nodes_wanted(asks.demand, source, slot_class[0])
        if isinstance(need, OfferRejection):
            return need
        table, most = self._context.table, self._context.possible.most_of(source)
        if not table.has_free(slot_class):
            return self._too_few(source, asks, need, (slot_class, want))
        refused: OfferRejection | None = None
        if need <= most:
            for slot, ranks in table.fitting(slot_class, need, want):
                refused = self._why_not(source, asks, [(slot, ranks)], want)
                if refused is None:
                    return [(slot, ranks)]
                if refused.reason is not Reason.SPEC_REFUSED:
                    break  # the reason is the same in each slot
        lacks = (Reason.OFFER_COOLDOWN, Reason.ON_TRIAL)
        if asks.spread and (refused is None or refused.reason in lacks):
            assert source.candidate is not None
            size = self._eligible.failures.split_size(source.candidate, most)
            pieces = table.split(slot_class, need, size, want)
            if pieces:
                return self._why_not(source, asks, pieces, want) or pieces
            if size < most:
                share = Portion(pieces=(("", need),))
                refused = self._eligible.why_not_so_much(source, share, asks.demand)
        return refused or self._too_few(source, asks, need, (slot_class, want))

    def _too_few(
        self,
        source: Source,
        asks: _Asks,
        need: int,
        where: tuple[SlotClass, RankNeed],
    ) -> OfferRejection:
        """Return why a job cannot have `need` nodes in a kind of slots now."""
        table, key = self._context.table, source.key
        most = self._context.possible.most_of(source)
        ever = table.capacity(where[0], asks.admitted, most, spread=asks.spread)
        if ever < need:
            return self._never_enough(source, asks, need, ever)
        if drained := self._why_drained(key, asks, need, where):
            return drained
        free = table.largest(*where)
        bounded = free or self._context.usage.bounded  # most waits are for ranks alone
        if bounded and (refused := self._too_much(source, asks, need, where[1])):
            return refused
        if free:
            facts: dict[str, object] = {"most": free, "need": need}
            return OfferRejection(key, Reason.SLOTS_SMALL, facts)
        ahead = table.first_promised()
        if ahead is None:
            return OfferRejection(key, Reason.SLOTS_BUSY)
        return OfferRejection(key, Reason.SLOTS_RESERVED, {"job": format_f58(ahead)})

    def _never_enough(
        self, source: Source, asks: _Asks, need: int, ever: int
    ) -> OfferRejection:
        """Return why a job never has more than `ever` nodes in a kind of slots."""
        context = self._context
        most, limit = context.possible.most_of(source), context.usage.largest_burst
        facts: dict[str, object] = {"most": most, "need": need}
        if need > most == limit:
            facts = {"limit": most, "need": need}
            return OfferRejection(source.key, Reason.LIMIT_BURST, facts)
        if need > most and not asks.spread:
            return OfferRejection(source.key, Reason.FEW_NODES, facts)
        return OfferRejection(source.key, Reason.SLOTS_FEW, {**facts, "most": ever})

    def _too_much(
        self, source: Source, asks: _Asks, need: int, want: RankNeed
    ) -> OfferRejection | None:
        """Return why a job may not have so many nodes, whatever slots come free."""
        most, demand = self._context.possible.most_of(source), asks.demand
        sizes = tuple(min(most, need - begin) for begin in range(0, need, most))
        use = FurtherUse.new(source.key, sizes, demand.userid, want.until, asks.beside)
        # No slot is chosen: failures count by the offer alone.
        share = Portion(use, tuple(("", size) for size in sizes))
        return self._eligible.why_not_so_much(source, share, demand)

    def _why_drained(
        self, offer: str, asks: _Asks, need: int, where: tuple[SlotClass, RankNeed]
    ) -> OfferRejection | None:
        """Return that the job lacks ranks that a person has drained; None if not."""
        drained = self._context.table.drained_for(*where, need, spread=asks.spread)
        if not drained:
            return None
        why = "; ".join(dict.fromkeys(each or NO_REASON for each in drained.values()))
        facts = {"ranks": format_idset(drained), "why": why}
        return OfferRejection(offer, Reason.SLOTS_DRAINED, facts)


def _how_lasting(refusal: OfferRejection) -> tuple[bool, bool]:
    """Sort key: what ends by waiting comes first, slots of no use come last."""
    reason = refusal.reason
    return reason in _OF_NO_USE, not ends_by_waiting(reason)
