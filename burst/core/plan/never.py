# SPDX-License-Identifier: MIT
"""What no rank slot can ever hold, even if all of its ranks are free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from burst.core.plan.demands import Demand
from burst.core.plan.eligible import nodes_wanted
from burst.core.plan.fit import describe_need, nodes_needed
from burst.core.plan.slot_ranks import SlotClass, by_need, class_of, run_of
from burst.core.plan.slots import RankSlot, may_lease
from burst.core.plan.sources import Source
from burst.core.select.constraints import Constraints
from burst.model.decision import OfferRejection
from burst.model.reason import Reason
from burst.model.request import ResourceRequest


class AllSlots:
    """The sizes of all slots by kind, free or not. Remembers results."""

    def __init__(
        self,
        slots: Sequence[RankSlot],
        constraints: Constraints,
        providers: frozenset[str],
    ) -> None:
        """`providers` as for `RankTable`."""
        self.constraints = constraints
        self._providers = providers
        self._by_class: dict[SlotClass, list[RankSlot]] = {}
        for slot in slots:
            self._by_class.setdefault(class_of(slot, providers), []).append(slot)
        self._slot_of = {rank: slot for slot in slots for rank in slot.ranks}
        self._counts: dict[str, dict[SlotClass, list[int]]] = {}
        self._sizes: dict[tuple[SlotClass, str, int], tuple[int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_class)

    def least_nodes(self, request: ResourceRequest) -> int:
        """Return the fewest nodes that a job needs in some slot; 0 if none would do."""
        needs = (nodes_needed(request, shape) for shape, _ in self._by_class)
        return min(filter(None, needs), default=0)

    def nodes_for(
        self, demand: Demand, source: Source, most: int, *, spread: bool
    ) -> int:
        """Return how many nodes of an offer a job would get at some time; 0 for none.

        `most` is how many nodes one burst of the offer may have; with `spread` the job
        may have several bursts.
        """
        classes = (
            kind for kind in self._by_class if may_lease(source.provider, kind[1])
        )
        for kind in by_need(demand.request, classes):
            need = nodes_wanted(demand, source, kind[0])
            if not isinstance(need, OfferRejection):
                sizes = self._capacity(kind, demand.request.constraint, most)
                if sizes[spread] >= need:
                    return need
        return 0

    def why_never(
        self, request: ResourceRequest, caps: Mapping[str, int], spread: bool
    ) -> tuple[Reason, dict[str, object]] | None:
        """Return why no slot could ever serve a job, None if one could.

        `caps` is the most nodes that each provider has in one burst; with `spread`
        a job may have several bursts.
        """
        most = need = 0
        shaped = False
        facts: dict[str, object] = {"want": describe_need(request)}
        for slot_class in self._by_class:
            wanted = nodes_needed(request, slot_class[0])
            if not wanted:
                continue
            shaped = True
            who = slot_class[1] or caps
            cap = max((caps[name] for name in who if name in caps), default=0)
            largest, together = self._capacity(slot_class, request.constraint, cap)
            here = together if spread else largest
            if here >= wanted:
                return None
            most, need = max(most, here), max(need, wanted)
        if not shaped:
            return Reason.NEVER_FITS, facts
        if request.constraint and not self._count(request.constraint):
            return Reason.EXCLUDED, facts
        return Reason.TOO_LARGE, {**facts, "need": need, "most": most}

    def _capacity(
        self, slot_class: SlotClass, constraint: str, cap: int
    ) -> tuple[int, int]:
        """Return the most nodes, free or not, in one slot of a kind, and in all."""
        key = slot_class, constraint, cap
        if key not in self._sizes:
            if constraint:
                sizes = self._count(constraint).get(slot_class, [])
            else:
                sizes = [slot.size for slot in self._by_class[slot_class]]
            capped = [min(cap, size) for size in sizes]
            self._sizes[key] = max(capped, default=0), sum(capped)
        return self._sizes[key]

    def _count(self, constraint: str) -> Mapping[SlotClass, list[int]]:
        """Return by kind of slots how many ranks are admitted of each slot with any."""
        found = self._counts.get(constraint)
        if found is None:
            admitted = self.constraints.admitted(constraint)
            there = (self._slot_of[rank] for rank in admitted if rank in self._slot_of)
            found = {}
            for slot in {slot.ranks: slot for slot in there}.values():
                size = _admitted(slot, admitted)
                if size:
                    kind = class_of(slot, self._providers)
                    found.setdefault(kind, []).append(size)
            self._counts[constraint] = found
        return found


def _admitted(slot: RankSlot, admitted: frozenset[int]) -> int:
    if not slot.divisible:
        return run_of(slot, admitted)
    return sum(rank in admitted for rank in slot.ranks)
