# SPDX-License-Identifier: MIT
"""Settings of providers whose nodes share a directory with the daemon's host.

`burst.kits.followers` writes the scripts that start followers into that directory, and
another scheduler or a site's program runs them on the nodes.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from burst.config import Price, Seconds
from burst.model.shape import Shape
from burst.provider import Offer

OFFER = "nodes"
"""The name of the one offer."""

_AtLeast1 = Annotated[int, msgspec.Meta(ge=1)]
_AtLeast0 = Annotated[int, msgspec.Meta(ge=0)]


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for equal nodes. The Settings of a provider derive from it."""

    dir: str
    """The directory for the files of bursts. This host and the nodes share it at the
    same path, and only this user may write it. Change it only while no burst lives."""
    cores: _AtLeast1
    """Cores of each node, as the lead's R declares them."""
    max_nodes: _AtLeast1
    """The most nodes of one burst."""
    gpus: _AtLeast0 = 0
    """GPUs of each node."""
    flux: str = "flux"
    """The flux program on the nodes: a path, or a name that the nodes find by this
    daemon's PATH. Its version must be the lead's."""
    price: Price = 0.0
    """Price per node and hour."""
    join_time: Seconds = Seconds(0)
    """Expected time from the request until followers join; 0 if it is not known."""

    def offer(self, lifetime: float, total: int = 0) -> Offer:
        """Return the one offer, OFFER. `lifetime` is in seconds; 0 for no limit.

        `total` is the number of nodes for all bursts together; 0 if it is not known.
        """
        return Offer(
            name=OFFER,
            shape=Shape(self.cores, self.gpus),
            max_nodes=self.max_nodes,
            total=total,
            price=self.price,
            join_time=self.join_time,
            lifetime=lifetime,
        )

    def __post_init__(self) -> None:
        """Check what the types cannot express. Raises ValueError."""
        if not self.dir.startswith("/"):
            raise ValueError(f"dir: {self.dir!r} is not an absolute path")
