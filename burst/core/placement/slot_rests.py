# SPDX-License-Identifier: MIT
"""What bursts leave of rank slots, while a plan is made: free, but no whole slots."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Set

import msgspec

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
        self._sorted: dict[SlotClass, list[RankSlot]] = {}
        for rest in sorted(self._by_name.values(), key=by_size):
            self._sorted.setdefault(self._slot_class(rest), []).append(rest)
        self._kept: Set[str] = frozenset()
        self.withholds = False
        """Whether there are rests that are not found."""

    def remove(self, name: str) -> bool:
        """Take the rest of a slot; tell whether there was one."""
        rest = self._by_name.pop(name, None)
        if rest is None:
            return False
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
        """Return the rests of which so many of these ranks are, smallest first."""
        return (
            rest
            for rest in self.fitting(slot_class, nodes)
            if narrowed(rest, ranks).size >= nodes
        )

    def _slot_class(self, rest: RankSlot) -> SlotClass:
        return class_of(rest, self._providers)


def by_size(slot: RankSlot) -> tuple[int, tuple[int, ...]]:
    """Return by what lists of slots are sorted: by size, then rank."""
    return slot.size, slot.ranks


def narrowed(slot: RankSlot, admitted: frozenset[int]) -> RankSlot:
    """Return a slot of those ranks alone that are admitted; it may have none.

    Hosts that join through another one have to be in the same burst: of such a slot
    the first ranks, up to one that is not admitted.
    """
    if not slot.divisible:
        first = run_of(slot, admitted)
        pairs = [*zip(slot.ranks, slot.hosts, strict=True)][:first]
    else:
        both = zip(slot.ranks, slot.hosts, strict=True)
        pairs = [(rank, host) for rank, host in both if rank in admitted]
    if len(pairs) == slot.size:
        return slot
    ranks, hosts = tuple(r for r, _ in pairs), tuple(h for _, h in pairs)
    return msgspec.structs.replace(slot, ranks=ranks, hosts=hosts)


def run_of(slot: RankSlot, admitted: frozenset[int]) -> int:
    """Return how many ranks from a slot's first one are admitted."""
    for number, rank in enumerate(slot.ranks):
        if rank not in admitted:
            return number
    return slot.size
