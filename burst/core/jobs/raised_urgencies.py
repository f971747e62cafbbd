# SPDX-License-Identifier: MIT
"""Puts released jobs ahead of the queue while their nodes are free and cost money.

A scheduler that starts jobs in their order stops at the first that waits for nodes. So
a job whose lent nodes are online and free waits behind an ordinary one that could not
even use them. It gets the highest urgency when Flux had a moment to start it and did
not, and only while all that it needs is free on its lent nodes and Flux would take
these. Then it starts at once, and takes nothing that a job ahead of it
waits for. If it does not start for another reason, it gets its own urgency back, so it
never blocks the queue from the front.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from burst.core.jobs.hindrance import find_hindrance
from burst.core.jobs.job_context import JobContext
from burst.core.plan.capacity import is_up
from burst.core.records import Transaction
from burst.model.burst import Burst, BurstId
from burst.model.decision import Decision
from burst.model.hold import RAISED_FOR, Hold, HoldState
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView
from burst.model.reason import Reason

# The urgency of a job that is first in the queue (flux-submit(1)).
_FIRST = 31
# How long a scheduler has to start a job by itself, in seconds.
_GRACE = 2.0
# A request that does not show after so many seconds is made again.
_ASK_AGAIN = 2.0
# A job that did not start though it was ahead is put ahead again after so many seconds.
_PAUSE = 60.0
# Decisions on a job that Flux may start now, or that waits behind others only.
_STARTABLE = (Reason.RELEASED, Reason.JOBS_AHEAD)


class RaisedUrgencies:
    """The urgencies to set in one tick. One job of a burst is ahead at a time."""

    def __init__(self, tx: Transaction, context: JobContext) -> None:
        self._tx, self._world, self._own_nodes = tx, context.world, context.own_nodes
        self._needed = context.settings.intake.mode != "scheduler"
        self._ahead: dict[BurstId, JobId] = {
            burst.id: job
            for burst in tx.live
            for job in burst.unstarted
            if job in tx.holds and tx.holds[job].is_raised
        }

    def due(self, job: JobView, bursts: list[Burst], decision: Decision) -> int:
        """Record and return the urgency that the job is to get now; 0 for no change."""
        hold = self._tx.holds.get(job.id)
        if hold is None and bursts:  # it was moved to another queue, and never held
            hold = Hold.released(job.urgency, self._tx.now)
        if (
            hold is None
            or hold.state is not HoldState.RELEASED
            or job.state is not JobState.SCHED
        ):
            return 0
        ago = self._tx.now - hold.raised_since
        if hold.is_raised:
            waits = ago < _ASK_AGAIN or self._has_its_nodes(job, bursts, decision)
            return 0 if ago < RAISED_FOR and waits else self._lower(job, hold)
        if hold.raised_to and job.urgency == hold.raised_to:
            return hold.urgency if ago > _ASK_AGAIN else 0
        if ago < _PAUSE or not self._is_wanted(job, hold, bursts):
            return 0
        if not self._has_its_nodes(job, bursts, decision):
            return 0
        return self._raise(job, hold, bursts)

    def _is_wanted(self, job: JobView, hold: Hold, bursts: Sequence[Burst]) -> bool:
        """Tell whether the job would be raised if its nodes were free."""
        released = [burst.times[job.id].released for burst in bursts]
        return (
            self._needed
            and not hold.by_user
            and 0 < job.urgency < _FIRST
            and bool(released)
            and all(at is not None and self._tx.now - at > _GRACE for at in released)
            and not any(burst.id in self._ahead for burst in bursts)
        )

    def _has_its_nodes(
        self, job: JobView, bursts: Sequence[Burst], decision: Decision
    ) -> bool:
        """Tell whether Flux could start the job now, and on its lent nodes alone."""
        if decision.reason not in _STARTABLE or not all(map(is_up, bursts)):
            return False
        lead = self._world.lead
        assert lead is not None
        assert job.request is not None
        facts = {"by": "", "ends": ""}
        constraints = self._own_nodes.constraints
        found = find_hindrance(job, bursts, self._world, constraints, facts)
        if found is not None and found.reason is not Reason.JOBS_AHEAD:
            return False
        ranks = frozenset().union(*(burst.expected for burst in bursts)) & lead.usable
        return not self._own_nodes.takes_some(job.request, ranks)

    def _raise(self, job: JobView, hold: Hold, bursts: Sequence[Burst]) -> int:
        self._ahead.update((burst.id, job.id) for burst in bursts)
        self._tx.holds[job.id] = msgspec.structs.replace(
            hold,
            expected_urgency=_FIRST,
            raised_to=_FIRST,
            raised_since=self._tx.now,
        )
        return _FIRST

    def _lower(self, job: JobView, hold: Hold) -> int:
        self._tx.holds[job.id] = msgspec.structs.replace(
            hold, expected_urgency=hold.urgency, raised_since=self._tx.now
        )
        return hold.urgency
