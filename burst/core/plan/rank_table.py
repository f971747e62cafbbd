# SPDX-License-Identifier: MIT
"""The ranks of all slots while a plan is made: who has each, and who gets it next.

The ranks of an instance are fixed when its lead starts, so these are all the nodes that
it will ever have from bursts. A rank is free, or a burst has it until its jobs have
ended. A job that has no place now is promised the ranks that become free first, from
the time at which all of them are free. Jobs behind it may use them until then.

Times are seconds since the epoch; 0 stands for now or at once.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from operator import neg

from burst.core.plan.leasable import LeasableRanks
from burst.core.plan.slot_ranks import (
    Place,
    RankNeed,
    Search,
    Sizes,
    SlotClass,
    SlotRanks,
)
from burst.core.plan.slots import RankSlot, may_lease
from burst.model.burst import BurstId
from burst.model.jobid import JobId


class RankTable:
    """All ranks of all slots. Nothing becomes free while a plan is made.

    A slot that has a provider's name among its properties is kept for that provider.
    """

    def __init__(
        self,
        slots: Sequence[RankSlot],
        ranks: LeasableRanks,
        providers: frozenset[str],
    ) -> None:
        """`providers` are the names of all providers."""
        self.staying = ranks.staying
        """The bursts that stay without jobs, and when they end."""
        self._holders = dict(ranks.holders)
        self._promised_to: dict[int, JobId] = {}
        self._slot_of: dict[int, SlotRanks] = {}
        self._by_class: dict[SlotClass, list[SlotRanks]] = {}
        for slot in slots:
            there = SlotRanks(slot, ranks, providers)
            self._by_class.setdefault(there.kind, []).append(there)
            self._slot_of |= dict.fromkeys(slot.ranks, there)
        self._drained: dict[SlotClass, list[SlotRanks]] = {}
        self._free: dict[SlotClass, list[SlotRanks]] = {}
        """Slots with free ranks, in the order in which these are taken."""
        for kind, group in self._by_class.items():
            if free := [each for each in group if each.free]:
                self._free[kind] = sorted(free, key=SlotRanks.order)
            if drained := [each for each in group if each.drained]:
                self._drained[kind] = drained
        self._by_time: dict[SlotClass, list[tuple[float, int]]] = {}
        self._sizes: dict[object, tuple[int, list[int]]] = {}
        self._classes: dict[str, list[SlotClass]] = {}

    @property
    def kinds(self) -> Collection[SlotClass]:
        """All kinds of slots."""
        return self._by_class.keys()

    def capacity(
        self,
        slot_class: SlotClass,
        admitted: frozenset[int] | None,
        cap: int,
        *,
        spread: bool,
    ) -> int:
        """Return how many nodes a job could have in a kind of slots if all were free.

        `cap` is the most nodes that one burst may have; with `spread` the job may have
        several bursts.
        """
        together, sizes = self._most(slot_class, admitted, cap)
        return together if spread else max(sizes[:1], default=0)

    def fewest(
        self,
        slot_class: SlotClass,
        admitted: frozenset[int] | None,
        cap: int,
        nodes: int,
    ) -> list[int]:
        """Return the sizes of the fewest bursts that have `nodes` nodes of a kind of
        slots if all are free; at most `cap` each. There have to be so many.
        """
        found: list[int] = []
        for size in self._most(slot_class, admitted, cap)[1]:
            if nodes <= 0:
                break
            found.append(min(size, nodes))
            nodes -= size
        return found

    def _most(
        self, slot_class: SlotClass, admitted: frozenset[int] | None, cap: int
    ) -> tuple[int, list[int]]:
        """Return how many nodes bursts could have in all slots of a kind together if
        all were free, and in each of them, largest first; at most `cap` each.
        """
        key = slot_class, admitted, cap
        if key not in self._sizes:
            slots = self._narrowed(self._by_class[slot_class], slot_class, admitted)
            sizes = sorted((min(cap, each.size(admitted)) for each in slots), key=neg)
            self._sizes[key] = sum(sizes), sizes
        return self._sizes[key]

    def has_any(self, admitted: frozenset[int] | None) -> bool:
        """Tell whether a job could have a rank of any slot if all were free."""
        return any(
            self.capacity(kind, admitted, 1, spread=False) for kind in self._by_class
        )

    def classes(self, provider: str) -> Sequence[SlotClass]:
        """Return the kinds of slots that a provider may use."""
        if provider not in self._classes:
            self._classes[provider] = [
                slot_class
                for slot_class in self._by_class
                if may_lease(provider, slot_class[1])
            ]
        return self._classes[provider]

    def has_free(self, slot_class: SlotClass) -> bool:
        """Tell whether a kind of slots has free ranks."""
        return slot_class in self._free

    def fitting(
        self, slot_class: SlotClass, nodes: int, want: RankNeed
    ) -> Iterator[tuple[SlotRanks, list[int]]]:
        """Return slots of a kind with `nodes` free ranks, and these ranks of each."""
        for each in self._some(slot_class, want.admitted):
            if len(each.free) >= nodes:
                found = each.usable(want)
                if len(found) >= nodes:
                    yield each, found[:nodes]

    def split(
        self, slot_class: SlotClass, nodes: int, cap: int, want: RankNeed
    ) -> list[tuple[SlotRanks, list[int]]] | None:
        """Return free ranks of several slots, largest first, at most `cap` of each.

        Return None if there are too few.
        """
        if self.capacity(slot_class, want.admitted, cap, spread=True) < nodes:
            return None
        pieces: list[tuple[SlotRanks, list[int]]] = []
        free = self._some(slot_class, want.admitted)
        whole = [each for each in free if len(each.free) == each.slot.size]
        for each in (*reversed(whole), *reversed(free[len(whole) :])):
            found = each.usable(want)[: min(nodes, cap)]
            if found:
                pieces.append((each, found))
                nodes -= len(found)
            if not nodes:
                return pieces
        return None

    def largest(self, slot_class: SlotClass, want: RankNeed) -> int:
        """Return the largest number of free ranks in one slot of a kind."""
        most = 0
        for each in self._some(slot_class, want.admitted):
            if len(each.free) > most:
                most = max(most, len(each.usable(want)))
        return most

    def drained_for(
        self, slot_class: SlotClass, want: RankNeed, nodes: int, *, spread: bool
    ) -> Mapping[int, str]:
        """Return the ranks that a job lacks as `LeasableRanks.drained`, and why.

        Without them the job has too few ranks now, or too few at any later time; with
        them it has enough. With `spread` it may have ranks of several slots.
        """
        slots, closed = self._by_class[slot_class], self._drained.get(slot_class, ())
        for group in [closed] if spread else [[each] for each in closed]:
            mine: dict[int, str] = {}
            gain = 0
            for each in group:
                drained, more = each.drained_of(want.admitted)
                mine |= drained
                gain += more
            if not gain:
                continue
            now = later = 0
            for each in slots if spread else group:
                now += len(each.usable(want))
                later += len(each.admitted([*each.available], want.admitted))
            if now < nodes <= now + gain or later < nodes <= later + gain:
                return mine
        return {}

    def take(self, slot: SlotRanks, ranks: Iterable[int], until: float) -> None:
        """Give free ranks to a burst that is expected to have them until `until`."""
        taken = frozenset(ranks if slot.slot.divisible else slot.slot.ranks)
        group = self._free[slot.kind]
        del group[bisect_left(group, slot.order(), key=SlotRanks.order)]
        slot.free = [rank for rank in slot.free if rank not in taken]
        if slot.free:
            insort(group, slot, key=SlotRanks.order)
        elif not group:
            del self._free[slot.kind]
        self.prolong(taken, until)

    def prolong(self, ranks: Iterable[int], until: float) -> None:
        """Note that a burst has its ranks at least until `until`."""
        for rank in ranks:
            slot = self._slot_of.get(rank)
            if slot is not None and rank in slot.available:
                self._set(slot, rank, max(slot.available[rank], until))

    def promised_from(self, ranks: Iterable[int]) -> float:
        """Return the earliest time from which one of these ranks is promised.

        Return math.inf if none is promised.
        """
        if not self._promised_to:
            return math.inf
        promised = (
            self._slot_of[rank].promised.get(rank, math.inf)
            for rank in ranks
            if rank in self._promised_to
        )
        return min(promised, default=math.inf)

    def first_promised(self) -> JobId | None:
        """Return a job to which free ranks are promised; None if there is none."""
        if not self._free:
            return None
        free = (rank for rank in self._promised_to if rank in self._slot_of[rank].free)
        rank = next(free, None)
        return None if rank is None else self._promised_to[rank]

    def are_free(self, ranks: Iterable[int]) -> bool:
        """Tell whether no burst has any of these ranks."""
        return all(rank in self._slot_of[rank].free for rank in ranks)

    def holders(self, ranks: Iterable[int]) -> frozenset[BurstId]:
        """Return the live bursts that have some of these ranks."""
        found = (self._holders.get(rank) for rank in ranks)
        return frozenset(burst for burst in found if burst is not None)

    def free_from(self, ranks: Iterable[int]) -> float:
        """Return from when all these ranks can be promised; math.inf for never."""
        there = ((self._slot_of.get(rank), rank) for rank in ranks)
        times = (slot.available.get(rank, math.inf) for slot, rank in there if slot)
        return max(times, default=math.inf)

    def by_slot(self, ranks: Iterable[int]) -> dict[str, int]:
        """Return how many of these ranks each slot has, by its name."""
        return Counter(self._slot_of[rank].slot.name for rank in ranks)

    def earliest(
        self,
        slot_class: SlotClass,
        sizes: Sizes,
        admitted: Set[int] | None,
        late: float,
    ) -> Place | None:
        """Return the earliest place of a job in a kind of slots; None if there is none.

        Of the ranks that are free by then, it has those that become free last, so that
        others can have the rest. Ranks that become free at an unknown time count as
        free at `late`, until which the job waits for them; math.inf leaves them out.
        """
        search, known = Search(sizes), True
        before = 0.0
        barred = self._barred(sizes.joins.keys())
        times = self._in_time(slot_class)
        if barred:
            times = sorted((max(at, barred.get(rank, 0.0)), rank) for at, rank in times)
        for at, rank in times:
            time = at if at < math.inf else late
            # Ranks that become free at the same time may make a better place.
            if time == math.inf or (search.start < math.inf and at > before):
                break
            before = at
            slot = self._slot_of[rank]
            mine = self._holders.get(rank) in sizes.own
            if slot.admits(rank, admitted) and not mine:
                search.add(slot.slot, rank, time)
                known = at < math.inf
        if search.start == math.inf:
            return None
        ranks = search.ranks(last=known)
        return Place(search.start, ranks, known, self._awaited(ranks, barred))

    def _barred(self, joins: Set[BurstId]) -> Mapping[int, float]:
        """Return the ranks of bursts that stay, except `joins`, and when these end."""
        others = self.staying.keys() - joins
        if not others:
            return {}
        barred: dict[int, float] = {}
        for rank, burst in self._holders.items():
            there = self._slot_of.get(rank)
            if burst in others and there is not None:
                whole = [rank] if there.slot.divisible else there.slot.ranks
                barred |= dict.fromkeys(whole, self.staying[burst])
        return barred

    def _awaited(
        self, ranks: Iterable[int], barred: Mapping[int, float]
    ) -> BurstId | None:
        """Return the burst that has the rank which becomes free last of these.

        None if no burst has that rank, or if it is promised to a job ahead.
        """

        def free_at(rank: int) -> float:
            return max(self._slot_of[rank].available[rank], barred.get(rank, 0.0))

        last = max(ranks, key=free_at)
        return None if last in self._promised_to else self._holders.get(last)

    def promise(self, place: Place, job: JobId, until: float) -> None:
        """Keep the ranks of a place for a job, which has them until `until`.

        `until` is math.inf if the end of the job is not known.
        """
        for rank in self.ranks_for(place):
            slot = self._slot_of[rank]
            if place.start < slot.promised.get(rank, math.inf):
                slot.promised[rank] = place.start
                self._promised_to[rank] = job
            # A job without a known end keeps the rank: nobody is promised it later.
            self._set(slot, rank, None if until == math.inf else until)

    def _some(
        self, slot_class: SlotClass, admitted: Set[int] | None
    ) -> Sequence[SlotRanks]:
        """Return slots of a kind that have free ranks: all that have admitted ones."""
        free = self._free.get(slot_class, [])
        some = self._narrowed(free, slot_class, admitted)
        if some is free:
            return free
        return sorted((slot for slot in some if slot.free), key=SlotRanks.order)

    def _narrowed(
        self,
        slots: Sequence[SlotRanks],
        slot_class: SlotClass,
        admitted: Set[int] | None,
    ) -> Collection[SlotRanks]:
        """Return these slots of a kind; if there are more of them than ranks that are
        admitted, all slots of the kind that have such ranks.
        """
        if admitted is None or len(admitted) > len(slots):
            return slots
        there = (self._slot_of[rank] for rank in admitted if rank in self._slot_of)
        found = {slot.slot.ranks: slot for slot in there if slot.kind == slot_class}
        return found.values()

    def ranks_for(self, place: Place) -> frozenset[int]:
        """Return the ranks to keep for a job that is promised a place.

        These are all ranks of its slots if it is not known which become free first, and
        all ranks of a slot whose hosts join through a gateway.
        """
        slots = {id(self._slot_of[r]): self._slot_of[r] for r in place.ranks}
        whole = (s for s in slots.values() if not (place.known and s.slot.divisible))
        others = (rank for slot in whole for rank in slot.available)
        return frozenset(place.ranks).union(others)

    def _in_time(self, slot_class: SlotClass) -> list[tuple[float, int]]:
        if slot_class not in self._by_time:
            self._by_time[slot_class] = sorted(
                (at, rank)
                for each in self._by_class[slot_class]
                for rank, at in each.available.items()
            )
        return self._by_time[slot_class]

    def _set(self, slot: SlotRanks, rank: int, at: float | None) -> None:
        """Change the time at which a rank becomes free; None for never."""
        order = self._by_time.get(slot.kind)
        before = slot.available.pop(rank, None)
        if order and before is not None:
            del order[bisect_left(order, (before, rank))]
        if at is not None:
            slot.available[rank] = at
            if order is not None:
                insort(order, (at, rank))
