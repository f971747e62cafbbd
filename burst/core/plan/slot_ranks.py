# SPDX-License-Identifier: MIT
"""The ranks of one slot while a plan is made, and the search for a job's place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from types import MappingProxyType
from typing import NamedTuple

from burst.core.plan.fit import nodes_needed
from burst.core.plan.leasable import LeasableRanks
from burst.core.plan.slots import RankSlot, only_for
from burst.model.burst import BurstId
from burst.model.request import ResourceRequest
from burst.model.shape import Shape

SlotClass = tuple[Shape, frozenset[str]]
"""A kind of slots: the shape of their nodes, and the providers they are kept for."""


class RankNeed(NamedTuple):
    """The ranks that a job needs: until when, and which ones it may have."""

    until: float
    """When it would have given them back; math.inf if that is not known."""
    admitted: frozenset[int] | None = None
    """The ranks that its constraint admits; None for any."""


class SlotRanks:
    """The ranks of one slot that a plan counts on."""

    def __init__(
        self, slot: RankSlot, ranks: LeasableRanks, providers: frozenset[str]
    ) -> None:
        """`providers` are the names of all providers."""
        self.slot = slot
        self.kind: SlotClass = (slot.shape, only_for(slot, providers))
        self.free = [rank for rank in slot.ranks if rank in ranks.free]
        self.available = {
            rank: 0.0 if rank in ranks.free else ranks.ends[rank]
            for rank in slot.ranks
            if rank in ranks.free or rank in ranks.ends
        }
        """By rank: from when it can be promised."""
        self.drained = {
            rank: ranks.drained[rank] for rank in slot.ranks if rank in ranks.drained
        }
        """As `LeasableRanks.drained`."""
        self.promised: dict[int, float] = {}
        """By promised rank: from when it is kept."""
        if not slot.divisible:
            at = max(self.available.values(), default=0.0)
            some = len(self.available) == slot.size
            self.available = dict.fromkeys(slot.ranks, at) if some else {}

    def usable(self, want: RankNeed) -> list[int]:
        """Return the free ranks that a burst may have for a job.

        Hosts that join through another one have to be in the same burst: such a slot
        gives its first ranks, up to one that is not admitted.
        """
        found = self.free
        if self.promised:
            found = [r for r in found if self.promised.get(r, math.inf) >= want.until]
        if not self.slot.divisible and len(found) < self.slot.size:
            return []
        return self.admitted(found, want.admitted)

    def admitted(self, ranks: list[int], admitted: Set[int] | None) -> list[int]:
        """Return the ranks out of these that a job may have; they are ascending."""
        if admitted is None:
            return ranks
        if self.slot.divisible:
            return [rank for rank in ranks if rank in admitted]
        return ranks[: run_of(self.slot, admitted)]

    def admits(self, rank: int, admitted: Set[int] | None) -> bool:
        """Tell whether a job may have a rank once it is free."""
        return admitted is None or rank in self.admitted([*self.slot.ranks], admitted)

    def size(self, admitted: Set[int] | None) -> int:
        """Return how many of its ranks a job could have if all were free."""
        return len(self.admitted([*self.slot.ranks], admitted))

    def drained_of(self, admitted: Set[int] | None) -> tuple[dict[int, str], int]:
        """Return the drained ranks that a job may have, and how many it would gain."""
        mine = {r: why for r, why in self.drained.items() if self.admits(r, admitted)}
        if not mine or self.slot.divisible:
            return mine, len(mine)
        # Without them it can have nothing of the slot.
        return mine, self.size(admitted)

    def order(self) -> tuple[bool, int, tuple[int, ...]]:
        """Sort key: slots with all ranks free come first; of equals the smallest."""
        return len(self.free) < self.slot.size, len(self.free), self.slot.ranks


def by_need(request: ResourceRequest, classes: Iterable[SlotClass]) -> list[SlotClass]:
    """Return kinds of slots as a job takes them: where it needs fewest nodes first.

    Each node costs the same. Where it needs as many, it takes the smallest nodes, and
    leaves larger ones and GPUs to others. Kinds that do not hold it come last.
    """

    def key(kind: SlotClass) -> tuple[float, int, int]:
        shape, _ = kind
        return nodes_needed(request, shape) or math.inf, shape.gpus, shape.cores

    return sorted(classes, key=key)


def run_of(slot: RankSlot, admitted: Set[int]) -> int:
    """Return how many ranks from a slot's first one are admitted."""
    for number, rank in enumerate(slot.ranks):
        if rank not in admitted:
            return number
    return slot.size


class Place(NamedTuple):
    """Ranks that a job gets, and when."""

    start: float
    ranks: tuple[int, ...]
    known: bool = True
    """Whether time limits tell `start`. If False, the job waits for them until then."""
    last: BurstId | None = None
    """The burst that the job waits for last; None if its last wait is not for the end
    of a burst, but for a job ahead or until a limit allows it."""


class Sizes(NamedTuple):
    """How many nodes a job needs, and in which bursts it may have them."""

    nodes: int
    most: int
    """The most nodes that one burst may have."""
    spread: bool
    """Whether it may have several."""
    own: Set[BurstId] = frozenset()
    """Bursts that the job has already; it needs nodes other than theirs."""
    joins: Mapping[BurstId, float] = MappingProxyType({})
    """Bursts that stay, and when they are idle, as it then gets their nodes."""


class Search:
    """Collects ranks in the order in which they become free, until they are enough."""

    def __init__(self, sizes: Sizes) -> None:
        self.start = math.inf
        """When there are enough ranks; math.inf until that is known."""
        self._sizes = sizes
        self._found: dict[tuple[int, ...], list[int]] = {}
        self._usable = 0

    def add(self, slot: RankSlot, rank: int, at: float) -> None:
        """Add the next rank."""
        sizes, here = self._sizes, self._found.setdefault(slot.ranks, [])
        here.append(rank)
        if len(here) <= sizes.most:
            self._usable += 1
        together = len(here) if sizes.nodes <= sizes.most else 0
        enough = self._usable if sizes.spread else together
        if enough >= sizes.nodes:
            self.start = at

    def ranks(self, *, last: bool) -> tuple[int, ...]:
        """Return the ranks to take: of the smallest slot that has enough, else several.

        They are the ranks that become free first. With `last` they are those of a slot
        that become free last, as others may use the earlier ones meanwhile, and they
        are of as few slots as possible.
        """
        sizes = self._sizes
        most = sizes.most if sizes.spread else sizes.nodes
        by_size = sorted(self._found.values(), key=len)
        one = [here for here in by_size if len(here) >= sizes.nodes <= sizes.most]
        chosen: list[int] = []
        for here in one[:1] or (by_size[::-1] if last else self._found.values()):
            lacks = min(most, sizes.nodes - len(chosen))
            chosen += here[max(0, len(here) - lacks) :] if last else here[:lacks]
        return tuple(sorted(chosen))
