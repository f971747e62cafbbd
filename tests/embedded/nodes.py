# SPDX-License-Identifier: MIT
"""R of a few nodes, for tests of the queue and of the pool."""

from __future__ import annotations

from collections.abc import Iterable

from burst.model.resource_set import EMPTY, ResourceSet, group_of
from burst.model.shape import Shape


def resources(*nodes: tuple[Shape, Iterable[str]]) -> ResourceSet:
    """Return R of hosts n0, n1…, each with so much and with these properties."""
    found = EMPTY
    for rank, (shape, properties) in enumerate(nodes):
        found = found.with_ranks([group_of([rank], shape)], [f"n{rank}"], properties)
    return found
