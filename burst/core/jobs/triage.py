# SPDX-License-Identifier: MIT
"""Finds the pending jobs that want a burst, and those that can start on own nodes."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

import msgspec

from burst.core.behaviour import behaviour_of
from burst.core.isolated.decision import jobs_elsewhere
from burst.core.jobs.assignments import end_warning, retry_pause, waiting_decision
from burst.core.jobs.association_limits import LimitsInUse, decide_on_dependencies
from burst.core.jobs.burst_worth import BurstWorth
from burst.core.jobs.confinement import is_kept_apart
from burst.core.jobs.job_context import JobContext, never_on_own_nodes
from burst.core.jobs.queues import (
    decide_on_queue,
    decide_on_renting,
    in_stopped_queue,
    may_leave_queue,
    within_queue,
)
from burst.core.jobs.tagged import TaggedDemands
from burst.core.plan.capacity import is_up, job_nodes
from burst.core.plan.demands import Demand
from burst.core.plan.shortfall import Shortfall
from burst.model.burst import Burst
from burst.model.decision import Decision
from burst.model.hold import HELD_BY_US, HoldState
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView
from burst.model.reason import Reason
from burst.model.request import ResourceRequest

# Tuples, not sets: a state is found by identity, and an enum's hash takes long.
_STARTED = (JobState.RUN, JobState.CLEANUP, JobState.INACTIVE)
# For at least so many seconds after its submission, a job may be the one that the
# scheduler is giving nodes to.
_GRANTED_S = 1.0


class Triaged(NamedTuple):
    """What was found for the pending jobs."""

    decisions: dict[JobId, Decision]
    """The decisions on jobs for which no nodes are planned now."""
    demands: list[Demand]
    """The demands of the other jobs, in Flux's order."""
    here: set[JobId]
    """Jobs that fit on own nodes that are free, each beside those before it."""


def triage(
    context: JobContext,
    bursts_by_job: Mapping[JobId, list[Burst]],
    still_refused: Container[JobId],
    shortfalls: Mapping[JobId, Shortfall],
) -> Triaged:
    """Decide on the jobs, highest urgency first, then oldest first, as Flux does.

    Jobs that are still refused are left out. `shortfalls` are those of jobs that could
    not have all the nodes that they need.
    """
    fresh = [
        job
        for number, job in context.lead.jobs.items()
        if number not in still_refused and job.state not in _STARTED
    ]
    fresh.sort(key=lambda job: (-context.urgency(job), job.id))
    context.plan.constraints.read(
        (job.userid, job.request.constraint)
        for job in fresh
        if job.request
        and job.request.constraint
        and job.id not in bursts_by_job
        # The time for constraints is shared by user id, too.
        and not context.no_account(job)
    )
    decisions: dict[JobId, Decision] = {}
    demands: list[Demand] = []
    jobs = _JobTriage(context, shortfalls)
    elsewhere = jobs_elsewhere(context.records)
    for job in fresh:
        its = elsewhere.get(job.id) or jobs.decide(job, bursts_by_job.get(job.id, []))
        if isinstance(its, Decision):
            decisions[job.id] = its
        else:
            demands.append(its)
    return Triaged(decisions, demands, jobs.here)


