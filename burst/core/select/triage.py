# SPDX-License-Identifier: MIT
"""Which pending jobs want a burst, and which can start on what is up."""

from __future__ import annotations

from collections.abc import Container, Mapping

import msgspec

from burst.config import Settings
from burst.core.behaviour import behaviour_of
from burst.core.isolated import decision as isolated_decision
from burst.core.isolated.lost_jobs import decide_lost, lost_isolated_jobs
from burst.core.plan.capacity import (
    is_up,
    missing_nodes,
    waits_for_growth,
)
from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand
from burst.core.plan.shortfall import Shortfall
from burst.core.records import RecordsView
from burst.core.select.accounts import decide_on_account
from burst.core.select.assignments import (
    lease_warning,
    retry_pause,
    waiting_decision,
)
from burst.core.select.association_limits import (
    LimitsInUse,
    decide_on_dependencies,
)
from burst.core.select.burst_worth import BurstWorth
from burst.core.select.confinement import (
    Confinement,
    burst_tags,
    confines_jobs,
    lasting,
)
from burst.core.select.job_rules import JobRules
from burst.core.select.own_nodes import OwnNodes
from burst.core.select.queues import (
    decide_on_queue,
    decide_on_renting,
    in_stopped_queue,
    may_leave_queue,
    within_queue,
)
from burst.core.world import World
from burst.core.worth.rules import RuleSet
from burst.model.burst import Burst, Isolated
from burst.model.decision import Decision
from burst.model.hold import HELD_BY_US, Hold, HoldState
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView, LeadView
from burst.model.reason import Reason
from burst.model.request import ResourceRequest

# Tuples, not sets: a state is found by identity, and an enum's hash takes long.
_STARTED = (JobState.RUN, JobState.CLEANUP, JobState.INACTIVE)
# At least so long after its submission a job may be the one that nodes are given to.
_GRANTED_S = 1.0


