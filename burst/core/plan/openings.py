# SPDX-License-Identifier: MIT
"""New bursts for a job: the first offer that may be had now, and the ranks it gets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import msgspec

from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand
from burst.core.plan.impossible import why_impossible
from burst.core.plan.leasable import UNSCHEDULED
from burst.core.plan.limits import FurtherUse
from burst.core.plan.offers import ProviderOffer
from burst.core.plan.planned_bursts import DemandKey, Piece
from burst.core.plan.slot_ranks import RankNeed, SlotClass
from burst.core.plan.slots import NO_REASON
from burst.core.plan.sources import Portion, Source, offered, reject
from burst.model.decision import Decision, OfferRejection
from burst.model.jobid import format_f58
from burst.model.next_step import ends_by_waiting
from burst.model.ranks import format_idset
from burst.model.reason import Reason
from burst.model.request import BurstPreferences, ResourceRequest

_OF_NO_USE = (Reason.SHAPE_MISMATCH, Reason.NODE_SMALL, Reason.SLOTS_FEW)
"""Why a kind of slots never serves a job."""


class Opening(NamedTuple):
    """Bursts that may be made for a job."""

    candidate: ProviderOffer
    nodes: int
    """Number of nodes of all these bursts together."""
    pieces: list[Piece]
    """The ranks of each burst; empty for an isolated burst."""


class _Judged(NamedTuple):
    """An offer that can be taken now, and whether a job may have it."""

    source: Source
    why_not: OfferRejection | None
    """None if it may. It does not depend on how many nodes of what shape it needs."""
    alike: str
    """The key of the first offer that would give a job the same ranks or reason."""


class _Asked(NamedTuple):
    """What is asked of one offer."""

    source: Source
    demand: Demand
    want: RankNeed
    spread: bool
    """Whether the job may have several bursts."""
    beside: FurtherUse | None
    """The use of other bursts that it joins; None if it joins none."""


class Openings:
    """Finds new bursts for the jobs of one plan. Changes nothing.

    It remembers results: most jobs want the same.
    """

    def __init__(self, context: PlanContext) -> None:
        self._context = context
        self._offered = cache(self._offers_for)
        self._may_be_isolated = cache(self._has_isolated)
        self._judged: dict[object, Sequence[_Judged]] = {}
        self._alike: dict[tuple[object, ...], str] = {}
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
            self._context.run_times.rank(demand),
            *self._context.usage.purchases.key(demand),
        )
        return self._keys.setdefault(content, len(self._keys))

    def wanted(self, demand: Demand) -> list[Source]:
        """Return the offers that can be taken now and that the job may have.

        Of those that would give it the same there is only the first.
        """
        found: dict[str, Source] = {}
        for each in self._judge(demand):
            if each.why_not is None:
                found.setdefault(each.alike, each.source)
        return list(found.values())

    def _offers_for(self, preferences: BurstPreferences) -> Sequence[Source]:
        return [offered(each, preferences) for each in self._context.catalog.offers]

    def _has_isolated(self, preferences: BurstPreferences) -> bool:
        """Tell whether some offer, taken now or later, would be an isolated burst."""
        known = self._context.catalog.known
        return any(offered(each, preferences).isolated for each in known)

    def _judge(self, demand: Demand) -> Sequence[_Judged]:
        """Return the offers that can be taken now, judged for a job."""
        context = self._context
        key = (
            demand.preferences,
            context.run_times.rank(demand),
            demand.job is None,
            demand.isolated is None,
            demand.rest is None,
            demand.userid,
            context.catalog.failures.begun,
        )
        found = self._judged.get(key)
        if found is None:
            offers = self._offered(demand.preferences)
            found = self._judged[key] = [
                _Judged(each, context.why_not(demand, each), self._first_alike(each))
                for each in offers
            ]
        return found

    def _first_alike(self, source: Source) -> str:
        """Return the key of the first offer that would give a job the same as this one.

        Budgets, totals of offers, and failures may refuse one offer and not another.
        """
        context, candidate = self._context, source.candidate
        assert candidate is not None
        offer, failures = candidate.offer, context.catalog.failures
        apart = context.usage.purchases.limited or failures.knows(candidate.provider)
        content = (
            source.key if apart or offer.total else "",
            source.isolated or tuple(context.table.classes(source.provider)),
            offer.shape,
            offer.max_nodes,
            offer.join_time,
        )
        return self._alike.setdefault(content, source.key)

    def find(
        self,
        demand: Demand,
        beside: FurtherUse | None = None,
        rest: ResourceRequest | None = None,
    ) -> Opening | Decision:
        """Return new bursts for a demand, or why there can be none now.

        `beside` is the use of other bursts that it joins, and `rest` is what it needs
        beside what it gets of them.
        """
        context, whole = self._context, demand
        if rest is not None:
            demand = msgspec.structs.replace(demand, rest=rest)
        refusals: list[OfferRejection] = []
        told: dict[str, OfferRejection] = {}
        spread, admitted = context.may_spread(demand), context.admitted(demand)
        for source, rejection, first in self._judge(demand):
            refused = rejection or told.get(first)
            if refused is None:
                assert source.candidate is not None
                want = RankNeed(context.until(source.candidate, demand), admitted)
                found = self._try(_Asked(source, demand, want, spread, beside))
                if isinstance(found, Opening):
                    return found
                refused = told[first] = found
            refusals.append(OfferRejection(source.key, refused.reason, refused.facts))
        isolates = self._may_be_isolated(demand.preferences)
        if not context.table.kinds and not isolates:
            lead = context.identity
            return Decision(Reason.NO_SLOTS if lead.endpoint else Reason.NO_ADDRESS)
        refusals.extend(context.catalog.refusals)
        if not refusals:
            return Decision(Reason.NO_OFFERS)
        never = None
        if not isolates:
            # The nodes that it joins are in live bursts, and count as theirs.
            never = why_impossible(whole, context)
        reason, facts = never or (Reason.TURNED_DOWN, {})
        return Decision(reason, facts, tuple(refusals))

    def _try(self, asked: _Asked) -> Opening | OfferRejection:
        """Return the bursts that a job may have of an offer, or why there are none.

        The offer itself was judged before; here only how much of it the job gets is.
        """
        source, candidate = asked.source, asked.source.candidate
        assert candidate is not None
        refused: list[OfferRejection] = []
        for kind, need in self._context.needs(asked.demand, source):
            if isinstance(need, OfferRejection):
                refused.append(need)
                continue
            if source.isolated:
                why = self._why_not(asked, [("", need)])
                return why or Opening(candidate, need, [])
            found = self._choose(asked, kind, need)
            if isinstance(found, list):
                return Opening(candidate, need, found)
            refused.append(found)
        if not refused:  # all slots are kept for other providers
            least = asked.demand.lacks.nodes or 1
            return reject(source, Reason.SLOTS_FEW, most=0, need=least)
        # A kind of slots that never serves it says nothing of one that is busy.
        return min(refused, key=_how_lasting)

    def _why_not(
        self, asked: _Asked, parts: Sequence[tuple[str, int]]
    ) -> OfferRejection | None:
        """Return why a job may not have these bursts, as in `Portion.pieces`."""
        source, demand = asked.source, asked.demand
        sizes, until = tuple(nodes for _, nodes in parts), asked.want.until
        use = FurtherUse.new(source.key, sizes, demand.userid, until, asked.beside)
        return self._context.why_not_so_much(source, Portion(use, tuple(parts)), demand)

    def _choose(
        self, asked: _Asked, slot_class: SlotClass, need: int
    ) -> list[Piece] | OfferRejection:
        """Return `need` free ranks of one kind of slots, or why there are none.

        They are of the smallest slot that holds all nodes. If there is none, or the
        provider has no capacity for so large a burst, a job that may be spread gets
        ranks of several slots, largest first.
        """
        source, want = asked.source, asked.want
        context, table = self._context, self._context.table
        most = context.most_of(source)
        if not table.has_free(slot_class):
            return self._too_few(asked, need, slot_class)
        refused: OfferRejection | None = None
        if need <= most:
            for slot, ranks in table.fitting(slot_class, need, want):
                refused = self._why_not(asked, [(slot.slot.name, need)])
                if refused is None:
                    return [(slot, ranks)]
                if refused.reason is not Reason.SPEC_REFUSED:
                    break  # the reason is the same in each slot
        lacks = (Reason.OFFER_COOLDOWN, Reason.ON_TRIAL)
        if asked.spread and (refused is None or refused.reason in lacks):
            found = self._split(asked, need, slot_class)
            if isinstance(found, list):
                return found
            refused = found or refused
        return refused or self._too_few(asked, need, slot_class)

    def _split(
        self, asked: _Asked, need: int, slot_class: SlotClass
    ) -> list[Piece] | OfferRejection | None:
        """Return free ranks of several slots for a job, or why there are none.

        None if it has to wait for ranks.
        """
        source, context = asked.source, self._context
        assert source.candidate is not None
        most = context.most_of(source)
        size = context.catalog.failures.split_size(source.candidate, most)
        pieces = context.table.split(slot_class, need, size, asked.want)
        if pieces:
            parts = [(slot.slot.name, len(ranks)) for slot, ranks in pieces]
            why = self._why_not(asked, parts)
            # Fewer bursts may do once larger slots are free.
            return None if why and why.reason is Reason.FEW_BURSTS else why or pieces
        if size < most:
            share = Portion(pieces=(("", need),))
            return context.why_not_so_much(source, share, asked.demand)
        return None

    def _too_few(
        self, asked: _Asked, need: int, slot_class: SlotClass
    ) -> OfferRejection:
        """Return why a job cannot have `need` nodes in a kind of slots now."""
        source, context, table = asked.source, self._context, self._context.table
        most, admitted = context.most_of(source), asked.want.admitted
        ever = table.capacity(slot_class, admitted, most, spread=asked.spread)
        if ever < need:
            return self._never_enough(asked, need, ever)
        if drained := self._why_drained(asked, need, slot_class):
            return drained
        free = table.largest(slot_class, asked.want)
        if free or context.usage.bounded:  # most waits are for ranks alone
            # Too much, whatever slots come free. As none is chosen, failures count by
            # the offer alone.
            sizes = table.fewest(slot_class, admitted, most, need)
            if refused := self._why_not(asked, [("", size) for size in sizes]):
                return refused
        if free:
            return reject(source, Reason.SLOTS_SMALL, most=free, need=need)
        ahead = table.first_promised()
        if ahead is None:
            return reject(source, Reason.SLOTS_BUSY)
        return reject(source, Reason.SLOTS_RESERVED, job=format_f58(ahead))

    def _never_enough(self, asked: _Asked, need: int, ever: int) -> OfferRejection:
        """Return why a job never has more than `ever` nodes in a kind of slots."""
        source, context = asked.source, self._context
        most = context.most_of(source)
        assert source.candidate is not None
        limit, offered = context.usage.largest_burst, source.candidate.offer.max_nodes
        if need > most == limit < offered:
            return reject(source, Reason.LIMIT_BURST, limit=most, need=need)
        if need > most and not asked.spread:
            return reject(source, Reason.FEW_NODES, most=most, need=need)
        return reject(source, Reason.SLOTS_FEW, most=ever, need=need)

    def _why_drained(
        self, asked: _Asked, need: int, slot_class: SlotClass
    ) -> OfferRejection | None:
        """Return that the job lacks ranks that are drained by hand or not scheduled."""
        drained = self._context.table.drained_for(
            slot_class, asked.want, need, spread=asked.spread
        )
        if not drained:
            return None
        unknown = frozenset(r for r, why in drained.items() if why == UNSCHEDULED)
        ranks = format_idset(unknown or frozenset(drained))
        if unknown:
            return reject(asked.source, Reason.SLOTS_UNSCHEDULED, ranks=ranks)
        why = "; ".join(dict.fromkeys(each or NO_REASON for each in drained.values()))
        return reject(asked.source, Reason.SLOTS_DRAINED, ranks=ranks, why=why)


def _how_lasting(refusal: OfferRejection) -> tuple[bool, bool]:
    """Sort key: what ends by waiting comes first, slots of no use come last."""
    reason = refusal.reason
    return reason in _OF_NO_USE, not ends_by_waiting(reason)
