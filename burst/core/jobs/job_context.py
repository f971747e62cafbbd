# SPDX-License-Identifier: MIT
"""The inputs of one tick's decisions on jobs, before the plan and after it."""

from __future__ import annotations

from collections.abc import Mapping, Set

import msgspec

from burst.core.jobs.job_rules import JobRules
from burst.core.jobs.queues import in_stopped_queue, within_queue
from burst.core.plan.constraints import Constraints
from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand
from burst.core.plan.fit import NodePool
from burst.core.records import RecordsView
from burst.core.world import World
from burst.model.burst import Isolated
from burst.model.decision import WAITS_HERE, Decision
from burst.model.hold import urgency_before
from burst.model.jobid import JobId
from burst.model.lead import JobView
from burst.model.reason import Reason
from burst.model.request import ResourceRequest
from burst.model.shape import Shape

_NOTHING = Shape(0)


class OwnNodes:
    """The nodes of the lead that no burst leases, as a tick gives them to jobs."""

    def __init__(
        self, world: World, constraints: Constraints, own: frozenset[int]
    ) -> None:
        """`own` is what `own_ranks` returns."""
        assert world.lead is not None
        self._world, self._lead = world, world.lead
        self.constraints = constraints
        self._admitted_to = constraints.admitted_to
        self._own = own
        self._free = self._pool(own, world.lead.free)
        self._too_large: set[ResourceRequest] = set()
        self._feasible: dict[ResourceRequest, bool] = {}
        self._fits_granted: dict[tuple[ResourceRequest, bool], bool] = {}

    def take(self, request: ResourceRequest) -> bool:
        """Take what a job needs of what is free now; tell whether that was enough."""
        if request in self._too_large:
            return False
        if self._free.take(request, self._admitted_to(request)):
            return True
        self._too_large.add(request)
        return False

    def takes_some(self, request: ResourceRequest, lent: Set[int]) -> bool:
        """Tell whether a job that is first in the queue now would get own nodes, too.

        `lent` are its lent ranks. Flux takes the freest nodes, and the lowest ranks of
        equal ones.
        """
        pool = self._pool(self._own | lent, self._lead.free)
        shares = pool.fit(request, self._admitted_to(request))
        return bool(shares.keys() & self._own)

    def fits_when_idle(self, request: ResourceRequest) -> bool:
        """Tell whether the nodes that are up would do once nothing runs on them."""
        feasible = self._feasible.get(request)
        if feasible is None:
            pool = self._pool(self._own)
            feasible = pool.take(request, self._admitted_to(request))
            self._feasible[request] = feasible
        return feasible

    def fits_when_up(self, request: ResourceRequest) -> bool:
        """Tell whether the nodes would do if all of them were up and idle."""
        others = {rank for slot in self._world.slots for rank in slot.ranks}
        others |= self._lead.barred
        pool = self._pool(set(range(len(self._world.identity.shapes))) - others)
        return pool.take(request, self._admitted_to(request))

    def fits_with_granted(self, request: ResourceRequest, *, own: bool) -> bool:
        """Tell whether a job would fit on what is free or is being given to some job.

        Without `own`, only ranks of bursts count.
        """
        key = request, own
        fits = self._fits_granted.get(key)
        if fits is None:
            free = dict(self._lead.free)
            for rank, more in self._lead.granting.items():
                less = free.get(rank, _NOTHING)
                free[rank] = Shape(less.cores + more.cores, less.gpus + more.gpus)
            usable = self._lead.usable
            pool = self._pool(usable if own else usable - self._own, free)
            fits = pool.take(request, self._admitted_to(request))
            self._fits_granted[key] = fits
        return fits

    def _pool(
        self, ranks: Set[int], free: Mapping[int, Shape] | None = None
    ) -> NodePool:
        """Return a pool of these nodes with what is free of each; by default, all."""
        shapes = self._world.identity.shapes
        whole = {rank: shapes[rank] for rank in ranks}
        if free is not None:
            free = {rank: free.get(rank, _NOTHING) for rank in ranks}
        whole_nodes = self._lead.scheduler.whole_nodes
        return NodePool(whole if free is None else free, whole, whole_nodes=whole_nodes)


class JobContext:
    """The inputs of one tick's decisions on jobs. The lead can be read."""

    def __init__(
        self,
        records: RecordsView,
        plan: PlanContext,
        rules: JobRules,
        own: frozenset[int],
    ) -> None:
        """`plan` is for the jobs, too; `own` is what `own_ranks` returns."""
        assert rules.world.lead is not None
        self.records, self.plan, self.rules = records, plan, rules
        self.world, self.settings = rules.world, rules.settings
        self.lead = rules.world.lead
        self.own_nodes = OwnNodes(rules.world, plan.constraints, own)

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

    def may_wait(self, job: JobView) -> bool:
        """Tell whether a job may wait for own nodes that are up, and blocks nobody."""
        request = job.request
        if request is None or never_on_own_nodes(job):
            return False
        if request.constraint and (
            request.constraint in self.plan.constraints.later or self.no_account(job)
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
                    facts = {WAITS_HERE: self.may_wait(view)}
                    made[key] = msgspec.structs.replace(made[key], facts=facts)
            softened[job] = made[key]
        return softened

    def _may_run_here(self, job: JobView) -> bool:
        assert job.request is not None
        return not job.burstable or self.own_nodes.fits_when_up(job.request)


def never_on_own_nodes(job: JobView) -> bool:
    """Tell whether a job is not to run on the lead's own nodes, even if they are free.

    These are jobs for isolated bursts, and jobs with a tag.
    """
    wish = job.preferences
    return wish.mode == "isolated" or bool(wish.tag)
