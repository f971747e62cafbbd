# SPDX-License-Identifier: MIT
"""What is promised to jobs that have no place now: ranks, from a time on.

Without promises a job that needs several slots waits for as long as smaller jobs come,
since those find each slot that becomes free.
"""

from __future__ import annotations

import math
from collections.abc import Set
from typing import NamedTuple

from burst.core.placement.demand import nodes_needed
from burst.core.placement.eligible import WantedOffer
from burst.core.placement.ground import Ground
from burst.core.placement.limits import Asked
from burst.core.placement.plan import Demand, Promise
from burst.core.placement.rank_table import Place, Sizes, SlotClass
from burst.core.placement.run_time import RunTimes
from burst.core.placement.trials import PlanTrials
from burst.model.burst import BurstId
from burst.model.decision import Decision, OfferRejection, clock_time
from burst.model.ranks import format_idset
from burst.model.reason import Reason

MOST = 100
"""So many jobs are promised nodes in one plan; others get none before these began."""


class Kept(NamedTuple):
    """A promise, and what has to happen for it."""

    promise: Promise
    place: Place
    offer: str
    gone: frozenset[BurstId]
    """Live bursts that have these ranks, or count against a limit of the job."""

    def decision(self, refusals: tuple[OfferRejection, ...]) -> Decision:
        """Return the decision on the job; `refusals` are why it has nothing now."""
        start, last = self.place.start, self.place.last or "others"
        when, until = "as soon as they are free", ""
        if not self.place.known:
            when = f"once {last} ended, which no time limit foretells"
            until = f" until {clock_time(start)} ([deadlines] reservation)"
        elif start:
            when = f"about {clock_time(start)}, when {last} ends"
        facts = {
            "nodes": len(self.place.ranks),
            "offer": self.offer,
            "when": when,
            "ranks": format_idset(frozenset(self.place.ranks)),
            "until": until,
        }
        return Decision(Reason.RESERVED, facts, refusals)


class Promises:
    """Makes them, in the order of the jobs."""

    def __init__(self, ground: Ground, trials: PlanTrials, run_times: RunTimes) -> None:
        self.made: list[Promise] = []
        self._ground = ground
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
        candidate, trial = wanted.candidate, self._ground.catalog.on_trial
        if wanted.unwanted or wanted.isolated or candidate.provider in trial:
            return False
        return self._run_times.why_too_short(candidate, demand) is None

    def _find(self, wanted: WantedOffer, demand: Demand, spread: bool) -> Kept | None:
        candidate, ground = wanted.candidate, self._ground
        most = int(min(candidate.offer.max_nodes, ground.usage.largest_burst))
        for slot_class in ground.table.classes(candidate.provider):
            sizes = self._sizes(wanted, demand, slot_class, most, spread)
            if sizes is None:
                continue
            place = ground.table.earliest(
                slot_class, sizes, ground.admitted(demand), self._late(demand)
            )
            kept = place and self._keep(wanted, demand, place, sizes.own)
            if kept:
                self.made.append(kept.promise)
                return kept
        return None

    def _late(self, demand: Demand) -> float:
        """Return until when a job waits for ranks of which no limit tells the end."""
        patience = demand.since + self._ground.patience
        return patience if patience > self._ground.now else math.inf

    def _sizes(
        self,
        wanted: WantedOffer,
        demand: Demand,
        slot_class: SlotClass,
        most: int,
        spread: bool,
    ) -> Sizes | None:
        """Return what the job needs of a kind of slots; None where none of them do."""
        candidate, ground = wanted.candidate, self._ground
        need = nodes_needed(demand.request, slot_class[0]) - demand.coming
        if need <= 0 or not candidate.offer.shape.holds(slot_class[0]):
            return None
        if ground.usage.purchases.refuse(candidate, demand, need):
            return None
        own = (live.burst for live in ground.live if demand.job in live.jobs)
        return Sizes(need, most, spread, frozenset(own))

    def _keep(
        self, wanted: WantedOffer, demand: Demand, place: Place, own: Set[BurstId]
    ) -> Kept | None:
        """Keep a place for a job; None where it waits for something else."""
        assert demand.job is not None
        ground, candidate = self._ground, wanted.candidate
        pieces = ground.table.by_slot(place.ranks)
        if any(
            self._trials.why_refused(candidate, slot, nodes)
            for slot, nodes in pieces.items()
        ):
            return None
        until = demand.end(max(place.start, ground.now))
        sizes = tuple(pieces.values())
        asked = Asked.new(candidate.key, sizes, demand.userid, until)
        room = ground.usage.when(asked, self._late(demand), own)
        if room is None or (ground.table.are_free(place.ranks) and not room.gone):
            return None
        gone = room.gone | ground.table.holders(place.ranks)
        place = place._replace(
            start=max(room.start, place.start), known=room.known and place.known
        )
        ground.table.promise(place, demand.job, demand.duration)
        ground.usage.keep(demand.job, asked, place.start, gone)
        promise = Promise(job=demand.job, ranks=place.ranks, start=place.start)
        return Kept(promise, place, candidate.key, gone)
