# SPDX-License-Identifier: MIT
"""An algorithm of your own: a number of minutes of work for each node.

Install it (pyproject.toml beside this names it under `burst.algorithms`), and name it
in the file of an ensemble: `algorithm = { name = "backlog", options.minutes = 10 }`.
"""

from __future__ import annotations

import math

import msgspec
from burst_ensemble.algorithm import MemberDecision, MemberView, Memory


class BacklogOptions(msgspec.Struct, frozen=True):
    """Its options."""

    minutes: float = 10.0
    """How many minutes of waiting work there may be for each node."""


class Backlog:
    """Sizes a member by the work that waits, if such jobs have run before."""

    Options = BacklogOptions

    def __init__(self, options: BacklogOptions) -> None:
        self._options = options

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        """Return the size that works the queue off in time; at first 1 minute a job."""
        minutes = (view.tally.duration.mean or 60.0) / 60
        wanted = view.nodes_busy + math.ceil(
            view.nodes_waited_for * minutes / self._options.minutes
        )
        since = memory.get("since", now) if wanted < view.nodes else now
        if wanted < view.nodes and now - since < 120:
            return MemberDecision(memory={"since": since})
        return MemberDecision(nodes=wanted, why=f"the queue needs {wanted} nodes")
