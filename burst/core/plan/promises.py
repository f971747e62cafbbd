# SPDX-License-Identifier: MIT
"""What is promised to jobs that have no place now: ranks, from a time on.

Without promises a job that needs several slots waits for as long as smaller jobs come,
since those find each slot that becomes free.
"""

from __future__ import annotations

import math
from collections.abc import Set
from typing import NamedTuple

from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand, Promise
from burst.core.plan.eligible import WantedOffer
from burst.core.plan.fit import nodes_needed
from burst.core.plan.limits import FurtherUse
from burst.core.plan.rank_table import Place, Sizes
from burst.core.plan.run_time import RunTimes
from burst.core.plan.slot_ranks import SlotClass
from burst.core.plan.trials import PlanTrials
from burst.model.burst import BurstId
from burst.model.decision import GUESTS_WORDS, Decision, OfferRejection, clock_time
from burst.model.ranks import format_idset
from burst.model.reason import Reason

MOST = 100
"""So many jobs are promised nodes in one plan; others get none before these began."""
_ANOTHER = "another burst"


class Kept(NamedTuple):
    """A promise, and what has to happen for it."""

    promise: Promise
    place: Place
    offer: str
    gone: frozenset[BurstId]
    """Live bursts that have these ranks, or count against a limit of the job."""

    def decision(self, refusals: tuple[OfferRejection, ...]) -> Decision:
        """Return the decision on the job; `refusals` are why it has nothing now."""
        kept = ""
        if not self.place.known:
            until = clock_time(self.place.start)
            kept = f" until {until} ([deadlines] reservation)"
        facts = {
            "nodes": len(self.place.ranks),
            "offer": self.offer,
            "words": self._when(self.place.last or _ANOTHER),
            GUESTS_WORDS: self._when(_ANOTHER),
            "ranks": format_idset(frozenset(self.promise.ranks)),
            "kept": kept,
        }
        return Decision(Reason.RESERVED, facts, refusals)

    def _when(self, last: str) -> str:
        """Return when the job gets the ranks; `last` is who has them until then."""
        if not self.place.known:
            return f"once {last} has ended, which no time limit foretells"
        if not self.place.start:
            return "as soon as they are free"
        return f"about {clock_time(self.place.start)}, when {last} ends"


class Promises:
    """Makes them, in the order of the jobs."""

    def __init__(
        self, context: PlanContext, trials: PlanTrials, run_times: RunTimes
    ) -> None:
        self.made: list[Promise] = []
        self._open = False
        """Whether some job waits for ranks of which no limit tells the end."""
        self._context = context
        self._trials = trials
        self._run_times = run_times

    def make(
        self, demand: Demand, offers: tuple[WantedOffer, ...], *, spread: bool
    ) -> Kept | None:
        """Promise ranks to a refused job, of the first offer that it may have later.

        None where none could be had by anything that is known. With `spread` it may
        have several bursts.
        """
        if demand.job is None or len(self.made) >= MOST:
            return None
        for wanted in offers:
            if self._may_have(wanted, demand):
                found = self._find(wanted, demand, spread)
                if found is not None:
                    return found
        return None

    def _may_have(self, wanted: WantedOffer, demand: Demand) -> bool:
        """Tell whether an offer is one for a job, if enough slots are free."""
        candidate, trial = wanted.candidate, self._context.catalog.on_trial
        if wanted.unwanted or wanted.isolated or candidate.provider in trial:
            return False
        return self._run_times.why_too_short(candidate, demand) is None

    def _find(self, wanted: WantedOffer, demand: Demand, spread: bool) -> Kept | None:
        candidate, context = wanted.candidate, self._context
        most = int(min(candidate.offer.max_nodes, context.usage.largest_burst))
        for slot_class in context.table.classes(candidate.provider):
            sizes = self._sizes(wanted, demand, slot_class, most, spread)
            if sizes is None:
                continue
            place = context.table.earliest(
                slot_class, sizes, context.admitted(demand), self._late(demand)
            )
            kept = place and self._keep(wanted, demand, place, sizes.own)
            if kept:
                self.made.append(kept.promise)
                self._open = self._open or not kept.place.known
                return kept
        return None

    def _late(self, demand: Demand) -> float:
        """Return until when a job waits for ranks of which no limit tells the end."""
        patience = demand.since + self._context.patience
        waits = patience > self._context.now and not self._open
        return patience if waits else math.inf

    def _sizes(
        self,
        wanted: WantedOffer,
        demand: Demand,
        slot_class: SlotClass,
        most: int,
        spread: bool,
    ) -> Sizes | None:
        """Return what the job needs of a kind of slots; None where none of them do."""
        candidate, context = wanted.candidate, self._context
        need = nodes_needed(demand.request, slot_class[0]) - demand.coming
        if need <= 0 or not candidate.offer.shape.holds(slot_class[0]):
            return None
        if context.usage.purchases.refuse(candidate, demand, need):
            return None
        own = (live.burst for live in context.live if demand.job in live.jobs)
        return Sizes(need, most, spread, frozenset(own))

    def _keep(
        self, wanted: WantedOffer, demand: Demand, place: Place, own: Set[BurstId]
    ) -> Kept | None:
        """Keep a place for a job; None where it waits for something else."""
        assert demand.job is not None
        context, candidate = self._context, wanted.candidate
        pieces = context.table.by_slot(place.ranks)
        if any(
            self._trials.why_refused(candidate, slot, nodes)
            for slot, nodes in pieces.items()
        ):
            return None
        until = demand.end(max(place.start, context.now))
        sizes = tuple(pieces.values())
        asked = FurtherUse.new(candidate.key, sizes, demand.userid, until)
        room = context.usage.when(asked, self._late(demand), own)
        if room is None or (context.table.are_free(place.ranks) and not room.gone):
            return None
        place = place._replace(
            start=max(room.start, place.start), known=room.known and place.known
        )
        ranks = context.table.kept_for(place)
        gone = room.gone | context.table.holders(ranks)
        context.table.promise(place, demand.job, demand.duration)
        context.usage.keep(demand.job, asked, place.start, gone)
        promise = Promise(
            job=demand.job,
            ranks=tuple(sorted(ranks)),
            start=place.start,
            known=place.known,
        )
        return Kept(promise, place, candidate.key, gone)
