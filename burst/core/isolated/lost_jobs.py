# SPDX-License-Identifier: MIT
"""Jobs of isolated bursts whose own record cannot be read, or is gone.

The key of a job's record names the burst and the job. So the job is known to run there,
or to have run, whatever else was lost: it is not run here, nor in another burst.
"""

from __future__ import annotations

from collections.abc import Mapping

from burst.core.records import RecordsView
from burst.model.burst import ISOLATED_STEM, BurstId
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.reason import Reason

WHY = "its record cannot be read"
_PREFIX = f"job/{ISOLATED_STEM}-"


def lost_isolated_jobs(records: RecordsView) -> Mapping[JobId, BurstId]:
    """Return the isolated burst of each job that may run in one that is not known."""
    found: dict[JobId, BurstId] = {}
    for key in records.unreadable:
        burst, _, job = key.removeprefix("job/").partition("/")
        if not key.startswith(_PREFIX) or not job.isdecimal():
            continue
        if burst not in records.bursts:
            found[JobId(int(job))] = BurstId(burst)
    return found


def decide_lost(burst: BurstId) -> Decision:
    """Return the decision on a job of such a burst."""
    return Decision(Reason.ISOLATED_QUARANTINED, {"burst": burst, "why": WHY})
