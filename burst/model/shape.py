# SPDX-License-Identifier: MIT
"""The resources of one node."""

from __future__ import annotations

import msgspec


class Shape(msgspec.Struct, frozen=True):
    """Cores and GPUs of one node, as in R (RFC 20). R does not describe memory."""

    cores: int
    gpus: int = 0

    def holds(self, other: Shape) -> bool:
        """Tell whether a node of this shape can replace one of the other shape."""
        return self.cores >= other.cores and self.gpus >= other.gpus

    def __str__(self) -> str:
        cores = f"{self.cores} core{'s' * (self.cores != 1)}"
        if not self.gpus:
            return cores
        return f"{cores}, {self.gpus} GPU{'s' * (self.gpus != 1)}"
