# SPDX-License-Identifier: MIT
"""The free rank slots while a plan is made: which would do for a job, and how large."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence

from burst.core.demand import admits, nodes_needed
from burst.core.slots import RankSlot
from burst.model.lead import LeadIdentity
from burst.model.reason import Reason
from burst.model.request import Request
from burst.model.shape import Shape

Kind = tuple[Shape, frozenset[str]]
"""What slots are alike in: a node's shape, and the providers they are kept for."""
Piece = tuple[RankSlot, int]
"""A slot and how many nodes of it, from its first rank."""


class Ground:
    """All rank slots, and those still free, sorted so that a fit is found at once.

    A slot that has a provider's name among its properties is kept for that provider.
    """

    def __init__(
        self,
        slots: Sequence[RankSlot],
        free: Iterable[RankSlot],
        identity: LeadIdentity,
        providers: frozenset[str],
    ) -> None:
        self._identity = identity
        self._prefixes: dict[tuple[str, str], int] = {}
        self._all = _by_kind(slots, providers)
        self._free = _by_kind(free, providers)

    def __bool__(self) -> bool:
        return bool(self._all)

    def admits(self, constraint: str, rank: int) -> bool:
        """Tell whether a constraint admits a rank."""
        return admits(constraint, rank, self._identity)

    def usable(self, slot: RankSlot, constraint: str) -> int:
        """Return how many ranks from the slot's first one a constraint admits."""
        if not constraint:
            return slot.size
        key = slot.name, constraint
        if key not in self._prefixes:
            admitted = 0
            for rank in slot.ranks:
                if not admits(constraint, rank, self._identity):
                    break
                admitted += 1
            self._prefixes[key] = admitted
        return self._prefixes[key]

    def kinds(self, provider: str) -> list[Kind]:
        """Return the kinds of free slots that a provider may use."""
        return [kind for kind in self._free if not kind[1] or provider in kind[1]]

    def one(self, kind: Kind, nodes: int, constraint: str) -> RankSlot | None:
        """Return the smallest free slot of a kind that holds that many nodes."""
        slots = self._free[kind]
        first = bisect.bisect_left(slots, nodes, key=lambda slot: slot.size)
        for slot in slots[first:] if constraint else slots[first : first + 1]:
            if self.usable(slot, constraint) >= nodes:
                return slot
        return None

    def several(
        self, kind: Kind, nodes: int, constraint: str, cap: int
    ) -> list[Piece] | None:
        """Return free slots of a kind that hold them together, largest first."""
        pieces: list[Piece] = []
        for slot in reversed(self._free[kind]):
            here = min(nodes, cap, self.usable(slot, constraint))
            if here:
                pieces.append((slot, here))
                nodes -= here
            if not nodes:
                return pieces
        return None

    def most(self, kind: Kind, constraint: str) -> int:
        """Return the size of the largest free slot of a kind, 0 if there is none."""
        slots = self._free[kind]
        if constraint:
            return max((self.usable(slot, constraint) for slot in slots), default=0)
        return slots[-1].size

    def take(self, kind: Kind, slot: RankSlot) -> None:
        """Lease the slot: it is not free any more."""
        slots = self._free[kind]
        slots.remove(slot)
        if not slots:
            del self._free[kind]

    def never(
        self, request: Request, caps: dict[str, int], spread: bool
    ) -> tuple[Reason, dict[str, object]] | None:
        """Return why no slot could ever serve a job, None if one could.

        `caps` is the most nodes that each provider has in one burst; with `spread`
        a job may have several bursts.
        """
        most = need = 0
        shaped = False
        for (shape, kept_for), slots in self._all.items():
            wanted = nodes_needed(request, shape)
            if not wanted:
                continue
            shaped = True
            cap = max(
                (caps[name] for name in caps if name in (kept_for or caps)), default=0
            )
            sizes = [min(cap, self.usable(s, request.constraint)) for s in slots]
            here = sum(sizes) if spread else max(sizes)
            if here >= wanted:
                return None
            most, need = max(most, here), max(need, wanted)
        if not shaped:
            return Reason.NEVER_FITS, {}
        if not any(
            self.usable(slot, request.constraint)
            for slots in self._all.values()
            for slot in slots
        ):
            return Reason.EXCLUDED, {}
        return Reason.TOO_LARGE, {"need": need, "most": most}


def _by_kind(
    slots: Iterable[RankSlot], providers: frozenset[str]
) -> dict[Kind, list[RankSlot]]:
    kinds: dict[Kind, list[RankSlot]] = {}
    for slot in slots:
        kinds.setdefault((slot.shape, slot.properties & providers), []).append(slot)
    for group in kinds.values():
        group.sort(key=lambda slot: (slot.size, slot.ranks))
    return kinds
