# SPDX-License-Identifier: MIT
"""The truth table of isolated bursts, and what is read for it.

An isolated burst has no ranks of the lead. Its state follows from its record and from
what the provider shows of the nodes and of the burst's own instance.
"""

from __future__ import annotations

import enum

from burst.core.lifecycle import UNDER_WAY
from burst.core.observation import Observation, ProviderPhase
from burst.model.burst import State
from burst.provider import BurstStatus

_FAILURE_OF = {
    ProviderPhase.FAILED: Observation.BROKE,
    ProviderPhase.ABSENT: Observation.VANISHED,
    ProviderPhase.ENDING: Observation.ENDED,
}


class InstancePhase(enum.Enum):
    """What the provider shows of the burst's own instance."""

    UNREAD = "unread"
    """Nothing is known of it now."""
    STARTING = "starting"
    ONLINE = "online"
    FINISHED = "finished"


_WAS_UP = (InstancePhase.ONLINE, InstancePhase.FINISHED)


def look_up(
    state: State, phase: ProviderPhase, instance: InstancePhase
) -> Observation | None:
    """Return what the combination means; None if it cannot be: that quarantines.

    An instance that was seen up counts also while calls to make its burst fail.
    """
    if state is State.NEW:
        # The provider was not called yet, so what it shows was not made for the burst.
        expected = phase in (ProviderPhase.UNREAD, ProviderPhase.ABSENT)
        return Observation.WAIT if expected else None
    up = instance is InstancePhase.ONLINE
    unread = phase is ProviderPhase.UNREAD
    if state not in UNDER_WAY or (unread and instance not in _WAS_UP):
        return Observation.WAIT
    if instance is InstancePhase.FINISHED:
        # There is a result, whatever happened to the nodes since.
        return Observation.FINISHED
    if phase in _FAILURE_OF:
        return _FAILURE_OF[phase]
    if state is State.PROVISION:
        started = up or phase is ProviderPhase.RUNNING
        return Observation.STARTED if started else Observation.WAIT
    return Observation.ONLINE if up and state is State.JOIN else Observation.WAIT


def instance_phase(status: BurstStatus | None) -> InstancePhase:
    """Return what the provider shows of the instance of a burst with this status."""
    if status is None or status.instance is None:
        return InstancePhase.UNREAD
    if status.instance.exit_status is not None:
        return InstancePhase.FINISHED
    return InstancePhase.ONLINE if status.instance.online else InstancePhase.STARTING
