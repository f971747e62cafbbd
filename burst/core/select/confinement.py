# SPDX-License-Identifier: MIT
"""On which lent ranks each pending job may start, where that is not on any of them.

Flux starts a released job wherever its constraint lets it: also on a free node of a
burst whose lease ends before the job would, or that is for jobs with a tag. So a job is
confined (`burst.model.confinement`) to its own bursts once they are up, where another
burst does not last for it, or has another tag than the job; then one without bursts is
confined to no lent rank.

On an instance with guests, where users are kept apart, each burstable job is confined:
to no lent rank when it is submitted, to those of its bursts when all of these are up,
and to none again when it has left them. The order is what keeps users apart: a job is
released once the lead shows the ranks that it may have, and its ranks are leased to
nobody as long as the lead shows them (`LeadView.promised`). Nothing of it is on record,
so that a daemon that was killed in between goes on from what the lead shows.

In intake mode `scheduler`, sched-burst has each job keep to its leases. A job that is
confined all the same, as it was submitted in another mode, is kept up to date.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from functools import cached_property

from burst.config import Settings
from burst.core.plan.lease_times import remaining_run_time
from burst.core.rank_leases import rank_leases
from burst.core.records import RecordsView
from burst.model.burst import Burst, BurstId, State, Tag
from burst.model.jobid import JobId
from burst.model.lead import JobView, LeadIdentity, LeadView, LeasedRanks

_NONE: frozenset[int] = frozenset()
_MAY_TAKE_JOBS = (State.PROVISION, State.JOIN, State.ONLINE)


def keeps_users_apart(identity: LeadIdentity, settings: Settings) -> bool:
    """Tell whether a burst is for the jobs of its user alone, by the lead's scheduler.

    So it is where others than its owner submit to the instance, unless the site lets
    users share bursts, or any job run on lent nodes.
    """
    site_shares = settings.plan.share_users or settings.intake.any_job
    return identity.access.allow_guest_user and not site_shares


def confines_jobs(identity: LeadIdentity, settings: Settings) -> bool:
    """Tell whether the daemon itself keeps users apart, by the constraints of jobs."""
    by_constraints = settings.intake.mode != "scheduler"
    return by_constraints and keeps_users_apart(identity, settings)


def lasting(
    records: RecordsView, settings: Settings, now: float
) -> dict[BurstId, float]:
    """Return for how many seconds jobs can run on each burst that takes jobs.

    Empty where all bursts are without an end, and where the lead's scheduler has jobs
    keep to their bursts.
    """
    if settings.intake.mode == "scheduler":
        return {}
    found = {
        burst.id: remaining_run_time(burst.lease, settings.deadlines, now)
        for burst in _joined(records)
    }
    return {} if all(map(math.isinf, found.values())) else found


def burst_tags(records: RecordsView, settings: Settings) -> dict[BurstId, Tag | None]:
    """Return the tag of each burst that takes jobs.

    Empty where none has one, and where the lead's scheduler has jobs keep to their
    bursts.
    """
    if settings.intake.mode == "scheduler":
        return {}
    found = {burst.id: burst.lease.tag for burst in _joined(records)}
    return found if any(found.values()) else {}


def _joined(records: RecordsView) -> list[Burst]:
    return [
        burst
        for burst in records.live
        if burst.state in _MAY_TAKE_JOBS and burst.lease.isolated is None
    ]


class Confinement:
    """What the pending jobs of one view may have, by the records as they are."""

    def __init__(
        self,
        records: RecordsView,
        lead: LeadView,
        apart: bool,
        lasts: Mapping[BurstId, float],
        tags: Mapping[BurstId, Tag | None],
    ) -> None:
        """`lasts` is for how many seconds jobs can run on bursts: see `lasting`.

        `tags` are as `burst_tags` returns them.
        """
        self._records, self._lead, self._apart = records, lead, apart
        self._lasts, self._tags = lasts, tags

    @cached_property
    def _leases(self) -> LeasedRanks:
        return rank_leases(self._records, self._lead)

    def is_kept_apart(self, job: JobView) -> bool:
        """Tell whether the job is confined, or is to be whatever bursts there are."""
        return self._apart or job.confined_to is not None

    def concerns(self, job: JobView) -> bool:
        """Tell whether the job is confined, or is to be now; when to ask as `ranks`."""
        return (
            self.is_kept_apart(job)
            or self._outlives_others(job)
            or self._has_other_tag(job)
        )

    def _outlives_others(self, job: JobView) -> bool:
        """Tell whether the job has bursts, and would not end in time on another."""
        if not self._lasts:
            return False
        own = self._bursts_of.get(job.id, ())
        mine = [self._lasts[burst] for burst in own if burst in self._lasts]
        if not mine or not self.ranks(job):
            return False
        # One without a time limit may have what lasts half as long: see RunTimes.
        needed = job.duration or min(mine) / 2
        others = self._lasts.keys() - own
        return any(self._lasts[burst] < needed for burst in others)

    def _has_other_tag(self, job: JobView) -> bool:
        """Tell whether a burst that is none of the job's is for jobs unlike it."""
        if not self._tags:
            return False
        others = self._tags.keys() - self._bursts_of.get(job.id, set())
        return any(self._tags[burst] != job.tag for burst in others)

    @cached_property
    def _bursts_of(self) -> Mapping[JobId, Set[BurstId]]:
        found: dict[JobId, set[BurstId]] = {}
        for burst in self._records.live:
            for job in burst.jobs:
                found.setdefault(job, set()).add(burst.id)
        return found

    def ranks(self, job: JobView) -> frozenset[int]:
        """Return the lent ranks on which the job may start now.

        Of a tick that gives jobs to bursts, to be asked after that.
        """
        return self._leases.jobs.get(job.id, _NONE)

    def is_due(self, job: JobView) -> bool:
        """Tell whether the lead shows other ranks than these."""
        return self.concerns(job) and job.confined_to != self.ranks(job)
