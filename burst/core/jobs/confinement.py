# SPDX-License-Identifier: MIT
"""Tells which ranks are leased for which jobs, and which jobs are confined to theirs.

Flux starts a released job wherever its constraint lets it: also on a free node of a
burst whose lease ends before the job would, or that is for jobs with a tag. So a job is
confined (`burst.model.confinement`) to its own bursts once they are up, if another
burst does not last for the job or has another tag. A job without bursts is confined to
no lent rank if there is a burst with another tag.

On an instance with guests, where users are kept apart, each burstable job is confined:
to no lent rank when it is submitted, to those of its bursts when all of these are up,
and to none again when it has left them. This order keeps users apart: a job is released
once the lead shows the ranks that it may have, and its ranks are leased to nobody as
long as the lead shows them (`LeadView.promised`). Nothing of this is on record, so a
daemon that was killed in between continues from what the lead shows.

In intake mode `scheduler`, sched-burst keeps each job on its leases. A job that is
confined already, as it was submitted in another mode, is still kept up to date.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from functools import cached_property

from burst.config import Settings
from burst.core.lifecycle import UNDER_WAY
from burst.core.plan.capacity import is_up, job_nodes
from burst.core.plan.offers import remaining_run_time
from burst.core.records import RecordsView, is_usable
from burst.core.world import World
from burst.model.burst import Burst, BurstId
from burst.model.jobid import JobId
from burst.model.lead import JobView, LeadIdentity, LeadView, LeasedRanks
from burst.model.request import ResourceRequest

_NONE: frozenset[int] = frozenset()


def keeps_users_apart(identity: LeadIdentity, settings: Settings) -> bool:
    """Tell whether the lead may start only jobs of a burst's user on the burst.

    This is so if users other than the owner submit to the instance, unless the site
    lets users share bursts, or lets any job run on lent nodes.
    """
    site_shares = settings.plan.share_users or settings.intake.any_job
    return identity.access.allow_guest_user and not site_shares


def confines_jobs(identity: LeadIdentity, settings: Settings) -> bool:
    """Tell whether the daemon itself keeps users apart, by the constraints of jobs."""
    by_constraints = settings.intake.mode != "scheduler"
    return by_constraints and keeps_users_apart(identity, settings)


def rank_leases(records: RecordsView, lead: LeadView) -> LeasedRanks:
    """Return the ranks that are leased, and those on which each job may start.

    A job gets its ranks once all of its bursts are up, as a held job is released then.
    While some of its bursts still join, or nodes are missing, it may not take a part.
    """
    bursts_of: dict[JobId, list[Burst]] = {}
    leased: set[int] = set()
    for burst in records.live:
        leased.update(burst.lease.ranks)
        if not is_usable(burst):
            continue
        for job in burst.unstarted:
            bursts_of.setdefault(job, []).append(burst)
    jobs: dict[JobId, frozenset[int]] = {}
    for job, bursts in sorted(bursts_of.items()):
        view = lead.jobs.get(job)
        if lacks_nodes(view.request if view else None, bursts, lead):
            jobs[job] = _NONE
        else:
            jobs[job] = _NONE.union(*(burst.lease.ranks for burst in bursts))
    return LeasedRanks(jobs, frozenset(leased))


def lacks_nodes(
    request: ResourceRequest | None, bursts: Sequence[Burst], lead: LeadView
) -> bool:
    """Tell whether some bursts of a job are not up, or have too few nodes for it."""
    if not all(map(is_up, bursts)):
        return True
    if request is None:
        return False
    nodes = job_nodes(request, bursts, lead)
    return bool(nodes.missing) or nodes.awaited


def is_kept_apart(job: JobView, identity: LeadIdentity, settings: Settings) -> bool:
    """Tell whether the job is confined, or has to be, whatever bursts there are."""
    return job.confined_to is not None or confines_jobs(identity, settings)


class Confinement:
    """The lent ranks that pending jobs of one view may have, by the current records."""

    def __init__(
        self,
        records: RecordsView,
        world: World,
        settings: Settings,
        now: float,
    ) -> None:
        """The lead can be read."""
        assert world.lead is not None
        self._records, self._lead = records, world.lead
        self._all = confines_jobs(world.identity, settings)
        # In that mode the lead's scheduler keeps jobs on their bursts.
        keeps = settings.intake.mode == "scheduler"
        leases = [
            burst.lease
            for burst in (() if keeps else records.live)
            if burst.state in UNDER_WAY and not burst.lease.isolated
        ]
        lasts = {
            lease.id: remaining_run_time(lease, settings.deadlines, now)
            for lease in leases
        }
        tags = {lease.id: lease.tag for lease in leases}
        # Empty if all bursts are alike, so that no job is compared with them.
        self._lasts = {} if all(map(math.isinf, lasts.values())) else lasts
        self._tags = tags if any(tags.values()) else {}

    @cached_property
    def _leases(self) -> LeasedRanks:
        return rank_leases(self._records, self._lead)

    def concerns(self, job: JobView) -> bool:
        """Tell whether the job is confined, or has to be now.

        A tick that gives jobs to bursts asks this only after it has done so.
        """
        return (
            self._all
            or job.confined_to is not None
            or self._outlives_others(job)
            or self._has_other_tag(job)
        )

    def _outlives_others(self, job: JobView) -> bool:
        """Tell whether the job has bursts, and may not end in time on another one."""
        if not self._lasts:
            return False
        own = self._bursts_of.get(job.id, ())
        mine = [self._lasts[burst] for burst in own if burst in self._lasts]
        if not mine or not self.ranks(job):
            return False
        # A job without a time limit may have bursts that last half as long: RunTimes.
        needed = job.duration or min(mine) / 2
        others = self._lasts.keys() - own
        return any(self._lasts[burst] < needed for burst in others)

    def _has_other_tag(self, job: JobView) -> bool:
        """Tell whether a burst that is not the job's has another tag than the job."""
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

        A tick that gives jobs to bursts asks this only after it has done so.
        """
        return self._leases.jobs.get(job.id, _NONE)

    def is_due(self, job: JobView) -> bool:
        """Tell whether the lead shows other ranks for the job than `ranks` returns."""
        return self.concerns(job) and job.confined_to != self.ranks(job)
