# SPDX-License-Identifier: MIT
"""What a job is told for good: no slot that could serve it later is left out."""

from __future__ import annotations

from burst.core.plan.slots import find_slots
from burst.model.jobid import JobId
from burst.model.reason import Reason
from tests.machine.world import World


def wrongly_excluded(world: World) -> list[JobId]:
    """Return the jobs that are told that no host is for them, though one is declared.

    Whatever has its rank at present, a later burst may have it.
    """
    lead, snapshot = world.lead, world.engine.snapshot
    slots = find_slots(lead.known, world.settings.lead.slots)
    lent = {rank for slot in slots for rank in slot.ranks}
    excluded = [
        lead.jobs[job]
        for job, decision in snapshot.decisions.items()
        if decision.reason is Reason.EXCLUDED
    ]
    return [
        job.id
        for job in excluded
        if job.request and lent & lead.constraints.admitted(job.request.constraint)
    ]
