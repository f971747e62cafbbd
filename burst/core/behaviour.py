# SPDX-License-Identifier: MIT
"""The two kinds of bursts: those that join the lead, and isolated ones.

`behaviour_of` returns what a burst does where the kinds differ. What both have in
common is in `sync`, which records what happened, and in `burst_actions`.
"""

from __future__ import annotations

from burst.core.isolated.behaviour import IsolatedBehaviour
from burst.core.joined import JoinedBehaviour
from burst.model.burst import Burst

Behaviour = JoinedBehaviour | IsolatedBehaviour
"""What a burst does where the kinds differ: both have the same methods."""

_JOINED = JoinedBehaviour()
_ISOLATED = IsolatedBehaviour()


def behaviour_of(burst: Burst) -> Behaviour:
    """Return the behaviour of the kind of a burst."""
    return _ISOLATED if burst.lease.isolated else _JOINED
