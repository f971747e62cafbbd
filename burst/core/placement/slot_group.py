# SPDX-License-Identifier: MIT
"""Free rank slots by kind and size, while a plan is made."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Collection, Iterable, Iterator, Set

from burst.core.placement.slots import RankSlot
from burst.model.shape import Shape

SlotClass = tuple[Shape, frozenset[str]]
"""What slots are alike in: a node's shape, and the providers they are kept for."""


def class_of(slot: RankSlot, providers: frozenset[str]) -> SlotClass:
    """Return what a slot is alike in with others; `providers` are all there are."""
    return slot.shape, slot.properties & providers


def by_size(slot: RankSlot) -> tuple[int, tuple[int, ...]]:
    """Return by what lists of slots are sorted: by size, then rank."""
    return slot.size, slot.ranks


class SlotGroup:
    """What is free of some slots; one that is withheld is not found."""

    def __init__(self, slots: Iterable[RankSlot], providers: frozenset[str]) -> None:
        """`providers` as for `class_of`."""
        self._providers = providers
        self._by_name = {slot.name: slot for slot in slots}
        self._sorted: dict[SlotClass, list[RankSlot]] = {}
        for slot in sorted(self._by_name.values(), key=by_size):
            self._sorted.setdefault(self._class_of(slot), []).append(slot)
        self._withheld: Set[str] = frozenset()

    @property
    def names(self) -> Set[str]:
        """The names of all of them."""
        return self._by_name.keys()

    @property
    def withholds(self) -> bool:
        """Whether there are slots that are not found."""
        return not self._withheld.isdisjoint(self._by_name)

    def remove(self, name: str) -> bool:
        """Take a slot out for good; tell whether it was there."""
        slot = self._by_name.pop(name, None)
        if slot is None:
            return False
        slot_class = self._class_of(slot)
        group = self._sorted[slot_class]
        del group[bisect.bisect_left(group, by_size(slot), key=by_size)]
        if not group:
            del self._sorted[slot_class]
        return True

    def withhold(self, names: Set[str]) -> None:
        """Find none of these slots from now on, and all others."""
        self._withheld = names

    def classes(self) -> list[SlotClass]:
        """Return the kinds of the slots that are found."""
        return [
            slot_class
            for slot_class, group in self._sorted.items()
            if any(slot.name not in self._withheld for slot in group)
        ]

    def fitting(
        self, slot_class: SlotClass, nodes: int, among: Collection[str] | None = None
    ) -> Iterator[RankSlot]:
        """Return the slots of a kind that hold so many nodes, smallest first.

        Where `among` are a few names, of these alone.
        """
        group = self._sorted.get(slot_class, [])
        if among is not None and len(among) < len(group):
            named = (self._by_name[name] for name in among if name in self._by_name)
            few = (slot for slot in named if self._class_of(slot) == slot_class)
            group = sorted(few, key=by_size)
        first = bisect.bisect_left(group, nodes, key=lambda slot: slot.size)
        fit = itertools.islice(group, first, None)
        return (slot for slot in fit if slot.name not in self._withheld)

    def _class_of(self, slot: RankSlot) -> SlotClass:
        return class_of(slot, self._providers)