class JobTriage:
    """Finds for each pending job a decision, or what is to be had for it."""

    def __init__(
        self,
        records: RecordsView,
        world: World,
        settings: Settings,
        rules: RuleSet,
        context: PlanContext,
    ) -> None:
        """`context` is what the plan for the jobs is made on."""
        assert world.lead is not None
        self._lead: LeadView = world.lead
        now, constraints = context.now, context.slots.constraints
        self._constraints = constraints
        self._holds = records.holds
        self._any_live = bool(records.live)
        self._settings, self._intake = settings, settings.intake
        self._now = now
        self.own_nodes = OwnNodes(records, world, constraints)
        apart = confines_jobs(world.identity, settings)
        lasts, tags = lasting(records, settings, now), burst_tags(records, settings)
        self.confinement = Confinement(records, self._lead, apart, lasts, tags)
        self.rules = JobRules(world, settings, rules, now)
        self._worth = BurstWorth(self.rules, records, self.own_nodes, context)
        self._isolated_bursts = {
            job: burst
            for burst in records.bursts.values()
            if burst.may_have_run
            for job in burst.jobs
        }
        self._lost = lost_isolated_jobs(records)
        self._world = world
        self._limits = LimitsInUse(records, world)
        self._shortfalls: Mapping[JobId, Shortfall] = {}
        self.here: set[JobId] = set()
        """Jobs that fit on own nodes that are free, each beside those before it."""
        self._unread: frozenset[str] = frozenset()
        self.starting: set[JobId] = set()
        """Jobs that may be starting; the next view of the lead tells."""
        self.decisions: dict[JobId, Decision] = {}
        self.demands: list[Demand] = []

    def sort(
        self,
        bursts_by_job: Mapping[JobId, list[Burst]],
        still_refused: Container[JobId],
        shortfalls: Mapping[JobId, Shortfall] | None = None,
    ) -> None:
        """Decide on the jobs, highest urgency first, then oldest first, as Flux does.

        Not on those that are still refused. `shortfalls` are of jobs that could not
        have all the nodes that they need.
        """
        self._shortfalls = shortfalls or {}
        fresh = [
            job
            for number, job in self._lead.jobs.items()
            if number not in still_refused and job.state not in _STARTED
        ]
        fresh.sort(key=self._sort_key)
        self._unread = self._constraints.read(
            (job.userid, job.request.constraint)
            for job in fresh
            if job.request
            and job.request.constraint
            and job.id not in bursts_by_job
            # A user's share of the time for constraints is by user id, too.
            and not self._decide_on_account(job)
        )
        for job in fresh:
            found = self._triage(job, bursts_by_job.get(job.id, []))
            if isinstance(found, Decision):
                self.decisions[job.id] = found
            else:
                self.demands.append(found)

    @property
    def behind(self) -> bool:
        """Whether some constraints are left for a later tick."""
        return bool(self._unread)

    def is_unread(self, job: JobView) -> bool:
        """Tell whether a job's constraint is not evaluated, in this tick or at all."""
        if job.request is None or not job.request.constraint:
            return False
        later = job.request.constraint in self._unread
        return later or self._decide_on_account(job) is not None

    def downgrade_final(
        self, decisions: Mapping[JobId | None, Decision]
    ) -> dict[JobId, Decision]:
        """Return a plan's decisions on jobs, none final that need not be.

        What gets no burst may still run on the lead's own nodes, when those that are
        down come back, or those that are busy become free. A job that
        only a rule marks as burstable is never given up: its user asked for no burst.
        """
        # Jobs that share one final decision ask for the same.
        made: dict[tuple[int, bool], Decision] = {}
        softened: dict[JobId, Decision] = {}
        for job, decision in decisions.items():
            assert job is not None  # only a request ahead of jobs is for none
            marked = not self._lead.jobs[job].burstable
            key = id(decision), marked
            if key not in made:
                made[key] = decision
                if decision.reason.about_job.final and (
                    marked or self._may_run_here(job)
                ):
                    milder = Decision(Reason.TURNED_DOWN, {}, decision.refusals)
                    made[key] = milder
            softened[job] = made[key]
        return softened

    def _may_run_here(self, job: JobId) -> bool:
        request = self._lead.jobs[job].request
        assert request is not None
        return self.own_nodes.fits_when_up(request)

    def waits_here(self, job: JobId) -> bool:
        """Tell whether a job may wait for own nodes that are up, and blocks nobody."""
        view = self._lead.jobs[job]
        request = view.request
        if request is None or never_on_own_nodes(view) or self.is_unread(view):
            return False
        return self.own_nodes.fits_when_idle(request)

    def urgency(self, job: JobView) -> int:
        """Return the urgency the job has or, where we hold it, had before."""
        hold = self._holds.get(job.id)
        return hold.urgency if hold and hold.state in HELD_BY_US else job.urgency

    def _sort_key(self, job: JobView) -> tuple[int, int]:
        return -self.urgency(job), job.id

    def _triage(self, job: JobView, bursts: list[Burst]) -> Decision | Demand:
        elsewhere = self._decide_elsewhere(job)
        known = bool(bursts) or elsewhere is not None
        if not (known or self.rules.may_burst(job)):
            return Decision(Reason.NOT_BURSTABLE)
        alone = elsewhere or self._decide_left_alone(job)
        if alone:
            return alone
        assert job.request is not None
        if not bursts and job.request.constraint in self._unread:
            return Decision(Reason.NOT_YET_READ)
        found = self._decide(job, job.request, bursts)
        if isinstance(found, Demand) and self._may_be_starting(job, job.request):
            self.starting.add(job.id)
            return Decision(Reason.STARTING, {"scheduler": self._scheduler})
        return found

    @property
    def _scheduler(self) -> str:
        return self._lead.scheduler.title

    def _decide(
        self, job: JobView, request: ResourceRequest, bursts: list[Burst]
    ) -> Decision | Demand:
        """Return the decision on a job, or what it lacks, by this view of the lead."""
        if bursts:
            return self._decide_assigned(job, request, bursts)
        closed = self._decide_on_account(job) or decide_on_queue(
            job, self._lead, self._intake
        )
        if closed:
            return closed
        late = retry_pause(
            self._holds.get(job.id), job, self._settings.deadlines.release, self._now
        )
        if late:
            return late
        if self._starts_here(job, request, self._holds.get(job.id)):
            return Decision(Reason.LOCAL)
        limits = self._world.identity.limits
        unrented = decide_on_renting(job, self._lead, limits, self._intake)
        return unrented or self._decide_to_rent(job, request)

    def _decide_to_rent(
        self, job: JobView, request: ResourceRequest
    ) -> Decision | Demand:
        """Return what is to be had for a job that has no nodes here."""
        found = self._demand(job, request, 0)
        if isinstance(found, Decision) or found.tag:
            return found
        return self.rules.decide_on_bank(job) or self._by_rule(job, found)

    def _by_rule(self, job: JobView, demand: Demand) -> Decision | Demand:
        """Return what a job's rule makes of a demand; nothing is bought for it yet."""
        why = self._worth.decide(job, demand.request, self._waited(job))
        if why is not None and not why.reason.about_job.refused:
            return why
        over = self._limits.decide(job, demand.request)
        if over is not None:
            return over
        worth = None
        if self._any_live:
            worth = self._worth.live_worth(job, demand.request)
        # A job to which no nodes are worth their price takes none of its user's limit.
        if why is None or worth is not None:
            self._limits.count(job, demand.request)
        if why is None and worth is None:
            return demand
        return msgspec.structs.replace(demand, not_worth=why, live_worth=worth)

    def _may_be_starting(self, job: JobView, request: ResourceRequest) -> bool:
        """Tell whether the nodes that the job lacks may be taken by the job itself.

        Jobs are read before resources, so what a pending job needs may not be free
        because the job was given it in between. That may be so if the job changed while
        the view was read, or if the scheduler is giving nodes that would do for it to a
        job that is not known yet; the latter counts for as long as the job is left to
        the scheduler. A held job is not starting.
        """
        if job.urgency == 0 or in_stopped_queue(job, self._intake):
            return False
        if job.id in self._lead.changed:
            return True
        return (
            self._waited(job) < max(self.rules.local_wait(job), _GRANTED_S)
            and bool(self._lead.granting)
            and self.own_nodes.fits_with_granted(request)
        )

    def _decide_elsewhere(self, job: JobView) -> Decision | None:
        """Return the decision on a job that may have run in an isolated burst."""
        if job.id in self._isolated_bursts:
            return isolated_decision.decide(self._isolated_bursts[job.id])
        lost = self._lost.get(job.id)
        return None if lost is None else decide_lost(lost)

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
        stopped, queues = (
            in_stopped_queue(job, self._intake),
            self._world.identity.queues,
        )
        moved = self.confinement.is_kept_apart(job) or may_leave_queue(
            job.request, queues, self._intake
        )
        if stopped and not moved:
            return Decision(Reason.UNMOVABLE, {"queue": job.queue})
        return None

    def _decide_assigned(
        self, job: JobView, request: ResourceRequest, bursts: list[Burst]
    ) -> Decision | Demand:
        """Return the decision on a job that has bursts, or what it still lacks."""
        missing, coming = missing_nodes(request, bursts, self._lead)
        if missing:
            return self._decide_on_account(job) or self._demand(job, request, coming)
        late = next((burst for burst in bursts if not is_up(burst)), None)
        if late is None and waits_for_growth(request, bursts, self._lead):
            late = next(burst for burst in bursts if burst.coming)
        if late is None:
            return decide_on_queue(job, self._lead, self._intake) or waiting_decision(
                job,
                self._holds.get(job.id),
                bursts,
                self._world,
            )
        ends = lease_warning(job, bursts)
        return behaviour_of(late).decide(late, self._world, ends)

    def _starts_here(
        self, job: JobView, request: ResourceRequest, hold: Hold | None
    ) -> bool:
        """Tell whether the job fits on what is free now and should wait for that."""
        held = hold is not None and hold.state in HELD_BY_US
        if in_stopped_queue(job, self._intake) or never_on_own_nodes(job):
            return False
        if not self.own_nodes.take(request):
            return False
        self.here.add(job.id)
        return held or self._waited(job) < self.rules.local_wait(job)

    def _waited(self, job: JobView) -> float:
        """Return how long the scheduler has had the job, in seconds."""
        hold = self._holds.get(job.id)
        released = hold is not None and hold.state is HoldState.RELEASED
        queued = max(job.t_submit, job.t_eligible)
        return self._now - (hold.since if hold and released else queued)

    def _demand(
        self, job: JobView, request: ResourceRequest, coming: int
    ) -> Decision | Demand:
        """Return what is to be had for the job; a decision if it is to get nothing.

        A job whose user took it back gets nothing, except in the stopped queue, where
        it could not start without us.
        """
        if self._taken_back(job) and not in_stopped_queue(job, self._intake):
            return Decision(Reason.TAKEN_BACK)
        short = self._shortfalls.get(job.id)
        if short and not coming and self._now < short.until:
            return Decision(Reason.INCOMPLETE, {"until": short.until})
        return Demand(
            job=job.id,
            userid=job.userid,
            request=within_queue(job, request, self._world.identity.limits),
            preferences=self.rules.preferences(job),
            coming=coming,
            since=max(job.t_submit, job.t_eligible),
            duration=job.duration,
            isolated=self._isolated(job),
            not_worth=_waits_for_tag(job),
            tag=job.tag,
        )

    def _decide_on_account(self, job: JobView) -> Decision | None:
        return decide_on_account(job, self._world, self._settings.guests)

    def _isolated(self, job: JobView) -> Isolated | None:
        """Return what an isolated burst would run; None if Flux could run it, too."""
        if self._taken_back(job):
            return None
        return Isolated(kind="job", job=job.id, duration=job.duration)

    def _taken_back(self, job: JobView) -> bool:
        hold = self._holds.get(job.id)
        return hold is not None and hold.state is HoldState.TAKEN_BACK


def _waits_for_tag(job: JobView) -> Decision | None:
    """Return what is told of a job with a tag, for which alone nothing is bought."""
    name = job.preferences.tag
    return Decision(Reason.TAGGED, {"tag": name}) if name else None


def never_on_own_nodes(job: JobView) -> bool:
    """Tell whether a job is not to run on the lead's own nodes, even if they are free.

    That is one for an isolated burst, and one with a tag.
    """
    wish = job.preferences
    return wish.mode == "isolated" or bool(wish.tag)
