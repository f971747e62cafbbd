# SPDX-License-Identifier: MIT
"""Cores and GPUs of ranks, as R objects (RFC 20) have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from burst.model.resource_set import resource_set
from burst.model.shape import Shape


class NodeSet(msgspec.Struct, frozen=True):
    """Cores and GPUs by rank: ids, since two sets may overlap."""

    cores: Mapping[int, frozenset[int]]
    gpus: Mapping[int, frozenset[int]]

    @property
    def ranks(self) -> frozenset[int]:
        """All ranks with a core or a GPU in this set."""
        return frozenset(self.cores) | frozenset(self.gpus)

    def shape(self, rank: int) -> Shape:
        """Return how many cores and GPUs of one rank there are."""
        return Shape(len(self.cores.get(rank, ())), len(self.gpus.get(rank, ())))


def parse_nodes(*resource_sets: Mapping[str, Any] | None) -> NodeSet:
    """Return what is in any of these R objects. Raises ValueError.

    None is an empty R: Fluxion answers with null where nothing is allocated or down
    (status_request_cb in flux-sched's resource/modules/resource.cpp).
    """
    cores: dict[int, frozenset[int]] = {}
    gpus: dict[int, frozenset[int]] = {}
    for each in filter(None, resource_sets):
        for group in resource_set(each).groups:
            for ids, found in ((group.ids("core"), cores), (group.ids("gpu"), gpus)):
                for rank in group.ranks if ids else ():
                    found[rank] = found.get(rank, frozenset()) | ids
    return NodeSet(cores, gpus)


def without(nodes: NodeSet, taken: NodeSet) -> NodeSet:
    """Return `nodes` without `taken`; GPUs are left only on ranks with cores left."""
    none: frozenset[int] = frozenset()
    cores = {
        rank: ids - taken.cores.get(rank, none) for rank, ids in nodes.cores.items()
    }
    left = {rank: ids for rank, ids in cores.items() if ids}
    gpus = {rank: ids - taken.gpus.get(rank, none) for rank, ids in nodes.gpus.items()}
    return NodeSet(left, {rank: gpus[rank] for rank in left if gpus.get(rank)})
