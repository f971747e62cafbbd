# SPDX-License-Identifier: MIT
"""The table of a provider that `burst lead init` writes into burst.toml."""

from __future__ import annotations

from importlib.metadata import entry_points

from burst.errors import ConfigError
from burst.model.shape import Shape
from burst.run_burst_flags import GROUP, TableTemplate

_LOCAL = """\
[providers.local]
# Followers are processes on the lead's own host.
type = "local"
{place}# The most followers of all bursts together.
max_nodes = {nodes}
# What each follower offers. All followers share the cores of this host.
cores = {cores}
gpus = {gpus}
"""
_PLACE = """\
# Made by burst.service: no other user can make it first, as in /tmp.
dir = "{place}"
"""
_NONE = """\
# Set up a provider here. Without one, no burst can be made.
# [providers.NAME]
# type = "local"
"""


def provider_table(
    kind: str, shape: Shape, largest: int, nodes: int, place: str = ""
) -> str:
    """Return the table of a type of provider: `local`, `none`, or one installed.

    `shape` is the most that a slot's nodes have, `largest` the size of the largest slot
    and `nodes` that of all. `place` is the directory of local followers that the
    daemon's unit makes; empty for the provider's own default. Raises ConfigError.
    """
    if kind == "none":
        return _NONE
    if kind == "local":
        return _LOCAL.format(
            nodes=nodes,
            cores=shape.cores,
            gpus=shape.gpus,
            place=_PLACE.format(place=place) if place else "",
        )
    points = {point.name: point for point in entry_points(group=GROUP)}
    made = points[kind].load() if kind in points else None
    if not isinstance(made, TableTemplate):
        raise ConfigError(
            f"there is no table for a provider of type {kind}",
            "there are " + ", ".join(sorted({"local", "none", *points})),
        )
    return made.table_template(kind, shape, largest)