class _JobTriage:
    """Finds a decision or a demand for each pending job."""

    def __init__(
        self, context: JobContext, shortfalls: Mapping[JobId, Shortfall]
    ) -> None:
        self.here: set[JobId] = set()
        """As in `Triaged`, so far."""
        self._context, self._shortfalls = context, shortfalls
        self._world, self._intake = context.world, context.settings.intake
        self._holds = context.records.holds
        self._worth = BurstWorth(context)
        self._limits = LimitsInUse(context.records, context.world)
        self._tagged = TaggedDemands(context)

    def decide(self, job: JobView, bursts: list[Burst]) -> Decision | Demand:
        """Return the decision on a job, or its demand."""
        if not (bursts or self._context.rules.may_burst(job)):
            return Decision(Reason.NOT_BURSTABLE)
        alone = self._decide_left_alone(job)
        if alone:
            return alone
        assert job.request is not None
        constraints = self._context.plan.constraints
        if not bursts and job.request.constraint in constraints.later:
            return Decision(Reason.NOT_YET_READ)
        if not bursts and (refused := self._decide_on_count(job, job.request)):
            return refused
        found = self._decide(job, job.request, bursts)
        if isinstance(found, Demand) and self._is_unsettled(job, job.request):
            scheduler = self._context.lead.scheduler.title
            return Decision(Reason.STARTING, {"scheduler": scheduler})
        return found

    def _decide_on_count(
        self, job: JobView, request: ResourceRequest
    ) -> Decision | None:
        """Return that the scheduler starts no job with such a count; None if it may."""
        scheduler = self._context.lead.scheduler
        if scheduler.is_fluxion and not request.fluxion_reads:
            reason = Reason.COUNT_FORM
        elif request.discrete and not scheduler.takes_discrete:
            reason = Reason.DISCRETE_COUNT
        else:
            return None
        never = Decision(reason, {"scheduler": scheduler.title})
        if job.burstable:
            return never
        # It is for Flux to fail a job that only a rule marks.
        return Decision(Reason.UNREADABLE, {"why": never.text()})

    def _decide(
        self, job: JobView, request: ResourceRequest, bursts: list[Burst]
    ) -> Decision | Demand:
        """Return the decision on a job, or its demand, by this view of the lead."""
        if bursts:
            return self._decide_assigned(job, request, bursts)
        closed = self._context.no_account(job) or decide_on_queue(
            job, self._context.lead, self._intake
        )
        if closed:
            return closed
        late = retry_pause(
            self._holds.get(job.id),
            job,
            self._context.settings.deadlines.release,
            self._context.plan.now,
        )
        if late:
            return late
        if self._starts_here(job, request):
            return Decision(Reason.LOCAL)
        limits = self._world.identity.limits
        unrented = decide_on_renting(job, self._context.lead, limits, self._intake)
        return unrented or self._decide_to_rent(job)

    def _decide_to_rent(self, job: JobView) -> Decision | Demand:
        """Return the demand of a job that has no nodes, or why nothing is rented."""
        found = self._demand(job)
        if isinstance(found, Decision) or found.tag:
            return found
        return self._context.rules.decide_on_bank(job) or self._by_rule(job, found)

    def _by_rule(self, job: JobView, demand: Demand) -> Decision | Demand:
        """Return the demand as the job's rule allows it, or why it is refused."""
        why, worth = self._worth.decide(job, demand, self._waited(job))
        if why is not None and not why.reason.about_job.refused:
            return why
        # A job that only an isolated burst may run never leaves the stopped queue.
        moved = in_stopped_queue(job, self._intake) and not never_on_own_nodes(job)
        enters = self._intake.ready if moved else ""
        over = self._limits.decide(job, demand.request, enters)
        if over is not None:
            return over
        # A job to which no nodes are worth their price takes none of its user's limit.
        if why is None or worth is not None:
            self._limits.count(job, demand.request)
        if why is None and worth is None:
            return demand
        return msgspec.structs.replace(demand, not_bought=why, live_worth=worth)

    def _is_unsettled(self, job: JobView, request: ResourceRequest) -> bool:
        """Tell whether the nodes that the job lacks may be given to it, or left for it.

        Jobs are read before resources, so what a pending job needs may not be free
        because it was given in between: to the job itself, or to a job before it that
        was thought to take other nodes. That may be so if the job changed while the
        view was read, or if the scheduler is giving nodes that would do for it to a job
        that is not known yet. That job may also have ended since the scheduler was
        asked. So this counts for a second, or until it has been asked again, and
        where Flux may start the job on own nodes for as long as the job is left to it.
        A job that is held, or in the stopped queue, is given none itself.
        """
        stopped = in_stopped_queue(job, self._intake)
        held = stopped or job.urgency == 0
        if not held and job.id in self._context.lead.changed:
            return True
        alone = never_on_own_nodes(job)
        lead = self._context.lead
        if not lead.granting or (held and alone):
            return False
        own = not stopped and (not held or bool(self.here))
        patience = self._context.rules.local_wait(job) if own else 0.0
        patience = max(patience, _GRANTED_S, lead.granting_lasts)
        waits = self._waited(job) < patience
        return waits and self._context.own_nodes.fits_with_granted(request, own=own)

    def _decide_left_alone(self, job: JobView) -> Decision | None:
        """Return why nothing is done for the job, None if something may be."""
        hold = self._holds.get(job.id)
        if job.request is None:
            return Decision(Reason.UNREADABLE, {"why": job.unreadable})
        if job.state is not JobState.SCHED:
            if job.state is JobState.DEPEND:
                return decide_on_dependencies(job, self._world)
            return Decision(Reason.NOT_READY, {"what": "priority"})
        if job.urgency == 0 and not (hold and hold.state in HELD_BY_US):
            return Decision(Reason.USER_HOLD)
        identity, settings = self._world.identity, self._context.settings
        if (
            in_stopped_queue(job, self._intake)
            and not is_kept_apart(job, identity, settings)
            and not may_leave_queue(job.request, identity.queues, self._intake)
        ):
            return Decision(Reason.UNMOVABLE, {"queue": job.queue})
        return None

    def _decide_assigned(
        self, job: JobView, request: ResourceRequest, bursts: list[Burst]
    ) -> Decision | Demand:
        """Return the decision on a job that has bursts, or its demand for the rest."""
        lead = self._context.lead
        request = within_queue(job, request, self._world.identity.limits)
        nodes = job_nodes(request, bursts, lead)
        if nodes.missing:
            rest = None if nodes.rest == request else nodes.rest
            return self._context.no_account(job) or self._demand(job, rest)
        late = next((burst for burst in bursts if not is_up(burst)), None)
        if late is None and nodes.awaited:
            late = next(burst for burst in bursts if burst.coming)
        if late is None:
            constraints = self._context.plan.constraints
            return decide_on_queue(job, lead, self._intake) or waiting_decision(
                job, self._holds.get(job.id), bursts, self._world, constraints
            )
        ends = end_warning(job, bursts, self._world)
        return behaviour_of(late).decide(late, self._world, ends)

    def _starts_here(self, job: JobView, request: ResourceRequest) -> bool:
        """Tell whether the job fits on free own nodes and should wait for those."""
        hold = self._holds.get(job.id)
        held = hold is not None and hold.state in HELD_BY_US
        if in_stopped_queue(job, self._intake) or never_on_own_nodes(job):
            return False
        if not self._context.own_nodes.take(request):
            return False
        self.here.add(job.id)
        return held or self._waited(job) < self._context.rules.local_wait(job)

    def _waited(self, job: JobView) -> float:
        """Return how long the scheduler has had the job, in seconds."""
        hold = self._holds.get(job.id)
        released = hold is not None and hold.state is HoldState.RELEASED
        queued = max(job.t_submit, job.t_eligible)
        return self._context.plan.now - (hold.since if hold and released else queued)

    def _demand(
        self, job: JobView, rest: ResourceRequest | None = None
    ) -> Decision | Demand:
        """Return the demand of the job; a decision if it is to get nothing.

        `rest` is as in `Demand`.

        A job whose user took it back gets nothing, except in the stopped queue, where
        it could not start without us.
        """
        hold = self._holds.get(job.id)
        taken_back = hold is not None and hold.state is HoldState.TAKEN_BACK
        if taken_back and not in_stopped_queue(job, self._intake):
            return Decision(Reason.TAKEN_BACK)
        short = self._shortfalls.get(job.id)
        if short and rest is None and self._context.plan.now < short.until:
            return Decision(Reason.INCOMPLETE, {"until": short.until})
        demand = self._context.demand(job, rest)
        if taken_back:
            # Flux could run the job, too, so it gets no isolated burst.
            demand = msgspec.structs.replace(demand, isolated=None)
        return self._tagged.decide(demand) if demand.tag else demand
