# SPDX-License-Identifier: MIT
"""What a burst is worth to each pending job, as its rule of `[[policy]]` asks.

A forecast simulates the queue in its order. If a burst pays for a job by the start that
the simulation finds, it goes on as if that job had left the queue. If each job were
judged by itself, nodes would be bought for all jobs of an array, though the others
hardly wait once a few are gone. The decisions of the last tick tell which jobs may get
a burst at all:

* a job that only waits for its forecast, or for which a burst did not pay, may;
* a job for which the planner had no nodes stays in the queue, and is judged by its
  place;
* any other job (not looked at yet, to start at once, or tries own nodes first) stays,
  too, and is not judged by this forecast: nodes would be bought for each of a hundred
  such jobs that were submitted together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import msgspec

from burst.config import PolicyRule, Settings
from burst.core.jobs.job_context import JobContext
from burst.core.jobs.job_rules import JobRules
from burst.core.jobs.queues import in_stopped_queue
from burst.core.plan.capacity import own_ranks
from burst.core.plan.demands import Demand, LiveBurstWorth
from burst.core.plan.estimate import Comparison, Purchase, StartEstimate, judge
from burst.core.plan.offers import ProviderOffer
from burst.core.plan.online_times import OnlineTimes
from burst.core.plan.openings import Opening, Openings
from burst.core.plan.plan_demands import plan_context
from burst.core.plan.planned_bursts import DemandKey
from burst.core.records import RecordsView
from burst.core.world import World
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import JobView
from burst.model.reason import Reason
from burst.model.request import ResourceRequest

BY_FORECAST = (Reason.NOT_WORTH, Reason.NOT_FORECAST)
"""Decisions that leave a job to its turn on own nodes, by a forecast or because there
is none."""

FORECAST_S = 60.0
"""For how many seconds jobs whose rule asks what a burst saves wait for a forecast of
their start on own nodes, since something changed and none was made. After that they are
decided on without one, as if `worth` were 0. This is as long as a job is left to the
scheduler (`IntakeSettings.local_wait`), and many times what a forecast takes."""


class BurstWorth:
    """Compares bursts for the jobs of one tick with their starts on own nodes."""

    def __init__(self, context: JobContext) -> None:
        self.context, self._rules = context, context.rules
        self._world, self._settings = context.world, context.settings
        self._now = context.plan.now
        self._first: dict[DemandKey, tuple[str, Purchase] | None] = {}

    def decide(
        self, job: JobView, demand: Demand, waited: float
    ) -> tuple[Decision | None, LiveBurstWorth | None]:
        """Return why no burst is made for a job now, and what it asks of a live one.

        None if one may be made, and if the job may have any live burst. `demand` is the
        job's, from `JobContext.demand`; `waited` is how long the scheduler has had the
        job. Only a job that could run on own nodes that are up is to wait for them.
        """
        rule = self._rules.rule(job)
        if rule is None or not self._runs_here(job, demand.request):
            return None, None
        if rule.wait is not None:
            left = self._rules.local_wait(job) - waited
            if left > 0:
                facts = {"rule": rule.name, "until": self._now + left}
                return Decision(Reason.OWN_FIRST, facts), None
        if not rule.worth or self._is_asked_for(job):
            return None, None
        here = self._world.forecasts.get(job.id) if self._world.forecasts else None
        if here is None:
            late = self._now >= forecast_due(self._world, self._now)
            facts = {"rule": rule.name}
            return None if late else Decision(Reason.NOT_FORECAST, facts), None
        live = None
        if self._any_live:
            live = LiveBurstWorth(here, self._run_time(job), rule.worth, self._now)
        compared = self._compare(job, demand, rule, here)
        if compared is None or compared.judgement.pays:
            return None, live  # where no offer would do, the planner says why
        return Decision(Reason.NOT_WORTH, {"comparison": compared}), live

    def _run_time(self, job: JobView) -> float:
        """Return for how long a job may run where nodes are bought for it."""
        # The time limit, as `burst replay` counts it, not the time that is expected:
        # that buys twice as much for the same wait.
        run_time = job.duration or self._world.run_times.get(job.id, 0.0)
        return run_time or self._settings.deadlines.run

    def pays(self, job: JobView, at: float) -> bool:
        """Tell whether a burst pays for a job that would start here at that time."""
        rule = self._rules.rule(job)
        if rule is None or not rule.worth or job.request is None:
            return False
        here = StartEstimate(expected=at, latest=at, earliest=at)
        compared = self._compare(job, self.context.demand(job), rule, here)
        return compared is not None and compared.judgement.pays

    def _runs_here(self, job: JobView, request: ResourceRequest) -> bool:
        elsewhere = in_stopped_queue(job, self._settings.intake)
        elsewhere = elsewhere or job.preferences.mode == "isolated"
        return not elsewhere and self.context.own_nodes.fits_when_idle(request)

    def _is_asked_for(self, job: JobView) -> bool:
        """Tell whether its user wants a burst whatever it is worth."""
        hold = self.context.records.holds.get(job.id)
        return job.preferences.wanted or (hold is not None and hold.requested)

    def _compare(
        self,
        job: JobView,
        demand: Demand,
        rule: PolicyRule,
        here: StartEstimate,
    ) -> Comparison | None:
        """Compare a start here with one on a burst; None if there could be none."""
        found = self._first_offer(demand)
        if found is None:
            return None
        offer, purchase = found
        run_time = self._run_time(job)
        purchase = msgspec.structs.replace(purchase, run_time=run_time)
        return Comparison(
            here=here,
            purchase=purchase,
            offer=offer,
            judgement=judge(here, purchase, rule.worth or 0.0, self._now),
            rule=rule.name,
            now=self._now,
        )

    def _first_offer(self, demand: Demand) -> tuple[str, Purchase] | None:
        """Return what would be bought for a job if it were the first of the plan.

        That is the key of an offer, and the purchase of its nodes with a run time of 0.
        None if no offer could ever serve the job.
        """
        key = self._openings.key(demand)
        if key not in self._first:
            chosen, times = self._choose(demand), self.context.records.times
            self._first[key] = chosen and (
                chosen[0].key,
                OnlineTimes(times).purchase(*chosen, 0.0),
            )
        return self._first[key]

    def _choose(self, demand: Demand) -> tuple[ProviderOffer, int] | None:
        """Return the offer that a job could have now, else one it could have later."""
        found = self._openings.find(demand)
        if isinstance(found, Opening):
            return found.candidate, found.nodes
        for source in self._openings.wanted(demand):
            nodes = self.context.plan.nodes(demand, source)
            if nodes:
                assert source.candidate is not None
                return source.candidate, nodes
        return None

    @cached_property
    def _openings(self) -> Openings:
        return Openings(self.context.plan)

    @cached_property
    def _any_live(self) -> bool:
        return bool(self.context.records.live)


def forecast_due(world: World, now: float) -> float:
    """Return until when jobs without a forecast wait for one."""
    since = world.forecast_owed_since
    return (now if since is None else since) + FORECAST_S


def worth_for_job(
    records: RecordsView, world: World, settings: Settings, now: float
) -> BurstWorth:
    """Return a BurstWorth for one job outside of a tick. The lead can be read."""
    assert world.lead is not None
    plan = plan_context(records, world, settings, now)
    own = own_ranks(records, world.lead, world.identity)
    rules = JobRules(world, settings, now)
    return BurstWorth(JobContext(records, plan, rules, own))


def assumed_to_burst(
    worth: BurstWorth,
    jobs: Mapping[JobId, JobView],
    decisions: Mapping[JobId, Decision],
) -> Callable[[JobId, float], bool]:
    """Return the function that tells a forecast whether a job is assumed to burst.

    It gets the job, and the start that the forecast found for it.
    """

    def bursts(job: JobId, at: float) -> bool:
        decision = decisions.get(job)
        if decision is None or decision.reason not in BY_FORECAST:
            return False
        return worth.pays(jobs[job], at)

    return bursts


def is_judged(decision: Decision | None) -> bool:
    """Tell whether ticks judge a job on which the last tick made this decision."""
    if decision is None:
        return False
    reason = decision.reason
    return (
        reason in BY_FORECAST or reason is Reason.RESERVED or reason.about_job.refused
    )
