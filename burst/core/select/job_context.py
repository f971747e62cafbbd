# SPDX-License-Identifier: MIT
"""The inputs of one tick's decisions on jobs, before the plan and after it."""

from __future__ import annotations

from collections.abc import Container, Mapping

import msgspec

from burst.config import Settings
from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand
from burst.core.records import RecordsView
from burst.core.select.job_rules import JobRules
from burst.core.select.own_nodes import OwnNodes
from burst.core.select.queues import in_stopped_queue, within_queue
from burst.core.world import World
from burst.model.burst import Isolated
from burst.model.decision import WAITS_HERE, Decision
from burst.model.hold import urgency_before
from burst.model.jobid import JobId
from burst.model.lead import JobView, LeadView
from burst.model.reason import Reason
from burst.model.request import ResourceRequest


class JobContext(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of one tick's decisions on jobs. The lead can be read."""

    records: RecordsView
    world: World
    lead: LeadView
    """That of the world, which was read."""
    settings: Settings
    plan: PlanContext
    """The inputs of the plan for the jobs."""
    rules: JobRules
    own_nodes: OwnNodes

    def urgency(self, job: JobView) -> int:
        """Return the urgency the job has or, where we hold it, had before."""
        return urgency_before(self.records.holds.get(job.id), job.urgency)

    def demand(self, job: JobView, rest: ResourceRequest | None = None) -> Demand:
        """Return the demand of a job whose request could be read.

        `rest` is as in `Demand`.
        """
        assert job.request is not None
        return Demand(
            job=job.id,
            userid=job.userid,
            request=within_queue(job, job.request, self.world.identity.limits),
            preferences=self.rules.preferences(job),
            rest=rest,
            since=max(job.t_submit, job.t_eligible),
            duration=job.duration,
            isolated=Isolated(kind="job", job=job.id, duration=job.duration),
            tag=job.tag,
        )

    def no_account(self, job: JobView) -> Decision | None:
        """Return why a job gets no nodes if its user is no account; None for others."""
        whose = self.world.no_account_of(job.userid, self.settings.guests)
        if not whose or not self.world.identity.is_guest(job.userid):
            return None
        return Decision(Reason.NO_ACCOUNT, {"userid": job.userid, "whose": whose})

    def may_wait(self, job: JobView, unread: Container[str]) -> bool:
        """Tell whether a job may wait for own nodes that are up, and blocks nobody.

        `unread` are the constraints that are left for a later tick.
        """
        request = job.request
        if request is None or never_on_own_nodes(job):
            return False
        if request.constraint and (
            request.constraint in unread or self.no_account(job)
        ):
            return False
        return self.own_nodes.fits_when_idle(request)

    def downgrade_final(
        self, decisions: Mapping[JobId | None, Decision]
    ) -> dict[JobId, Decision]:
        """Return a plan's decisions on jobs, final only where they have to be.

        A job that gets no burst may still run on the lead's own nodes, when those that
        are down come back, or those that are busy become free. A job that only a rule
        marks as burstable is never given up: its user asked for no burst.
        """
        # Jobs that share one final decision ask for the same.
        made: dict[tuple[int, bool, bool], Decision] = {}
        softened: dict[JobId, Decision] = {}
        for job, decision in decisions.items():
            assert job is not None  # only a request ahead of jobs has no job
            view = self.lead.jobs[job]
            flux_has_it = view.urgency > 0 and not in_stopped_queue(
                view, self.settings.intake
            )
            key = id(decision), not view.burstable, flux_has_it
            if key not in made:
                made[key] = decision
                if decision.reason.about_job.final and self._may_run_here(view):
                    made[key] = Decision(Reason.TURNED_DOWN, {}, decision.refusals)
                if made[key].reason is Reason.TURNED_DOWN and flux_has_it:
                    facts = {WAITS_HERE: self.may_wait(view, ())}
                    made[key] = msgspec.structs.replace(made[key], facts=facts)
            softened[job] = made[key]
        return softened

    def _may_run_here(self, job: JobView) -> bool:
        assert job.request is not None
        return not job.burstable or self.own_nodes.fits_when_up(job.request)


def job_context(
    records: RecordsView, plan: PlanContext, rules: JobRules, own: frozenset[int]
) -> JobContext:
    """Return the context; `own` is what `own_ranks` returns."""
    world = rules.world
    assert world.lead is not None
    return JobContext(
        records=records,
        world=world,
        lead=world.lead,
        settings=rules.settings,
        plan=plan,
        rules=rules,
        own_nodes=OwnNodes(world, plan.constraints, own),
    )


def never_on_own_nodes(job: JobView) -> bool:
    """Tell whether a job is not to run on the lead's own nodes, even if they are free.

    These are jobs for isolated bursts, and jobs with a tag.
    """
    wish = job.preferences
    return wish.mode == "isolated" or bool(wish.tag)
