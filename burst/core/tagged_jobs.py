# SPDX-License-Identifier: MIT
"""Jobs with a tag: isolated bursts for them on request, and the end of a tag.

The daemon does not buy nodes for a job with a tag by itself: the job is held until
whoever made the tag requests nodes. Here that is an isolated burst for each job, which
ends with the job.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from burst.core.actions import CancelJob
from burst.core.burst_actions import take_down
from burst.core.burst_requests import describe_request
from burst.core.isolated.decision import lost_isolated_jobs
from burst.core.money.accounts import keep_accounts
from burst.core.plan.demands import Demand, Plan
from burst.core.plan.plan_demands import plan_demands, record_proposal
from burst.core.records import RecordChanges, Transaction, is_usable
from burst.core.world import World
from burst.model.burst import NOT_HELD, Burst, Isolated, State, Tag
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import PENDING, JobState, JobView, LeadView
from burst.model.reason import Reason


class IsolatedJobs(msgspec.Struct, frozen=True, kw_only=True):
    """A request for isolated bursts for the jobs with a tag."""

    tag: Tag
    nodes: int
    """The most nodes that these bursts may have together."""
    provider: str
    offer: str = ""
    """The offer of the bursts; empty for any."""
    image: str = ""
    """The container image of the nodes; empty for that of the provider."""

    def start(self, tx: Transaction, waiting: Collection[JobId]) -> str:
        """Plan bursts; return why a job that the limit allows has no burst.

        `waiting` is what `jobs_without_bursts` returned. Jobs get bursts in Flux's
        order. If the limit does not allow a job now, the jobs after it wait, too; a job
        that needs more nodes than `nodes` is skipped. Raises Unreadable.
        """
        jobs = tx.lead.jobs
        room = self.nodes - sum(
            burst.lease.nodes for burst in tx.live if burst.lease.tag == self.tag
        )
        there = [jobs[job] for job in waiting if job in jobs]
        in_order = sorted(there, key=lambda job: (-job.later_urgency, job.id))
        demands = self._demands(tx, in_order, room)
        if not demands:
            return ""
        plan = plan_demands(tx, demands)
        for proposal in plan.proposals:
            # A job that asks for cores only may take more nodes than was assumed.
            room -= proposal.lease.nodes
            if room >= 0:
                record_proposal(tx, proposal)
        keep_accounts(tx)
        return _refusal(plan, demands)

    def _largest(self, world: World) -> int:
        """Return the most nodes that an isolated burst may have."""
        view = world.providers.get(self.provider)
        sizes = (
            offer.max_nodes
            for offer in (view.offers if view and view.offers else ())
            if "isolated" in offer.modes and self.offer in {"", offer.name}
        )
        return max(sizes, default=0)

    def _demands(
        self, tx: Transaction, in_order: Sequence[JobView], room: int
    ) -> list[Demand]:
        """Return the demands of jobs that the limit allows now: `room` nodes.

        `in_order` are the jobs in Flux's order. Jobs larger than any burst are
        included, so that their refusal is reported.
        """
        elsewhere = {
            job
            for burst in tx.bursts.values()
            if burst.live or burst.may_have_run
            for job in burst.jobs
        }
        elsewhere |= lost_isolated_jobs(tx).keys()
        largest, found = self._largest(tx.world), []
        for job in in_order:
            if job.state is not JobState.SCHED or job.id in elsewhere:
                continue
            assert job.request is not None  # otherwise its decision would be another
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
            job.preferences, provider=self.provider, offer=self.offer, mode="isolated"
        )
        return Demand(
            job=job.id,
            userid=job.userid,
            request=job.request,
            preferences=preferences,
            duration=job.duration,
            isolated=Isolated(kind="job", job=job.id, duration=job.duration),
            tag=self.tag,
            image=self.image,
        )


def jobs_without_bursts(
    lead: LeadView, tag: Tag, decisions: Mapping[JobId, Decision]
) -> tuple[JobId, ...]:
    """Return the jobs with a tag that only wait for a burst.

    According to the last tick's decisions each is held, can be read, and may start.
    """
    return tuple(
        job.id
        for job in lead.jobs.values()
        if job.tag == tag
        and job.id in decisions
        and decisions[job.id].reason is Reason.TAGGED
        and job.preferences.mode != "joined"
    )


def end_tag(tx: Transaction, tag: Tag, note: str) -> None:
    """Take down all bursts with a tag, and cancel its waiting jobs.

    What runs continues to its end, also in an isolated burst, whose job the lead shows
    as waiting: that job ends with the burst. Raises Unreadable.
    """
    jobs = tx.lead.jobs
    for burst in tx.live:
        if burst.lease.tag == tag:
            _end_burst(tx, burst, note)
    elsewhere = {
        burst.lease.isolated_job
        for burst in tx.bursts.values()
        if burst.lease.tag == tag and (is_usable(burst) or burst.may_have_run)
    }
    tx.actions += [
        CancelJob(job.id, f"{tag.name} has ended: {note}")
        for job in jobs.values()
        if job.state in PENDING and job.tag == tag and job.id not in elsewhere
    ]


def _end_burst(tx: RecordChanges, burst: Burst, note: str) -> None:
    """Take a burst down, except an isolated one that is online and runs its job."""
    if burst.lease.isolated is None:
        take_down(tx, burst, note)
    elif burst.state is State.NEW and not burst.quarantined:
        # Its provider was not called, so its job is known not to have run.
        tx.fail(burst.id, NOT_HELD, note)
    elif burst.state is not State.ONLINE:
        take_down(tx, burst, note)


def _refusal(plan: Plan, demands: Sequence[Demand]) -> str:
    """Return why the first refused demand was refused; empty if none was."""
    for demand in demands:
        decision = plan.decisions[demand.job]
        if decision.reason is not Reason.PROPOSED:
            return describe_request(decision, demand)
    return ""
