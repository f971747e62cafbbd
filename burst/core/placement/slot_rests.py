# SPDX-License-Identifier: MIT
"""What bursts leave of rank slots, while a plan is made: free, but no whole slots."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Set

from burst.core.placement.slots import RankSlot
from burst.model.shape import Shape

SlotClass = tuple[Shape, frozenset[str]]
"""What slots are alike in: a node's shape, and the providers they are kept for."""


def class_of(slot: RankSlot, providers: frozenset[str]) -> SlotClass:
    """Return what a slot is alike in with others; `providers` are all there are."""
    return slot.shape, slot.properties & providers


class SlotRests:
    """One rest for each slot at most: its free ranks, with the slot's name."""

    def __init__(self, rests: Iterable[RankSlot], providers: frozenset[str]) -> None:
        """`providers` as for `class_of`."""
        self._providers = providers
        self._by_name = {rest.name: rest for rest in rests}
        self._by_first = {rest.ranks[0]: rest for rest in self._by_name.values()}
        self._sorted: dict[SlotClass, list[RankSlot]] = {}
        for rest in sorted(self._by_name.values(), key=by_size):
            self._sorted.setdefault(self._slot_class(rest), []).append(rest)
        self._kept: Set[str] = frozenset()
        self.withholds = False
        """Whether there are rests that are not found."""

    def add(self, rest: RankSlot) -> None:
        """Take in what is left of a slot of which there is no rest."""
        self._by_name[rest.name] = self._by_first[rest.ranks[0]] = rest
        group = self._sorted.setdefault(self._slot_class(rest), [])
        bisect.insort(group, rest, key=by_size)

    def remove(self, rest: RankSlot) -> bool:
        """Take a rest; tell whether it was one."""
        if self._by_name.get(rest.name) is not rest:
            return False
        del self._by_name[rest.name], self._by_first[rest.ranks[0]]
        slot_class = self._slot_class(rest)
        group = self._sorted[slot_class]
        del group[bisect.bisect_left(group, by_size(rest), key=by_size)]
        if not group:
            del self._sorted[slot_class]
        self.withhold(self._kept)
        return True

    def withhold(self, names: Set[str]) -> None:
        """Find no rest of these slots from now on."""
        self._kept = names
        self.withholds = any(name in self._by_name for name in names)

    def classes(self) -> list[SlotClass]:
        """Return the kinds of the rests that are found."""
        return [
            slot_class
            for slot_class, group in self._sorted.items()
            if any(rest.name not in self._kept for rest in group)
        ]

    def fitting(self, slot_class: SlotClass, nodes: int) -> Iterator[RankSlot]:
        """Return the rests of a kind that hold so many nodes, smallest first."""
        group = self._sorted.get(slot_class, [])
        first = bisect.bisect_left(group, nodes, key=lambda rest: rest.size)
        fit = itertools.islice(group, first, None)
        return (rest for rest in fit if rest.name not in self._kept)

    def admitted(
        self, slot_class: SlotClass, nodes: int, ranks: frozenset[int]
    ) -> Iterator[RankSlot]:
        """Return those whose first so many ranks are among these, smallest first."""
        by_first = self._by_first
        few = len(ranks) < len(by_first)
        starts = filter(by_first.__contains__, ranks) if few else by_first
        found = [
            by_first[rank]
            for rank in starts
            if rank in ranks
            and self._slot_class(by_first[rank]) == slot_class
            and by_first[rank].name not in self._kept
            and run_of(by_first[rank], ranks) >= nodes
        ]
        return iter(sorted(found, key=by_size))

    def _slot_class(self, rest: RankSlot) -> SlotClass:
        return class_of(rest, self._providers)


def by_size(slot: RankSlot) -> tuple[int, tuple[int, ...]]:
    """Return by what lists of slots are sorted: by size, then rank."""
    return slot.size, slot.ranks


def run_of(slot: RankSlot, admitted: frozenset[int]) -> int:
    """Return how many ranks from a slot's first one are admitted."""
    for number, rank in enumerate(slot.ranks):
        if rank not in admitted:
            return number
    return slot.size
