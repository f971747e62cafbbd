# SPDX-License-Identifier: MIT
"""The jobs that wait, as `burst watch` lists them: why, and until when.

Plain objects, ready for JSON. Times are seconds since the epoch.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping

import msgspec

from burst.core.job_report import job_row
from burst.core.records import Records
from burst.core.report import Row
from burst.core.world import World
from burst.core.worth.estimate import StartEstimate
from burst.core.worth.online_times import OnlineTimes
from burst.model.burst import Burst, State
from burst.model.decision import Decision
from burst.model.jobid import JobId


class WaitingJobs(msgspec.Struct, frozen=True):
    """What the rows are made of: what a tick saw and decided, and the forecast."""

    records: Records
    world: World
    decisions: Mapping[JobId, Decision]
    starts: Mapping[JobId, StartEstimate]
    now: float

    def rows(self, most: int, userid: int | None = None) -> list[Row]:
        """Return the burstable jobs that waited longest, of that user if any is named.

        `expected` is when a job is expected to start, None where that is not known;
        `by` says what that rests on: `burst` (the nodes that come for it) or `here` (a
        forecast of the lead's own nodes).
        """
        lead = self.world.lead
        if lead is None:
            return []
        known = self.decisions.keys() & lead.jobs.keys()
        theirs = (j for j in known if userid in (None, lead.jobs[j].userid))
        first = heapq.nsmallest(most, theirs)
        coming = self._coming(frozenset(first))
        guest = userid is not None
        return [self._row(job, coming.get(job, []), guest=guest) for job in first]

    def _row(self, number: JobId, coming: list[Burst], *, guest: bool) -> Row:
        assert self.world.lead is not None
        job, hold = self.world.lead.jobs[number], self.records.holds.get(number)
        expected, by = self._expected(number, coming)
        return job_row(job, self.decisions[number], guest=guest) | {
            "name": job.name,
            "submitted": job.t_submit,
            "held": hold.state.value if hold else None,
            "bursts": sorted(burst.id for burst in coming),
            "expected": expected,
            "by": by,
        }

    def _coming(self, jobs: frozenset[JobId]) -> dict[JobId, list[Burst]]:
        """Return the live bursts to which each of these jobs is assigned."""
        found: dict[JobId, list[Burst]] = {}
        for burst in self.records.live:
            for job in burst.jobs & jobs:
                found.setdefault(job, []).append(burst)
        return found

    def _expected(self, job: JobId, coming: list[Burst]) -> tuple[float | None, str]:
        if coming:
            return self._all_online(coming), "burst"
        start = self.starts.get(job)
        if start is None or math.isinf(start.expected):
            return None, ""
        return max(start.expected, self.now), "here"

    def _all_online(self, bursts: Iterable[Burst]) -> float | None:
        """Return when all of them are expected to be online."""
        latest = max(self._online_at(burst) for burst in bursts)
        return None if math.isinf(latest) else round(latest, 3)

    def _online_at(self, burst: Burst) -> float:
        """Return when half of such bursts were online, or if that is over, 9 of 10.

        math.inf for one that takes longer than those, and where nothing is known.
        """
        if burst.state is State.ONLINE:
            return self.now
        lease, begun = burst.lease, burst.lease.created
        times = OnlineTimes(self.records.times)
        known = times.online(lease.provider, lease.offer, lease.nodes)
        takes = (known.p50, known.p90) if known else self._offered(burst)
        due = (begun + seconds for seconds in takes)
        return next((when for when in due if when > self.now), math.inf)

    def _offered(self, burst: Burst) -> tuple[float, ...]:
        """Return how long its provider says that such a burst takes; empty: unknown."""
        view = self.world.providers.get(burst.lease.provider)
        offers = (view and view.offers) or ()
        return tuple(o.join_time for o in offers if o.name == burst.lease.offer)
