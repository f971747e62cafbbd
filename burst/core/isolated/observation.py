# SPDX-License-Identifier: MIT
"""What is seen of an isolated burst, and the table that says what it means.

It has no ranks of the lead: there is our record, and what the provider says of the
nodes and of the burst's own instance.
"""

from __future__ import annotations

import enum

from burst.config import LimitSettings
from burst.core.observation import (
    FAILURES,
    Observation,
    ProviderPhase,
    failure_note,
    lacks_capacity,
    provider_phase,
    status_of,
)
from burst.core.records import Transaction
from burst.core.world import World
from burst.model.burst import Burst, State
from burst.provider import BurstStatus

UNDER_WAY = (State.PROVISION, State.JOIN, State.ONLINE)
"""States in which the burst comes up or runs."""
_FAILURE_OF = {
    ProviderPhase.FAILED: Observation.BROKE,
    ProviderPhase.ABSENT: Observation.VANISHED,
    ProviderPhase.ENDING: Observation.ENDED,
}


class InstancePhase(enum.Enum):
    """How far the burst's own instance is, as its provider sees it."""

    UNREAD = "unread"
    """Nothing is known of it now."""
    STARTING = "starting"
    ONLINE = "online"
    FINISHED = "finished"


def look_up(
    state: State, phase: ProviderPhase, instance: InstancePhase
) -> Observation | None:
    """Return what the combination means; None if it cannot be, which quarantines."""
    if state is State.NEW:
        # The provider was not called yet. What it shows all the same is not from us.
        expected = phase in (ProviderPhase.UNREAD, ProviderPhase.ABSENT)
        return Observation.WAIT if expected else None
    if phase is ProviderPhase.UNREAD or state not in UNDER_WAY:
        return Observation.WAIT
    if instance is InstancePhase.FINISHED:
        # Whatever became of the nodes since: there is a result.
        return Observation.FINISHED
    if phase in _FAILURE_OF:
        return _FAILURE_OF[phase]
    up = instance is InstancePhase.ONLINE
    if state is State.PROVISION:
        started = up or phase is ProviderPhase.RUNNING
        return Observation.STARTED if started else Observation.WAIT
    return Observation.ONLINE if up and state is State.JOIN else Observation.WAIT


def observe(tx: Transaction, burst: Burst, world: World, limits: LimitSettings) -> None:
    """Record the states that an isolated burst is seen to have reached."""
    before = burst
    status, phase = status_of(burst, world), provider_phase(burst, world)
    while True:
        what = look_up(burst.state, phase, _instance_phase(status))
        if what is Observation.STARTED:
            burst = tx.record(burst.id, "provision-finish", {})
        elif what is Observation.ONLINE:
            burst = tx.record(burst.id, "online", {"ranks": ""})
        else:
            break
    if what is None:
        tx.quarantine(burst.id, "no rule for what is seen of it")
    elif what is Observation.FINISHED:
        assert status is not None
        _record_result(tx, burst, status)
    elif what in FAILURES:
        # Once all nodes were started, the job may have run: they were not lacking then.
        coming = before.state is State.PROVISION
        lacking = coming and lacks_capacity(burst, world)
        tx.fail_as_seen(
            burst, failure_note(burst, world, what), limits, lacking=lacking
        )


def _instance_phase(status: BurstStatus | None) -> InstancePhase:
    if status is None or status.instance is None:
        return InstancePhase.UNREAD
    if status.instance.exit_status is not None:
        return InstancePhase.FINISHED
    return InstancePhase.ONLINE if status.instance.online else InstancePhase.STARTING


def _record_result(tx: Transaction, burst: Burst, status: BurstStatus) -> None:
    """Record exit status and output at once: a reaped burst has neither."""
    assert status.instance is not None
    code = status.instance.exit_status
    tx.outputs[burst.id] = status.instance.output
    tx.record(burst.id, "finish", {"status": code, "note": f"exit status {code}"})
