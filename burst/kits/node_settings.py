# SPDX-License-Identifier: MIT
"""Settings of providers whose nodes share a directory with the daemon's host.

`burst.kits.followers` writes what starts a follower into that directory, and another
scheduler or a site's program runs it on the nodes.
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
    """Settings of equal nodes. A provider's Settings derive from it."""

    dir: str
    """Where bursts have their files: a directory that this host and the nodes share
    at the same path, which only this user may write. Change it only while no burst
    lives."""
    cores: _AtLeast1
    """Of each node, as the lead's R declares them."""
    max_nodes: _AtLeast1
    """Of one burst."""
    gpus: _AtLeast0 = 0
    """Of each node."""
    flux: str = "flux"
    """The program on the nodes, by path, or by a name that is found by this daemon's
    PATH there. Its version must be the lead's."""
    price: Price = 0.0
    """Per node and hour."""
    join_time: Seconds = Seconds(0)
    """From the request until followers join, as far as is known; 0 if not."""

    def offer(self, lifetime: float, total: int = 0) -> Offer:
        """Return the one offer, OFFER. `lifetime` is in seconds, 0 without an end."""
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
            raise ValueError(f"dir: {self.dir!r} is no absolute path")
