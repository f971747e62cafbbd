# SPDX-License-Identifier: MIT
"""Promises of ranks, from a time on, to jobs that have no place now.

Without promises a job that needs several slots waits for as long as smaller jobs come,
since those take each slot that becomes free. An isolated burst needs no ranks: what it
will use of the limits is kept for its job.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand, Promise
from burst.core.plan.limits import FurtherUse
from burst.core.plan.slot_ranks import Place, Sizes
from burst.core.plan.sources import Portion, Source
from burst.model.burst import BurstId
from burst.model.decision import (
    GUESTS_WORDS,
    Decision,
    OfferRejection,
    exact_moment,
    name_ranks,
)
from burst.model.ranks import format_idset
from burst.model.reason import Reason
from burst.model.shape import Shape

MOST = 100
"""The most promises of one plan; further jobs get none before these jobs began."""
RESERVATION_S = 4 * 3600.0
"""For how many seconds after a job's submission ranks are kept for it while no time
limit tells when they become free. After that everybody may have them, as the jobs on
them may never end. It is long enough for most jobs."""
_ANOTHER = "another burst"


class Kept(NamedTuple):
    """A promise, and what has to happen for it."""

    promise: Promise
    last: BurstId | None
    """The burst that the job waits for last: see `Place.last`."""
    nodes: int
    offer: str
    due: bool
    """Whether its time has come, so that the job waits for what is late."""
    gone: frozenset[BurstId]
    """Live bursts that have these ranks, or count against a limit of the job."""
    cannot_stay: frozenset[BurstId]
    """Bursts in `gone` that cannot wait idle for the job: a limit requires their end,
    and the job gets an isolated burst, or also other ranks of their slots, for which a
    further burst would be made."""

    def decision(self, refusals: tuple[OfferRejection, ...]) -> Decision:
        """Return the decision on the job; `refusals` are why it has nothing now."""
        ranks = format_idset(frozenset(self.promise.ranks))
        kept = name_ranks(ranks) if ranks else "so much of the limits"
        if not self.promise.known:
            kept += f" until {exact_moment(self.promise.start)}"
        facts = {
            "nodes": self.nodes,
            "offer": self.offer,
            "words": self._when(self.last or _ANOTHER),
            GUESTS_WORDS: self._when(_ANOTHER),
            "kept": kept,
        }
        return Decision(Reason.RESERVED, facts, refusals)

    def _when(self, last: str) -> str:
        """Return when the job gets the ranks; `last` is who has them until then."""
        if not self.promise.known:
            return f"when {last} ends, at an unknown time"
        if not self.promise.start:
            what = "they are free" if self.promise.ranks else "limits allow it"
            return f"as soon as {what}"
        if self.due:
            return f"as soon as {last} ends"
        return f"by about {exact_moment(self.promise.start)}, when {last} ends"


class Promises:
    """Makes the promises of one plan, in the order of the jobs."""

    def __init__(self, context: PlanContext) -> None:
        self.made: list[Promise] = []
        self._open = False
        """Whether some job waits for ranks that become free at an unknown time."""
        self._context = context

    def make(self, demand: Demand, offers: Iterable[Source]) -> Kept | None:
        """Promise ranks to a refused job, with the first offer that can serve it later.

        Return None if no offer can, as far as is known.
        """
        if demand.job is None or len(self.made) >= MOST:
            return None
        for source in offers:
            for place, sizes in self._places(source, demand):
                kept = self._keep(source, demand, place, sizes)
                if kept is not None:
                    self.made.append(kept.promise)
                    self._open = self._open or not kept.promise.known
                    return kept
        return None

    def _places(self, source: Source, demand: Demand) -> list[tuple[Place, Sizes]]:
        """Return the places that a job may have with an offer, the best first.

        There is one of each kind of slots, and one without ranks for an isolated burst.
        The earliest comes first, places at an unknown time come last, and places at the
        same time are in the order of `by_need`.
        """
        context = self._context
        found: list[tuple[Place, Sizes]] = []
        admitted, late = context.admitted(demand), self._late(demand)
        for kind, need in context.needs(demand, source):
            if isinstance(need, OfferRejection):
                continue
            if source.isolated:
                if need <= context.most_of(source):
                    found.append((Place(0.0, ()), Sizes(need, need, spread=False)))
                continue
            sizes = self._sizes(source, demand, need, kind[0])
            place = context.table.earliest(kind, sizes, admitted, late)
            if place is not None:
                found.append((place, sizes))
        return sorted(found, key=lambda it: (not it[0].known, it[0].start))

    def _late(self, demand: Demand) -> float:
        """Return until when a job waits for ranks that become free at an unknown time.

        Return math.inf if it does not wait for such ranks.
        """
        patience = demand.since + RESERVATION_S
        waits = patience > self._context.now and not self._open
        return patience if waits else math.inf

    def _sizes(self, source: Source, demand: Demand, need: int, shape: Shape) -> Sizes:
        """Return in which bursts a job may have the nodes of a shape that it needs."""
        context = self._context
        own = (live.burst for live in context.live if demand.job in live.jobs)
        most, spread = context.most_of(source), context.may_spread(demand)
        joins = self._joins(demand, need, shape, spread)
        return Sizes(need, most, spread, frozenset(own), joins)

    def _joins(
        self, demand: Demand, need: int, shape: Shape, spread: bool
    ) -> Mapping[BurstId, float]:
        """Return the bursts that stay, and whose nodes a job gets once they are idle.

        Each comes with that time. `need` is how many nodes of this shape the job needs.
        A burst of which its constraint excludes some does not count. If it may
        have one burst only, that has to have all of them.
        """
        table, admitted = self._context.table, self._context.admitted(demand)
        return {
            live.burst: table.free_from(live.pool.whole)
            for live in self._context.live
            if live.burst in table.staying
            and live.pool.shape == shape
            and (admitted is None or admitted.issuperset(live.pool.whole))
            and (spread or (demand.rest is None and need <= len(live.pool.whole)))
            and self._context.why_not(demand, live.source) is None
        }

    def _keep(
        self,
        source: Source,
        demand: Demand,
        place: Place,
        sizes: Sizes,
    ) -> Kept | None:
        """Keep a place for a job; return None if the job waits for something else."""
        assert demand.job is not None
        context, key = self._context, source.key
        # How many nodes it gets in each slot; an isolated burst is in none.
        pieces = context.table.by_slot(place.ranks) or {"": sizes.nodes}
        # The time at which limits allow it is found below.
        share = Portion(pieces=tuple(pieces.items()), later=True)
        if context.why_not_so_much(source, share, demand):
            return None
        asked = FurtherUse.new(key, tuple(pieces.values()), demand.userid, math.inf)
        late = self._late(demand)
        room = context.usage.when(asked, late, sizes.own, sizes.joins)
        # Ranks that no burst has may be promised to a job ahead until `start`.
        now = not place.start and context.table.are_free(place.ranks)
        if room is None or (now and not room.gone):
            return None
        place = place._replace(
            start=max(room.start, place.start),
            known=room.known and place.known,
            last=place.last if room.start <= place.start else None,
        )
        ranks = context.table.ranks_for(place)
        gone = room.gone | context.table.holders(ranks)
        cannot_stay = frozenset(
            burst
            for burst in room.gone
            if source.isolated or self._shares_slot(burst, place, pieces)
        )
        self._note(demand, place, asked, gone)
        nodes, due = sum(pieces.values()), place.start <= context.now
        assert source.candidate is not None  # only offers are promised
        context.usage.purchases.promise(source.candidate, demand, nodes)
        promise = Promise(
            job=demand.job,
            ranks=tuple(sorted(ranks)),
            start=place.start,
            known=place.known,
        )
        return Kept(promise, place.last, nodes, key, due, gone, cannot_stay)

    def _note(
        self, demand: Demand, place: Place, asked: FurtherUse, gone: Iterable[BurstId]
    ) -> None:
        """Note what is kept for a job of ranks and of limits, and until when."""
        assert demand.job is not None
        context = self._context
        began = max(place.start, context.now)
        until = demand.end(began) if place.known else math.inf
        context.table.promise(place, demand.job, until)
        asked = msgspec.structs.replace(asked, until=until)
        context.usage.keep(demand.job, asked, place.start, gone)

    def _shares_slot(
        self, burst: BurstId, place: Place, pieces: Mapping[str, int]
    ) -> bool:
        """Tell whether a place has ranks of a burst, and others of the same slot."""
        table = self._context.table
        mine = table.by_slot(r for r in place.ranks if burst in table.holders([r]))
        return any(count < pieces[slot] for slot, count in mine.items())
