# SPDX-License-Identifier: MIT
"""An isolated member: each of its jobs runs in an isolated burst of its own.

The size of such a member is how many nodes these bursts may have together. Its jobs are
jobs of the lead, as those of other members, and are held there. One gets its burst in
a step, where the size leaves room for it; the burst ends with the job.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from burst.core.commands import describe_request
from burst.core.isolated.lost_jobs import lost_isolated_jobs
from burst.core.plan.demands import Demand, Plan
from burst.core.plan.job_accounts import with_accounts
from burst.core.plan.plan_demands import plan_demands
from burst.core.records import Records, Transaction
from burst.core.tick import TickResult, result_of
from burst.core.world import World
from burst.core.worth.accounts import keep_accounts
from burst.model.burst import Isolated, Tag
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView, LeadView
from burst.model.reason import Reason
from burst.provider import Offer
from burst_ensemble.config.spec import MemberSpec
from burst_ensemble.core.job_rows import urgency_of
from burst_ensemble.core.member_size import StepTime
from burst_ensemble.core.read_members import bursts_of


def jobs_without_bursts(
    jobs: Sequence[JobView], decisions: Mapping[JobId, Decision]
) -> tuple[JobId, ...]:
    """Return those of a member's jobs that wait for nothing but a burst.

    The last tick has decided so: each is held, can be read, and may be started.
    """
    return tuple(
        job.id
        for job in jobs
        if job.id in decisions
        and decisions[job.id].reason is Reason.TAGGED
        and job.preferences.mode != "joined"
    )


def isolated_offers(member: MemberSpec, world: World) -> list[Offer]:
    """Return what the member's bursts may be of, as far as its provider has told."""
    view = world.providers.get(member.provider)
    return [
        offer
        for offer in (view.offers if view and view.offers else ())
        if "isolated" in offer.modes and member.offer in {"", offer.name}
    ]


class IsolatedMember(msgspec.Struct, frozen=True, kw_only=True):
    """Has bursts made for the jobs of one member."""

    member: MemberSpec
    of: Tag
    nodes: int
    """How many nodes its bursts may have."""
    waiting: Collection[JobId]
    """As `jobs_without_bursts` returns them."""

    def start(self, records: Records, at: StepTime) -> tuple[TickResult, str]:
        """Return what is changed, and why a job for which there is room has no burst.

        Jobs get theirs in Flux's order. One for which there is no room now has those
        behind it wait; one of more nodes than the size is passed over.
        """
        lead = at.world.lead
        assert lead is not None
        tx = Transaction(records, at.now)
        room = self.nodes - sum(b.lease.nodes for b in bursts_of(records, self.of))
        largest = max(
            (o.max_nodes for o in isolated_offers(self.member, at.world)), default=0
        )
        demands = self._demands(records, lead, room, largest)
        if not demands:
            return result_of(tx), ""
        plan = plan_demands(tx, at.world, at.settings, demands)
        for proposal in plan.proposals:
            # A job that asks for cores alone may take more nodes than it seemed.
            room -= proposal.lease.nodes
            if room >= 0:
                submitted = {job: lead.jobs[job].t_submit for job in proposal.jobs}
                its = (lead.jobs[job] for job in proposal.jobs)
                banks = at.world.banks
                tx.plan_burst(with_accounts(proposal.lease, its, banks), submitted)
        keep_accounts(tx, at.world, at.settings)
        return result_of(tx), _refusal(plan, demands)

    def _demands(
        self, records: Records, lead: LeadView, room: int, largest: int
    ) -> list[Demand]:
        """Return what may be had now, and what is refused as no burst is so large."""
        elsewhere = {
            job
            for burst in records.bursts.values()
            if burst.live or burst.may_have_run
            for job in burst.jobs
        }
        elsewhere |= lost_isolated_jobs(records).keys()
        found = []
        for job in sorted(
            (lead.jobs[each] for each in self.waiting if each in lead.jobs),
            key=lambda job: (-urgency_of(job), job.id),
        ):
            if job.state is not JobState.SCHED or job.id in elsewhere:
                continue
            assert job.request is not None  # or its decision were another
            nodes = max(1, job.request.nodes)
            if nodes > self.nodes:
                continue
            if nodes <= largest:
                if nodes > room:
                    break
                room -= nodes
            found.append(self._demand(job))
        return found

    def _demand(self, job: JobView) -> Demand:
        assert job.request is not None
        preferences = msgspec.structs.replace(
            job.preferences,
            provider=self.member.provider,
            offer=self.member.offer,
            mode="isolated",
        )
        return Demand(
            job=job.id,
            userid=job.userid,
            request=job.request,
            preferences=preferences,
            duration=job.duration,
            isolated=Isolated(kind="job", job=job.id, duration=job.duration),
            tag=self.of,
            image=self.member.image,
        )


def _refusal(plan: Plan, demands: Sequence[Demand]) -> str:
    """Return why the first of the demands that got nothing got nothing."""
    for demand in demands:
        decision = plan.decisions[demand.job]
        if decision.reason is not Reason.PROPOSED:
            return describe_request(decision, demand)
    return ""
