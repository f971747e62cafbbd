# SPDX-License-Identifier: MIT
"""What the rules of `[[policy]]` say of each pending job.

Where there are none, and `[plan] worth` is 0, nothing here changes a decision.
"""

from __future__ import annotations

import msgspec

from burst.config import PolicyRule, Settings
from burst.core.isolated.placement import unreadable_isolated_record
from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand, LiveBurstWorth
from burst.core.plan.eligible import IsolatedFacts
from burst.core.plan.first_offers import FirstOffers
from burst.core.plan.fit import nodes_needed
from burst.core.plan.plan_demands import plan_context
from burst.core.records import RecordsView
from burst.core.select.constraints import Constraints
from burst.core.select.own_nodes import OwnNodes
from burst.core.select.queues import in_stopped_queue
from burst.core.world import World
from burst.core.worth.comparison import Comparison
from burst.core.worth.estimate import StartEstimate, judge
from burst.core.worth.online_times import OnlineTimes
from burst.core.worth.rules import JobFacts, RuleSet
from burst.model.burst import Isolated
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import JobView
from burst.model.reason import Reason
from burst.model.request import BurstPreferences, ResourceRequest

BY_FORECAST = (Reason.NOT_WORTH, Reason.NOT_FORECAST)
"""Decisions that leave a job to its turn on own nodes, by a forecast or for want of
one."""

# What the user says, the name of the rule, and whether that is a guest.
_Wish = tuple[BurstPreferences, str | None, bool]


