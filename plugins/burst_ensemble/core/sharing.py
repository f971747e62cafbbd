# SPDX-License-Identifier: MIT
"""Fair share: who gets how many nodes where members want more than there may be.

Max-min by demand with weights: nobody gets more than it wants, and what one gets for
each unit of weight is as large as it can be without taking from one that has less.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

import msgspec


class Want(msgspec.Struct, frozen=True):
    """How many nodes a member wants."""

    floor: int
    """It keeps as many in any case."""
    demand: int
    """It wants as many; not less than the floor."""
    weight: float = 1.0


def fair_share(capacity: int, wants: Mapping[str, Want]) -> dict[str, int]:
    """Return how many nodes each gets; together at most `capacity`, or the floors.

    Of equals the first in order gets the odd node.
    """
    if sum(want.demand for want in wants.values()) <= capacity:
        return {name: want.demand for name, want in wants.items()}
    given = {name: want.floor for name, want in wants.items()}
    left = capacity - sum(given.values())
    line = [
        ((want.floor + 1) / want.weight, place, name)
        for place, (name, want) in enumerate(wants.items())
        if want.floor < want.demand
    ]
    heapq.heapify(line)
    while left > 0 and line:
        _, place, name = heapq.heappop(line)
        given[name] += 1
        left -= 1
        want = wants[name]
        if given[name] < want.demand:
            heapq.heappush(line, ((given[name] + 1) / want.weight, place, name))
    return given
