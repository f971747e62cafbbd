# SPDX-License-Identifier: MIT
"""The keys of `[providers.NAME]` with `type = "command"`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec

from burst.config import Seconds
from burst.kits.node_settings import NodeSettings

_AtLeast0 = Annotated[int, msgspec.Meta(ge=0)]


class CommandSettings(NodeSettings, frozen=True, kw_only=True):
    """`[providers.NAME]` with `type = "command"`."""

    program: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    """The program and its first arguments. `begin`, `list` or `end` follows them, and
    the request is JSON on standard input ([command.md](command.md))."""
    total: _AtLeast0 = 0
    """Number of nodes for all bursts together; 0 if the program says when there are no
    more."""
    join_time: Seconds = Seconds(60)
    """Expected time from `begin` to the first job."""
    lifetime: Seconds = Seconds(math.inf)
    """How long the site lets such nodes live, such as the time limit of a queue. The
    daemon drains a burst before that time."""
    arguments: Mapping[str, Any] = {}
    """A table that is passed to the program unchanged with each call: a queue, an
    account, names of machines."""

    retired: ClassVar[Mapping[str, str]] = {
        "limit": "remove it: each call of the program may take 1m"
    }