class JobPolicy:
    """Asks the rules about the jobs of one tick."""

    def __init__(
        self,
        records: RecordsView,
        world: World,
        own_nodes: OwnNodes,
        settings: Settings,
        now: float,
    ) -> None:
        self._records = records
        self._world = world
        self._own_nodes = own_nodes
        self._settings = settings
        self._now = now
        self._rules: RuleSet | None = None
        self._found: dict[JobId, PolicyRule] = {}
        self._narrowed: dict[_Wish, BurstPreferences] = {}
        self._shapes = {slot.shape for slot in world.slots}
        self._nodes: dict[ResourceRequest, int] = {}
        self._offers: FirstOffers

    def begin(self, rules: RuleSet, context: PlanContext) -> None:
        """Take over the rules, and what a plan for the jobs is made on."""
        if rules.leaves_all:
            return
        self._rules = rules
        unreadable = unreadable_isolated_record(self._records)
        isolated = IsolatedFacts(self._world.identity, unreadable)
        times = OnlineTimes(self._records.times)
        self._offers = FirstOffers(context, context.eligible(isolated), times)

    def may_burst(self, job: JobView) -> bool:
        """Tell whether a job is burstable by its attribute, or as a rule marks it."""
        if job.burstable or job.request is None:
            return job.burstable
        rule = self.rule(job)
        return rule is not None and rule.mark

    def rule(self, job: JobView) -> PolicyRule | None:
        """Return the rule that decides on a job; None where no rule says anything."""
        if self._rules is None:
            return None
        rule = self._found.get(job.id)
        if rule is None:
            rule = self._rules.find(self._facts(job), self._now)
            self._found[job.id] = rule
        return rule

    def local_wait(self, job: JobView) -> float:
        """Return for how long a job is left to the scheduler where it can start."""
        rule, own = self.rule(job), job.preferences.wait
        if rule is not None and rule.wait is not None:
            return max(rule.wait, own or 0.0)
        return self._settings.intake.local_wait if own is None else own

    def preferences(self, job: JobView) -> BurstPreferences:
        """Return what the user prefers, narrowed by the rule, and if it is a guest."""
        rule, wish = self.rule(job), job.preferences
        guest = self._world.identity.is_guest(job.userid)
        if rule is None and not guest:
            return wish
        key = wish, rule.name if rule else None, guest
        found = self._narrowed.get(key)
        if found is None:
            found = narrowed(wish, rule) if rule else wish
            found = msgspec.structs.replace(found, guest=guest)
            self._narrowed[key] = found
        return found

    def decide_on_bank(self, job: JobView) -> Decision | None:
        """Return why nothing is bought for a job on account of its bank, or None.

        Flux takes any name for a bank where no plugin of flux-accounting is loaded.
        """
        banks = self._world.banks
        if banks.refuses(job):
            own = ", ".join(sorted(banks.of_user(job.userid))) or "none"
            return Decision(Reason.BANK_REFUSED, {"bank": job.bank, "own": own})
        if self._now >= banks.awaited_until:
            return None
        if not (job.bank or self._settings.uses_banks):
            return None
        return Decision(Reason.BANK_UNREAD, {"until": banks.awaited_until})

    def decide(
        self, job: JobView, request: ResourceRequest, waited: float
    ) -> Decision | None:
        """Return why no burst is made for a job now; None if one may be.

        `waited` is how long the scheduler has had it. Only a job that could run on own
        nodes which are up is to wait for them.
        """
        rule = self.rule(job)
        if rule is None or not self._runs_here(job, request):
            return None
        if rule.wait is not None:
            left = self.local_wait(job) - waited
            if left > 0:
                facts = {"rule": rule.name, "until": self._now + left}
                return Decision(Reason.OWN_FIRST, facts)
        if not rule.worth or self._is_asked_for(job):
            return None
        here = self._world.forecasts.get(job.id) if self._world.forecasts else None
        if here is None:
            return self._decide_without(rule)
        compared = self._compare(job, request, rule, here)
        if compared is None or compared.judgement.pays:
            return None  # where no offer would do, the planner says why
        return Decision(Reason.NOT_WORTH, {"comparison": compared})

    def live_worth(
        self, job: JobView, request: ResourceRequest
    ) -> LiveBurstWorth | None:
        """Return what a live burst has to be worth to a job; None: it may have any."""
        rule, forecasts = self.rule(job), self._world.forecasts or {}
        here = forecasts.get(job.id)
        if rule is None or not rule.worth or here is None:
            return None
        if self._is_asked_for(job) or not self._runs_here(job, request):
            return None
        return LiveBurstWorth(here, self._run_time(job), rule.worth, self._now)

    def _run_time(self, job: JobView) -> float:
        """Return for how long a job may run where nodes are bought for it."""
        # The time limit, as `burst replay` counts it, not the time that is expected:
        # that buys twice as much for the same wait (docs/measured.md).
        run_time = job.duration or self._world.run_times.get(job.id, 0.0)
        return run_time or self._settings.deadlines.run

    def pays(self, job: JobView, at: float) -> bool:
        """Tell whether a burst pays for a job that would start here at that time."""
        rule = self.rule(job)
        if rule is None or not rule.worth or job.request is None:
            return False
        here = StartEstimate(expected=at, latest=at, earliest=at)
        compared = self._compare(job, job.request, rule, here)
        return compared is not None and compared.judgement.pays

    def _runs_here(self, job: JobView, request: ResourceRequest) -> bool:
        elsewhere = in_stopped_queue(job, self._settings.intake)
        elsewhere = elsewhere or job.preferences.mode == "isolated"
        return not elsewhere and self._own_nodes.fits_when_idle(request)

    def _is_asked_for(self, job: JobView) -> bool:
        """Tell whether its user wants a burst whatever it is worth."""
        hold = self._records.holds.get(job.id)
        return job.preferences.wanted or (hold is not None and hold.requested)

    def _decide_without(self, rule: PolicyRule) -> Decision | None:
        until = forecast_due(self._world, self._settings, self._now)
        if self._now >= until:
            return None
        return Decision(Reason.NOT_FORECAST, {"rule": rule.name, "until": until})

    def _compare(
        self,
        job: JobView,
        request: ResourceRequest,
        rule: PolicyRule,
        here: StartEstimate,
    ) -> Comparison | None:
        """Compare a start here with one on a burst; None if there could be none."""
        demand = Demand(
            job=job.id,
            userid=job.userid,
            request=request,
            preferences=self.preferences(job),
            duration=job.duration,
            isolated=Isolated(kind="job", job=job.id, duration=job.duration),
        )
        found = self._offers.find(demand)
        if found is None:
            return None
        run_time = self._run_time(job)
        purchase = msgspec.structs.replace(found.purchase, run_time=run_time)
        return Comparison(
            here=here,
            purchase=purchase,
            offer=found.key,
            judgement=judge(here, purchase, rule.worth or 0.0, self._now),
            rule=rule.name,
            now=self._now,
        )

    def _facts(self, job: JobView) -> JobFacts:
        return JobFacts(
            userid=job.userid,
            queue=job.queue,
            bank=self._world.banks.bank_of(job),
            name=job.name,
            attributes=job.attributes,
            nodes=self._nodes_of(job.request) if job.request else 0,
            duration=job.duration,
            submitted=job.t_submit,
        )

    def _nodes_of(self, request: ResourceRequest) -> int:
        """Return how many lent nodes a job needs; 0 if none would do.

        Of a job that asks for nodes it is those, whatever nodes there are.
        """
        nodes = self._nodes.get(request)
        if nodes is None:
            needs = (nodes_needed(request, shape) for shape in self._shapes)
            nodes = min((need for need in needs if need), default=request.nodes)
            self._nodes[request] = nodes
        return nodes


def forecast_due(world: World, settings: Settings, now: float) -> float:
    """Return until when jobs without a forecast wait for the one that is owed."""
    since = world.forecast_owed_since
    return (now if since is None else since) + settings.deadlines.forecast


def narrowed(wish: BurstPreferences, rule: PolicyRule) -> BurstPreferences:
    """Return preferences of a user, narrowed by a rule."""
    return msgspec.structs.replace(
        wish,
        allowed=rule.providers,
        allowed_price=rule.max_price,
        rule=rule.name,
    )


def policy_for_job(
    records: RecordsView, world: World, settings: Settings, now: float
) -> JobPolicy:
    """Return what answers for one job outside of a tick. The lead can be read."""
    own_nodes = OwnNodes(records, world, Constraints(world.identity))
    policy = JobPolicy(records, world, own_nodes, settings, now)
    context = plan_context(records, world, settings, now)
    policy.begin(RuleSet(settings.rules, world.userids), context)
    return policy
