# SPDX-License-Identifier: MIT
"""Which rank slots are kept for the first job that waits for slots that are busy.

Without that, a job that needs several slots waits for as long as smaller jobs come,
since those find each slot that becomes free.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set

import msgspec

from burst.core.isolated.placement import burst_mode
from burst.core.placement.demand import nodes_needed
from burst.core.placement.leased_slots import LeasedSlot, LiveBursts
from burst.core.placement.limits import BurstUsage, Usage
from burst.core.placement.offers import ProviderOffer
from burst.core.placement.plan import BurstCapacity, Demand, PlannedBurst, Reservation
from burst.core.placement.preferences import why_unwanted
from burst.core.placement.run_time import RunTimes
from burst.core.placement.slot_group import SlotClass
from burst.core.placement.slot_index import SlotIndex
from burst.core.placement.slots import RankSlot
from burst.core.placement.trials import PlanTrials
from burst.model.burst import BurstId
from burst.model.decision import Decision, OfferRejection
from burst.model.jobid import JobId, format_f58
from burst.model.reason import Reason

# For so many demands slots are looked for; where that finds none, limits are in the
# way, as they are for those behind.
_TRIES = 32
# Slots that would serve a job, each with its nodes; the nodes of all; the largest.
_Able = tuple[list[tuple[RankSlot, int]], int, int]


class SlotReservations:
    """Keeps slots for one job of a plan: the first refused one that they would serve.

    Free slots that are kept are taken out of the index, so that no other job gets them.
    """

    def __init__(
        self,
        index: SlotIndex,
        trials: PlanTrials,
        run_times: RunTimes,
        usage: Usage,
        live: LiveBursts,
    ) -> None:
        self.made: Reservation | None = None
        self.demand: Demand | None = None
        """That of the job."""
        self._index = index
        self._trials = trials
        self._run_times = run_times
        self.usage = usage
        self.whole_nodes = live.whole_nodes
        self._now = live.now
        self._overtaken = live.overtaken
        self._leased = dict(live.slots)
        self._names = index.free_slot_names() | live.slots.keys()
        self._able: dict[tuple[str, SlotClass, str], _Able] = {}
        self._need = self._passed = 0
        self._may_combine = False
        self._tries = 0
        joins = (candidate.offer.join_time for candidate in trials.catalog.offers)
        self._join = max(joins, default=0.0)

    @property
    def slots(self) -> Set[str]:
        """The names of those that are kept."""
        return self.made.slots if self.made else frozenset()

    def is_brief(self, demand: Demand) -> bool:
        """Tell whether a new burst could serve a job before they could be used."""
        if self.made is None or not demand.duration:
            return False
        ends = self._now + self._join + demand.duration
        return ends <= self.made.start < math.inf

    @property
    def overtaken(self) -> Mapping[JobId, int]:
        """How many nodes the job waits for that others were given, if there are any."""
        return {self.made.job: self._passed} if self.made and self._passed else {}

    def may_use(self, demand: Demand, capacity: BurstCapacity, nodes: int) -> bool:
        """Tell whether a live burst may give nodes to a job.

        The job delays none that slots wait for: it ends before all of the slots could
        be used, or, if it is not known when that is, before those do that the burst
        has. Where that is not known either, nodes that are paid for would be idle for
        long. So others get as many of them as the first job needs, but no more.
        """
        on = self._kept_under(capacity.burst)
        if self.made is None or not on or self._ends_in_time(demand, on):
            return True
        unknown = math.isinf(self.made.start) and self._overtaken is not None
        return unknown and self._passed + nodes <= self._need

    def _ends_in_time(self, demand: Demand, on: list[str]) -> bool:
        """Tell whether a job ends before slots that a burst has are needed."""
        assert self.made is not None
        start = self.made.start
        latest = min(map(self._until, on)) if math.isinf(start) else start
        brief = demand.duration and self._now + demand.duration <= latest
        return bool(brief) and not math.isinf(latest)

    def composes(self, idle: Set[BurstId]) -> bool:
        """Tell whether the job will have these idle bursts, with what it waits for.

        Together with the other ranks of the slots that are kept, which are busy now.
        """
        assert self.made is not None
        nodes, waits = 0, False
        for name in self.slots:
            leased = self._leased.get(name)
            if leased is None or not leased.shares:
                nodes += self._index.size_of(name)
                waits = waits or leased is not None
                continue
            nodes += leased.spare + sum(each.nodes for each in leased.shares.values())
            waits = waits or leased.leaving or not leased.shares.keys() <= idle
        return waits and self._may_combine and nodes >= self._need

    def must_go(self, capacity: BurstCapacity) -> bool:
        """Tell whether an idle burst is to be taken down, as its slot is kept.

        Not before the others could be free, where that is known: until then it serves
        brief jobs, for which it would have to be made again. One that was requested
        ahead of jobs ends by its own deadline.
        """
        if self.made is None or not self._kept_under(capacity.burst):
            return False
        due = math.isinf(self.made.start) or self.made.start <= self._now
        requested = not capacity.userids or capacity.requester is not None
        return due and capacity.idle and not requested

    def is_kept(self, burst: BurstId) -> bool:
        """Tell whether a live burst has ranks of a slot that is kept."""
        return bool(self._kept_under(burst))

    def _kept_under(self, burst: BurstId) -> list[str]:
        """Return the slots that are kept and of which a live burst has ranks."""
        return [
            name
            for name in self.slots
            if name in self._leased and burst in self._leased[name].shares
        ]

    def join(self, demand: Demand, capacity: BurstCapacity, nodes: int) -> None:
        """Note that a live burst gives nodes to a job, as the next tick will see it.

        It is not known when that ends, and its user bears the burst, too.
        """
        assert demand.job is not None  # only jobs are given what is there
        on = self._kept_under(capacity.burst)
        if on and not self._ends_in_time(demand, on):
            self._passed += nodes
        replace = msgspec.structs.replace
        for name, leased in self._leased.items():
            share = leased.shares.get(capacity.burst)
            if share is None:
                continue
            if share.userids and demand.userid is not None:
                share = replace(share, userids=share.userids | {demand.userid})
            self._leased[name] = replace(
                leased,
                until=math.inf,
                jobs=leased.jobs | {demand.job},
                shares={**leased.shares, capacity.burst: share},
            )

    def lend(self) -> None:
        """Make those that are free so for a job that is brief, until `withhold`."""
        self._index.withhold(frozenset())

    def withhold(self) -> None:
        """Keep those that are free."""
        self._index.withhold(self.slots)

    def busy_or_kept(self, offer: str) -> OfferRejection:
        """Return why no slot is free for a job."""
        if self.made and self._index.withholds:
            return OfferRejection(
                offer, Reason.SLOTS_RESERVED, {"job": format_f58(self.made.job)}
            )
        return OfferRejection(offer, Reason.SLOTS_BUSY)

    def reserve(
        self,
        demand: Demand,
        decision: Decision,
        spread: bool,
        planned: Sequence[PlannedBurst],
    ) -> Decision | None:
        """Keep slots for a refused job, if it is the first that they would serve.

        With `spread` it may have several bursts; `planned` are those of this plan.
        """
        turned_down = decision.reason is Reason.TURNED_DOWN
        if (
            self.made
            or demand.job is None
            or demand.reservation_paused
            or not turned_down
        ):
            return None
        for candidate in self._trials.catalog.offers:
            if self._never_suits(candidate, demand):
                continue
            found = self._find(candidate, demand, spread, planned)
            if found:
                self.made, self.demand = found, demand
                self._may_combine = spread
                self._passed = (self._overtaken or {}).get(demand.job, 0)
                self.withhold()
                facts = {"slots": ", ".join(sorted(found.slots))}
                return Decision(Reason.RESERVED, facts, decision.refusals)
        return None

    def _never_suits(self, candidate: ProviderOffer, demand: Demand) -> bool:
        """Tell whether an offer is none for a job, however many slots are free."""
        if (
            why_unwanted(demand.preferences, candidate)
            or candidate.provider in self._trials.catalog.on_trial
        ):
            return True
        isolated = burst_mode(demand.preferences, candidate.offer) == "isolated"
        if isolated or self._run_times.why_too_short(candidate, demand) is not None:
            return True
        nodes = nodes_needed(demand.request, candidate.offer.shape)
        purchases = self.usage.purchases
        return purchases.refuse(candidate, demand, nodes - demand.coming) is not None

    def _find(
        self,
        candidate: ProviderOffer,
        demand: Demand,
        spread: bool,
        planned: Sequence[PlannedBurst],
    ) -> Reservation | None:
        for slot_class in self._index.all_classes(candidate.provider):
            need = nodes_needed(demand.request, slot_class[0]) - demand.coming
            if need <= 0 or not candidate.offer.shape.holds(slot_class[0]):
                continue
            able, together, largest = self._slots_for(candidate, slot_class, demand)
            if need > (together if spread else largest) or self._tries >= _TRIES:
                continue
            self._tries += 1
            for one in planned:
                self._leased[one.slot.name] = _taken_by(
                    one, self._leased.get(one.slot.name)
                )
            found = self._choose(candidate, demand, able, need, spread)
            if found:
                self._need = need
                return found
        return None

    def _slots_for(
        self, candidate: ProviderOffer, slot_class: SlotClass, demand: Demand
    ) -> _Able:
        """Return the slots that a job can wait for, and the nodes that each gives.

        And how many all of them give, and how many one.
        """
        constraint = demand.request.constraint
        key = candidate.key, slot_class, constraint
        if key not in self._able:
            most = int(min(candidate.offer.max_nodes, self.usage.largest_burst))
            able = [
                (slot, min(nodes, most))
                for slot, nodes in self._index.usable_slots(slot_class, constraint)
                if slot.name in self._names
            ]
            sizes = [nodes for _, nodes in able]
            self._able[key] = able, sum(sizes), max(sizes, default=0)
        return self._able[key]

    def _choose(
        self,
        candidate: ProviderOffer,
        demand: Demand,
        able: list[tuple[RankSlot, int]],
        need: int,
        spread: bool,
    ) -> Reservation | None:
        """Keep those that are free first: among equals the smallest, or the largest."""
        usable = [
            (slot, nodes)
            for slot, nodes in able
            if not self._has(slot.name, demand.job)
            and not self._trials.why_refused(candidate, slot.name, min(nodes, need))
        ]
        groups = [[s.name] for s, nodes in self._by_time(usable, 1) if nodes >= need]
        if spread:
            by_time = self._by_time(usable, -1)
            largest = sorted(usable, key=lambda entry: -entry[1])
            groups += filter(None, (_first(by_time, need), _first(largest, need)))
        users = frozenset(() if demand.userid is None else (demand.userid,))
        for wider in (False, True):
            for group in groups:
                more = BurstUsage(nodes=need, bursts=len(group), userids=users)
                kept = self._within_limits(demand.job, group, more, wider)
                # Where all are free it waits for something else.
                if kept and not self._leased.keys().isdisjoint(kept):
                    assert demand.job is not None
                    start = max(map(self._until, kept))
                    names = frozenset(kept)
                    return Reservation(job=demand.job, slots=names, start=start)
        return None

    def _within_limits(
        self, job: JobId | None, group: list[str], more: BurstUsage, wider: bool
    ) -> list[str] | None:
        """Return slots whose bursts have to be gone so that limits allow a job's.

        Those that it gets, and, with `wider`, others that are free first.
        """
        kept = list(group)
        others = self._leased.keys() - set(group) if wider else set()
        lacks = self.usage.exceeded(more, self._shares(kept))
        for name in sorted(others, key=lambda name: (self._until(name), name)):
            if lacks is None:
                break
            if self._has(name, job):
                continue
            shares = self._shares([name])
            if lacks is not Reason.LIMIT_USER or any(
                more.userids & share.userids for share in shares
            ):
                kept.append(name)
                lacks = self.usage.exceeded(more, self._shares(kept))
        return None if lacks else kept

    def _shares(self, names: Sequence[str]) -> list[BurstUsage]:
        there = (self._leased[name] for name in names if name in self._leased)
        shares = {burst: share for it in there for burst, share in it.shares.items()}
        return list(shares.values())

    def _by_time(
        self, slots: list[tuple[RankSlot, int]], sign: int
    ) -> list[tuple[RankSlot, int]]:
        def key(entry: tuple[RankSlot, int]) -> tuple[float, int]:
            return self._until(entry[0].name), sign * entry[1]

        return sorted(slots, key=key)

    def _until(self, name: str) -> float:
        """Return when the jobs on a slot have ended; the least where it is free."""
        there = self._leased.get(name)
        return there.until if there else -math.inf

    def _has(self, name: str, job: JobId | None) -> bool:
        """Tell whether a burst comes for a job there."""
        there = self._leased.get(name)
        return there is not None and job in there.jobs


def _first(slots: list[tuple[RankSlot, int]], need: int) -> list[str] | None:
    """Return the first slots that have so many nodes together."""
    kept: list[str] = []
    for slot, nodes in slots:
        kept.append(slot.name)
        need -= nodes
        if need <= 0:
            return kept
    return None


def _taken_by(planned: PlannedBurst, before: LeasedSlot | None) -> LeasedSlot:
    """Return what is known of a slot that a burst of the plan has ranks of."""
    share = BurstUsage(
        nodes=planned.nodes, bursts=1, userids=frozenset(planned.userids)
    )
    # It has no id yet, but its ranks are in no other.
    shares = {BurstId(f"{planned.slot.name}/{planned.slot.ranks[0]}"): share}
    jobs = frozenset(planned.jobs)
    if before is None:
        return LeasedSlot(until=math.inf, jobs=jobs, shares=shares)
    return msgspec.structs.replace(
        before,
        until=math.inf,
        jobs=before.jobs | jobs,
        shares={**before.shares, **shares},
    )
