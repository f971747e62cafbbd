# SPDX-License-Identifier: MIT
"""A place of a job: ranks and a time; and the search for it among ranks in time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from types import MappingProxyType
from typing import NamedTuple

from burst.core.plan.slots import RankSlot
from burst.model.burst import BurstId


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
