# SPDX-License-Identifier: MIT
"""The settings of bursts by a site's own program."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from burst.config import Seconds
from burst.kits.node_settings import NodeSettings

_AtLeast0 = Annotated[int, msgspec.Meta(ge=0)]


class CommandSettings(NodeSettings, frozen=True, kw_only=True):
    """`[providers.NAME]` with `type = "command"`."""

    program: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    """The program and its first words. `begin`, `list` or `end` follows, and what is
    asked is on its standard input as JSON ([command.md](command.md))."""
    total: _AtLeast0 = 0
    """Nodes of all bursts together; 0 if the program is to say when there are no
    more."""
    join_time: Seconds = Seconds(60)
    """From `begin` to the first job, as far as is known."""
    lifetime: Seconds = Seconds(math.inf)
    """How long the site lets such nodes live, such as the time limit of a queue. The
    daemon drains a burst before."""
    limit: Seconds = Seconds(60)
    """How long the program may take each time. It is killed then, with all that it has
    started in its process group."""
    arguments: Mapping[str, Any] = {}
    """A table that the program is given each time as it is: a queue, an account, names
    of machines."""
