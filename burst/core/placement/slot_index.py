# SPDX-License-Identifier: MIT
"""The free rank slots while a plan is made: which would do for a job, and how large."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from burst.core.placement.demand import nodes_needed
from burst.core.placement.free_ranks import narrowed, run_of
from burst.core.placement.slot_group import SlotClass, SlotGroup, by_size, class_of
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
    ) -> None:
        """`free` are as `free_ranks` finds them: some of a part of their ranks."""
        self._constraints = constraints
        self._slots = slots
        self._named = {slot.name: slot for slot in slots}
        self._name_of = {rank: slot.name for slot in slots for rank in slot.ranks}
        # All ranks that may be lent have that property, whatever a provider is called.
        self._providers = providers - {LENT}
        self._all = self._by_class(slots)
        whole: list[RankSlot] = []
        rests: list[RankSlot] = []
        for slot in free:
            is_whole = slot.size == self._named[slot.name].size
            (whole if is_whole else rests).append(slot)
        # Whole ones are taken first.
        self._free = [
            SlotGroup(whole, self._providers),
            SlotGroup(rests, self._providers),
        ]
        self._free_kinds: dict[str, list[SlotClass]] = {}
        self._counts: dict[str, Mapping[str, int]] = {}
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
            classes = dict.fromkeys(
                slot_class for group in self._free for slot_class in group.classes()
            )
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
        """Return the names of all slots that are free as a whole."""
        return frozenset(self._free[0].names)

    def withhold(self, names: Set[str]) -> None:
        """Find nothing of these slots from now on, and what is free of all others."""
        for group in self._free:
            group.withhold(names)
        self._free_kinds.clear()

    @property
    def withholds(self) -> bool:
        """Whether something that is free is withheld."""
        return any(group.withholds for group in self._free)

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
        for whole in itertools.chain.from_iterable(
            reversed([*self._in_group(group, slot_class, 1, constraint)])
            for group in self._free
        ):
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

    def take(self, slot: RankSlot) -> None:
        """Lease the slot: nothing of it is free any more in this plan."""
        self._free_kinds.clear()
        for group in self._free:
            group.remove(slot.name)

    def _found(
        self, slot_class: SlotClass, nodes: int, constraint: str
    ) -> Iterator[RankSlot]:
        """Return what is free of slots and holds so many nodes: whole ones first."""
        return itertools.chain.from_iterable(
            self._in_group(group, slot_class, nodes, constraint) for group in self._free
        )

    def _in_group(
        self, group: SlotGroup, slot_class: SlotClass, nodes: int, constraint: str
    ) -> Iterator[RankSlot]:
        if not constraint:
            return group.fitting(slot_class, nodes)
        count, admitted = self._count(constraint), self.admitted(constraint)
        return (
            slot
            for slot in group.fitting(slot_class, nodes, count)
            if count.get(slot.name, 0) >= nodes
            and (
                slot.size == self._named[slot.name].size
                or narrowed(slot, admitted).size >= nodes
            )
        )

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
