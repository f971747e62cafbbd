# SPDX-License-Identifier: MIT
"""The two kinds of bursts: those that join the lead, and isolated ones.

`behaviour_of` returns the object for what differs between the kinds. What both have in
common is in `sync`, which records what happened, and in `burst_actions`.
"""

from __future__ import annotations

from burst.core.isolated.behaviour import IsolatedBehaviour
from burst.core.joined import JoinedBehaviour
from burst.model.burst import Burst

Behaviour = JoinedBehaviour | IsolatedBehaviour
"""What differs between the kinds of bursts: both classes have the same methods."""

_JOINED = JoinedBehaviour()
_ISOLATED = IsolatedBehaviour()


def behaviour_of(burst: Burst) -> Behaviour:
    """Return the behaviour for the kind of a burst."""
    return _ISOLATED if burst.lease.isolated else _JOINED
