# SPDX-License-Identifier: MIT
"""The truth table of isolated bursts, and what is read for it.

An isolated burst has no ranks of the lead. Its state follows from its record and from
what the provider shows of the nodes and of the burst's own instance.
"""

from __future__ import annotations

import enum

from burst.config import LimitSettings
from burst.core.losses import record_reclaim
from burst.core.observation import (
    FAILURES,
    Observation,
    ProviderPhase,
    failure_kind,
    failure_note,
    provider_phase,
    status_of,
)
from burst.core.records import Transaction
from burst.core.world import World
from burst.model.burst import CAPACITY, Burst, State
from burst.model.exit_status import shell_status
from burst.provider import BurstStatus

UNDER_WAY = (State.PROVISION, State.JOIN, State.ONLINE)
"""States in which the burst comes up or runs."""
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


def record_states(
    tx: Transaction, burst: Burst, world: World, limits: LimitSettings
) -> None:
    """Record the states that a live burst has reached, by what was read."""
    before = burst = record_reclaim(tx, burst, world)
    status, phase = status_of(burst, world), provider_phase(burst, world)
    while True:
        what = look_up(burst.state, phase, _instance_phase(status))
        if what is Observation.STARTED:
            burst = tx.record(burst.id, "provision-finish", {})
        elif what is Observation.ONLINE:
            burst = tx.record(burst.id, "online", {"ranks": ""})
            tx.forgive(burst)
        else:
            break
    if what is None:
        tx.quarantine(burst.id, "no rule covers what its record and its provider show")
    elif what is Observation.FINISHED:
        assert status is not None
        _record_result(tx, burst, status)
    elif what in FAILURES:
        # Once all nodes were started the job may have run, so capacity was not lacking.
        kind = failure_kind(burst, world)
        if kind == CAPACITY and before.state is not State.PROVISION:
            kind = "failed"
        tx.fail_as_seen(burst, failure_note(burst, world, what), limits, kind)


def _instance_phase(status: BurstStatus | None) -> InstancePhase:
    if status is None or status.instance is None:
        return InstancePhase.UNREAD
    if status.instance.exit_status is not None:
        return InstancePhase.FINISHED
    return InstancePhase.ONLINE if status.instance.online else InstancePhase.STARTING


def _record_result(tx: Transaction, burst: Burst, status: BurstStatus) -> None:
    """Record exit status and output at once: a reaped burst has neither."""
    assert status.instance is not None
    assert status.instance.exit_status is not None
    tx.forgive(burst)
    code = shell_status(status.instance.exit_status)
    tx.outputs[burst.id] = status.instance.output
    tx.record(burst.id, "finish", {"status": code, "note": f"exit status {code}"})
