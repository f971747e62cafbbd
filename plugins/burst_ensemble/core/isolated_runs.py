# SPDX-License-Identifier: MIT
"""The jobs of a member that run in isolated bursts, which the lead shows as waiting.

The lead holds such a job until it has ended elsewhere, and gives it its result then:
when it ran is known by its burst.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from burst.model.active_job import JobOutcome
from burst.model.burst import Burst, State
from burst.model.jobid import JobId
from burst.model.lead import PENDING, JobState
from burst_ensemble.core.job_rows import JobRow


class IsolatedRun(msgspec.Struct, frozen=True):
    """One run of a job that has begun elsewhere. Times: seconds since the epoch."""

    began: float
    ended: float
    """0 as long as it has not."""

    def row(self, row: JobRow) -> JobRow:
        """Return the job as it is where it runs."""
        state = row.state
        if state in PENDING:
            state = JobState.CLEANUP if self.ended else JobState.RUN
        finish = self.ended or row.t_finish
        return msgspec.structs.replace(
            row, state=state, t_start=self.began, t_finish=finish
        )

    def outcome(self, found: JobOutcome) -> JobOutcome:
        """Return how the job ended, with when it ran there."""
        return JobOutcome(found.result, self.began, self.ended or found.t_finish)


def isolated_runs(bursts: Iterable[Burst]) -> Mapping[JobId, IsolatedRun]:
    """Return the run of each job that has begun in one of these bursts.

    A job that its user took back from its burst, for Flux to start it, has none.
    """
    found = {}
    for burst in bursts:
        job = burst.lease.isolated_job
        run = _run_in(burst)
        if job is not None and run is not None:
            found[job] = run
    return found


def _run_in(burst: Burst) -> IsolatedRun | None:
    times = {event.name: event.timestamp for event in burst.events}
    began = times.get("online")
    if burst.exit_status is not None:
        # A short program may have ended before its instance was seen online.
        return IsolatedRun(began or times["finish"], times["finish"])
    if began is None:
        return None
    if burst.state is State.ONLINE:
        return IsolatedRun(began, 0.0)
    return IsolatedRun(began, times["exception"]) if burst.may_have_run else None
