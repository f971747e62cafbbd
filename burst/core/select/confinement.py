# SPDX-License-Identifier: MIT
"""On which lent ranks each pending job may start, where users are kept apart.

Flux starts a released job wherever its constraint lets it. So on an instance with
guests each burstable job is confined (`burst.model.confinement`): to no lent rank when
it is submitted, to those of its bursts when all of these are up, and to none again when
it has left them. The order is what keeps users apart: a job is released once the lead
shows the ranks that it may have, and its ranks are leased to nobody as long as the lead
shows them (`LeadView.promised`). Nothing of it is on record, so that a daemon that was
killed in between goes on from what the lead shows.

In intake mode `scheduler`, sched-burst has each job keep to its leases. A job that is
confined all the same, as it was submitted in another mode, is kept up to date.
"""

from __future__ import annotations

from functools import cached_property

from burst.config import Settings
from burst.core.rank_leases import rank_leases
from burst.core.records import RecordsView
from burst.model.lead import JobView, LeadIdentity, LeadView, LeasedRanks

_NONE: frozenset[int] = frozenset()


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


class Confinement:
    """What the pending jobs of one view may have, by the records as they are."""

    def __init__(self, records: RecordsView, lead: LeadView, apart: bool) -> None:
        self._records, self._lead, self._apart = records, lead, apart

    @cached_property
    def _leases(self) -> LeasedRanks:
        return rank_leases(self._records, self._lead)

    def concerns(self, job: JobView) -> bool:
        """Tell whether the job is confined, or is to be."""
        return self._apart or job.confined_to is not None

    def ranks(self, job: JobView) -> frozenset[int]:
        """Return the lent ranks on which the job may start now.

        Of a tick that gives jobs to bursts, to be asked after that.
        """
        return self._leases.jobs.get(job.id, _NONE)

    def is_due(self, job: JobView) -> bool:
        """Tell whether the lead shows other ranks than these."""
        return self.concerns(job) and job.confined_to != self.ranks(job)
