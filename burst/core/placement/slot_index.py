# SPDX-License-Identifier: MIT
"""The free rank slots while a plan is made: which would do for a job, and how large."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from burst.core.placement.demand import nodes_needed
from burst.core.placement.slot_rests import (
    SlotClass,
    SlotRests,
    by_size,
    class_of,
    narrowed,
    run_of,
)
from burst.core.placement.slots import RankSlot
from burst.core.select.constraints import Constraints
from burst.model.confinement import LENT
from burst.model.reason import Reason
from burst.model.request import ResourceRequest

SlotShare = tuple[RankSlot, int]
"""A slot, of the ranks that a job may have, and how many nodes from its first."""


class SlotIndex:
    """All rank slots, and those still free, sorted so that a fit is found at once.

    A slot that has a provider's name among its properties is kept for that provider.
    """

    def __init__(
        self,
        slots: Sequence[RankSlot],
        free: Iterable[RankSlot],
        constraints: Constraints,
        providers: frozenset[str],
        rests: Iterable[RankSlot] = (),
    ) -> None:
        """`rests` are what live bursts leave of slots that are not free as a whole."""
        self._constraints = constraints
        self._slots = slots
        self._named = {slot.name: slot for slot in slots}
        self._name_of = {rank: slot.name for slot in slots for rank in slot.ranks}
        # All ranks that may be lent have that property, whatever a provider is called.
        self._providers = providers - {LENT}
        self._all = self._by_class(slots)
        self._free = self._by_class(free)
        self._names = {k: {slot.name for slot in s} for k, s in self._free.items()}
        self._rests = SlotRests(rests, self._providers)
        self._free_kinds: dict[str, list[SlotClass]] = {}
        self._counts: dict[str, Mapping[str, int]] = {}
        """What was free of slots that were taken in this plan, by name."""
        self._sizes: dict[tuple[SlotClass, int], tuple[int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._slots)

    def admitted(self, constraint: str) -> frozenset[int]:
        """Return the ranks that a constraint admits."""
        return self._constraints.admitted(constraint)

    def admitted_to(self, request: ResourceRequest) -> frozenset[int] | None:
        """See `Constraints.admitted_to`."""
        return self._constraints.admitted_to(request)

    def usable(self, slot: RankSlot, constraint: str) -> int:
        """Return how many ranks from the slot's first one a constraint admits."""
        return run_of(slot, self.admitted(constraint)) if constraint else slot.size

    def free_classes(self, provider: str) -> list[SlotClass]:
        """Return the kinds of free slots that a provider may use."""
        found = self._free_kinds.get(provider)
        if found is None:
            classes = dict.fromkeys(self._free)
            classes |= dict.fromkeys(self._rests.classes())
            found = self._free_kinds[provider] = [
                slot_class
                for slot_class in classes
                if not slot_class[1] or provider in slot_class[1]
            ]
        return found

    def all_classes(self, provider: str) -> list[SlotClass]:
        """Return the kinds of all slots that a provider may use."""
        return [
            slot_class
            for slot_class in self._all
            if not slot_class[1] or provider in slot_class[1]
        ]

    def usable_slots(
        self, slot_class: SlotClass, constraint: str
    ) -> list[tuple[RankSlot, int]]:
        """Return all slots of a kind, and how many nodes of each a job may have."""
        slots = self._all[slot_class]
        if not constraint:
            return [(slot, slot.size) for slot in slots]
        count = self._count(constraint)
        return [(slot, count[slot.name]) for slot in slots if slot.name in count]

    def size_of(self, name: str) -> int:
        """Return how many ranks a slot has, free or not."""
        return self._named[name].size

    def free_slot_names(self) -> frozenset[str]:
        """Return the names of all slots that are free."""
        return frozenset().union(*self._names.values())

    def withhold(self, names: Set[str]) -> list[tuple[SlotClass, RankSlot]]:
        """Take what is free of these slots out of those that are; return it."""
        slots = [
            self._named[name] for name in self.free_slot_names().intersection(names)
        ]
        kept = [(self._slot_class(slot), slot) for slot in slots]
        for slot_class, slot in kept:
            self.take(slot_class, slot)
        self._rests.withhold(names)
        self._free_kinds.clear()
        return kept

    @property
    def withholds_rest(self) -> bool:
        """Whether what is left of some slot is withheld."""
        return self._rests.withholds

    def restore(self, kept: Iterable[tuple[SlotClass, RankSlot]]) -> None:
        """Make slots that were kept free again, and what is left of others."""
        self._rests.withhold(frozenset())
        self._free_kinds.clear()
        for slot_class, slot in kept:
            bisect.insort(self._free.setdefault(slot_class, []), slot, key=by_size)
            self._names.setdefault(slot_class, set()).add(slot.name)

    def fitting(
        self, slot_class: SlotClass, nodes: int, constraint: str
    ) -> Iterator[RankSlot]:
        """Return the free slots of a kind that hold that many nodes, smallest first.

        Then what is left of others. Where the constraint does not admit the first so
        many ranks of one, those that it admits.
        """
        found = self._found(slot_class, nodes, constraint)
        if not constraint:
            return found
        admitted = self.admitted(constraint)
        return (
            slot if run_of(slot, admitted) >= nodes else narrowed(slot, admitted)
            for slot in found
        )

    def split_over_slots(
        self, slot_class: SlotClass, nodes: int, constraint: str, cap: int
    ) -> list[SlotShare] | None:
        """Return free slots of a kind that hold them together, largest first."""
        pieces: list[SlotShare] = []
        free = [*self._free_for(slot_class, 1, constraint)]
        rests = [*self._rests_for(slot_class, 1, constraint)]
        for whole in itertools.chain(reversed(free), reversed(rests)):
            slot = narrowed(whole, self.admitted(constraint)) if constraint else whole
            here = min(nodes, cap, slot.size)
            pieces.append((slot, here))
            nodes -= here
            if not nodes:
                return pieces
        return None

    def largest_free(self, slot_class: SlotClass, constraint: str) -> int:
        """Return the size of the largest free slot of a kind, 0 if there is none."""
        found = self._found(slot_class, 1, constraint)
        if constraint:
            admitted = self.admitted(constraint)
            found = (narrowed(slot, admitted) for slot in found)
        return max((slot.size for slot in found), default=0)

    def take(self, slot_class: SlotClass, slot: RankSlot) -> None:
        """Lease the slot: nothing of it is free any more in this plan."""
        self._free_kinds.clear()
        if self._rests.remove(slot.name):
            return
        slots = self._free[slot_class]
        slots.remove(self._named[slot.name])
        self._names[slot_class].remove(slot.name)
        if not slots:
            del self._free[slot_class]

    def _found(
        self, slot_class: SlotClass, nodes: int, constraint: str
    ) -> Iterator[RankSlot]:
        """Return what is free of slots and holds so many nodes: whole ones first."""
        free = self._free_for(slot_class, nodes, constraint)
        return itertools.chain(free, self._rests_for(slot_class, nodes, constraint))

    def _free_for(
        self, slot_class: SlotClass, nodes: int, constraint: str
    ) -> Iterator[RankSlot]:
        """Return the slots of a kind that are free and hold so many nodes."""
        slots = self._fit(slot_class, constraint)
        first = bisect.bisect_left(slots, nodes, key=lambda slot: slot.size)
        fit: Iterator[RankSlot] = itertools.islice(slots, first, None)
        if not constraint:
            return fit
        count = self._count(constraint)
        return (slot for slot in fit if count[slot.name] >= nodes)

    def _rests_for(
        self, slot_class: SlotClass, nodes: int, constraint: str
    ) -> Iterator[RankSlot]:
        """Return what is left of slots of a kind that holds so many nodes."""
        if not constraint:
            return self._rests.fitting(slot_class, nodes)
        return self._rests.admitted(slot_class, nodes, self.admitted(constraint))

    def least_nodes(self, request: ResourceRequest) -> int:
        """Return how many nodes of some slot would do for a job; 0 if none would."""
        needs = (nodes_needed(request, slot_class[0]) for slot_class in self._all)
        return min(filter(None, needs), default=0)

    def why_never(
        self, request: ResourceRequest, caps: Mapping[str, int], spread: bool
    ) -> tuple[Reason, dict[str, object]] | None:
        """Return why no slot could ever serve a job, None if one could.

        `caps` is the most nodes that each provider has in one burst; with `spread`
        a job may have several bursts.
        """
        most = need = 0
        shaped = False
        for slot_class in self._all:
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
            return Reason.NEVER_FITS, {}
        if request.constraint and not self._count(request.constraint):
            return Reason.EXCLUDED, {}
        return Reason.TOO_LARGE, {"need": need, "most": most}

    def _fit(self, slot_class: SlotClass, constraint: str) -> Sequence[RankSlot]:
        """Return the free slots of a kind of which a constraint admits any rank.

        By size, then rank, as all lists of slots here.
        """
        slots = self._free.get(slot_class, [])
        if not constraint or not slots:
            return slots
        count = self._count(constraint)
        if len(count) < len(slots):
            free = self._names[slot_class]
            few = [self._named[name] for name in count if name in free]
            return sorted(few, key=by_size)
        return [slot for slot in slots if slot.name in count]

    def _count(self, constraint: str) -> Mapping[str, int]:
        """Return how many ranks of each slot are admitted, if any are."""
        found = self._counts.get(constraint)
        if found is None:
            admitted, names = self.admitted(constraint), self._name_of
            if len(admitted) < len(self._slots):
                some = {names[rank] for rank in admitted if rank in names}
                slots = [self._named[name] for name in some]
            else:
                slots = [s for s in self._slots if not admitted.isdisjoint(s.ranks)]
            sizes = ((slot.name, narrowed(slot, admitted).size) for slot in slots)
            found = {name: size for name, size in sizes if size}
            self._counts[constraint] = found
        return found

    def _capacity(
        self, slot_class: SlotClass, constraint: str, cap: int
    ) -> tuple[int, int]:
        """Return the most nodes in one slot of a kind, free or not, and in all."""
        if constraint:
            sizes = [
                min(cap, size)
                for name, size in self._count(constraint).items()
                if self._slot_class(self._named[name]) == slot_class
            ]
            return max(sizes, default=0), sum(sizes)
        key = slot_class, cap
        if key not in self._sizes:
            sizes = [min(cap, slot.size) for slot in self._all[slot_class]]
            self._sizes[key] = max(sizes), sum(sizes)
        return self._sizes[key]

    def _slot_class(self, slot: RankSlot) -> SlotClass:
        return class_of(slot, self._providers)

    def _by_class(self, slots: Iterable[RankSlot]) -> dict[SlotClass, list[RankSlot]]:
        classes: dict[SlotClass, list[RankSlot]] = {}
        for slot in slots:
            classes.setdefault(self._slot_class(slot), []).append(slot)
        for group in classes.values():
            group.sort(key=by_size)
        return classes
