# SPDX-License-Identifier: MIT
"""One rank's resources. Pure."""

from __future__ import annotations

import msgspec

from burst.model.shape import Shape


class NodeResources(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank has, by R."""

    rank: int
    host: str
    cores: frozenset[int]
    gpus: frozenset[int] = frozenset()
    properties: frozenset[str] = frozenset()

    @property
    def shape(self) -> Shape:
        """The same as numbers."""
        return Shape(len(self.cores), len(self.gpus))
