# SPDX-License-Identifier: MIT
"""The bursts of a replay: which jobs get one, and when each is made and taken down.

Parts of a plan (`LiveNodes`, `why_unwanted`, `Purchases`) decide which live burst a job
gets, which offer is bought for it, and what budgets allow. A whole plan for one job
takes ten times as long: it would also place bursts on rank slots and promise ranks to
jobs without one, which a replay does not need, as its cloud has no limit.

Times are those of the trace; `burst.core` gets seconds since the epoch.
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Sequence
from functools import cache
from heapq import heappush

import msgspec

from burst.config import LimitSettings, PolicyRule
from burst.core.jobs.job_rules import narrowed
from burst.core.money.budget import next_begin
from burst.core.money.ledger import Costs, NodeSeconds, Payer, counted, settle
from burst.core.plan.catalog import Failures, OfferCatalog
from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand, LiveBurstWorth
from burst.core.plan.estimate import StartEstimate, judge
from burst.core.plan.leasable import LeasableRanks
from burst.core.plan.limits import Usage
from burst.core.plan.live_nodes import LiveNodes
from burst.core.plan.offers import ProviderOffer
from burst.core.plan.online_times import OnlineTimes
from burst.core.plan.rank_table import RankTable
from burst.core.plan.sources import new_burst, why_unwanted
from burst.model.burst import BurstId, Lease
from burst.model.jobid import JobId
from burst.model.lead import NO_LEAD
from burst.model.reason import Reason
from burst.model.request import BurstPreferences, ResourceRequest
from burst.model.shape import Shape
from burst_replay.bought_burst import BoughtBurst, Spending
from burst_replay.policies import Policy
from burst_replay.site import Site
from burst_replay.trace import Trace


class Due(enum.IntEnum):
    """A kind of event. Events at the same time happen in this order, and before jobs
    are submitted.
    """

    END = 0
    """A job ends; the number is the job's, also for ASK."""
    IDLE = 1
    """A burst may have been idle for long enough; the number is the burst's."""
    GONE = 2
    """Nothing of a burst is left; the number is the burst's."""
    MONEY = 3
    """The next day, week or month of a budget begins."""
    ASK = 4
    """A job has tried own nodes for long enough."""
    LATE = 5
    """A job should have started; the number is that of the last judgement."""
    HOURS = 6
    """Other rules are within their hours."""


Events = list[tuple[float, Due, int]]
"""A heap of events: time, kind, and the number of a job, a burst or a judgement."""


class ReplayBursts:
    """All bursts of a replay, by number. Jobs are identified by place in the trace."""

    def __init__(
        self, trace: Trace, site: Site, policy: Policy, events: Events
    ) -> None:
        self._trace, self._site, self._policy = trace, site, policy
        self._jobs = trace.jobs
        self._events = events
        self._settings = site.reserving
        self._spending = Spending(self._settings, policy.rules.userids, self._payer)
        self._times = site.past_times
        self._catalog = OfferCatalog(
            offers=site.offers, known=site.offers, failures=Failures()
        )
        self._purchase = cache(OnlineTimes(self._times).purchase)
        # The preferences of jobs by their rule, and the offers that these allow.
        self._wishes = {
            rule.name: narrowed(BurstPreferences(), rule)
            for rule, _ in policy.rules.terms
        }
        self._wanted = cache(
            lambda wish: [
                o for o in site.offers if not why_unwanted(wish, new_burst(o))
            ]
        )
        self._on: dict[int, int] = {}
        # All bursts that cost money.
        self._bursts: dict[int, BoughtBurst] = {}
        # Live bursts with nodes that no job has, and those that just lost their last
        # job.
        self._with_room: dict[int, BoughtBurst] = {}
        self._emptied: set[int] = set()
        self._asked_again = math.inf
        self._context: PlanContext | None = None
        self.made: dict[int, int] = {}
        """The size in nodes of the burst that was made for a job, by job."""
        self.turned_down: set[int] = set()
        """Jobs for which no budget had the money at some time."""
        self.spent = NodeSeconds()
        """The use of the nodes of bursts that are gone."""
        self.costs = Costs()
        """The cost of bursts that are gone."""

    def serve(self, job: int, rule: PolicyRule, at: float, now: float) -> float | None:
        """Run a job on a live burst, or else on a new one, if that pays.

        `at` is when it would start on own nodes. Return when it starts; None if no
        burst pays, or no budget has the money.
        """
        limit, asked = self._jobs[job].limit, rule.worth or 0.0
        here = StartEstimate(expected=at, latest=at, earliest=at)
        if self._with_room:
            worth = LiveBurstWorth(here, limit, asked, now)
            demand = self._demand(job, rule, worth if asked else None)
            name = LiveNodes(self._plan_at(now)).reuse(demand)
            if name is not None:
                self._use(int(name), job, demand, now)
                return now
        wanted, nodes = self._wanted(self._wishes[rule.name]), self._nodes(job)
        pays = [
            judge(here, self._purchase(each, nodes, limit), asked, now).pays
            for each in wanted
        ]
        if True not in pays:
            return None
        demand = self._demand(job, rule)
        # The job is judged by the offer that it would get; by the first if there is no
        # money for any.
        place = self._first_with_money(wanted, demand, now)
        if not pays[place or 0]:
            return None
        if place is None:
            self.turned_down.add(job)
            return None
        return self._make(self._from(wanted[place], now), job, demand, now)

    def end(self, job: int, now: float) -> None:
        """Record the end of a job, if it ran on a burst."""
        number = self._on.pop(job, None)
        if number is None:
            return
        bought = self._bursts[number]
        rules = [rule for rule, _ in self._policy.rules.terms]
        bought.end(JobId(job + 1), rules, self._times, self._epoch(now))
        self._with_room[number] = bought
        if not bought.busy:
            self._emptied.add(number)
        self._context = None

    def handle(self, what: Due, number: int, now: float) -> bool:
        """Handle an event of a burst; tell whether money has come back for jobs."""
        if what is Due.GONE:
            at = self._epoch(now)
            entry = counted(self._bursts.pop(number).entry, at)
            settled = settle(entry, at)
            self._spending.settle(settled)
            known, more = map(msgspec.structs.astuple, (self.spent, entry.spent))
            self.spent = NodeSeconds(*map(operator.add, known, more))
            self.costs = self.costs.plus(settled.costs)
            self._context = None
            return bool(self.turned_down)
        if number in self._with_room and self._with_room[number].idle_until == now:
            self._take_down(number, now)
        return False

    def release_empty(self, now: float) -> None:
        """Take down bursts that no waiting job took, now or after their idle time."""
        for number in sorted(self._emptied):
            bought = self._bursts[number]
            if bought.busy:
                continue
            left = bought.view(self._epoch(now)).source.stays
            if left:
                bought.idle_until = now + left
                heappush(self._events, (now + left, Due.IDLE, number))
            else:
                self._take_down(number, now)
        self._emptied.clear()

    def _demand(
        self, job: int, rule: PolicyRule, worth: LiveBurstWorth | None = None
    ) -> Demand:
        """Return the demand of a job, as for a plan."""
        facts, number = self._jobs[job], JobId(job + 1)
        since = self._epoch(facts.submit)
        cores = self._site.machine.cores
        return Demand(
            job=number,
            userid=facts.userid,
            request=ResourceRequest(
                nodes=0, slots=self._nodes(job), cores_per_slot=cores
            ),
            preferences=self._wishes[rule.name],
            since=since,
            duration=facts.limit,
            live_worth=worth,
        )

    def _plan_at(self, now: float) -> PlanContext:
        """Return what a plan needs to know: live bursts, and what may be bought.

        The result is kept until something changes.
        """
        at, plan = self._epoch(now), self._settings.plan
        if self._context is None or self._context.now != at:
            may_buy = self._spending.purchases(self._bursts.values(), at)
            live = [
                bought.view(at)
                for bought in self._with_room.values()
                if plan.share or not bought.busy
            ]
            self._context = PlanContext(
                now=at,
                identity=NO_LEAD,
                catalog=self._catalog,
                table=RankTable((), LeasableRanks(), frozenset()),
                usage=Usage(LimitSettings(), {}, may_buy),
                live=live,
                settings=plan,
            )
        return self._context

    def _first_with_money(
        self, wanted: Sequence[ProviderOffer], demand: Demand, now: float
    ) -> int | None:
        """Return the place of the first offer that budgets allow; None if they do not.

        Jobs are then judged again when a budget has money again.
        """
        may_buy, again = self._plan_at(now).usage.purchases, math.inf
        for place, offered in enumerate(wanted):
            candidate = self._from(offered, now)
            refused = may_buy.refuse(candidate, demand, demand.request.slots)
            if refused is None:
                return place
            if refused.reason is Reason.OVER_BUDGET:
                begins = next_begin(self._settings.budget, self._epoch(now))
                again = begins - self._trace.started
        if again not in (self._asked_again, math.inf):
            self._asked_again = again
            heappush(self._events, (again, Due.MONEY, 0))
        return None

    def _from(self, offered: ProviderOffer, now: float) -> ProviderOffer:
        """Return an offer with the end of a lease that begins now."""
        end = offered.lease_end and self._epoch(now) + offered.lease_end
        return msgspec.structs.replace(offered, lease_end=end)

    def _make(
        self, candidate: ProviderOffer, job: int, demand: Demand, now: float
    ) -> float:
        """Make a burst for a job; return when it is online."""
        offer, number = candidate.offer, len(self.made)
        lease = Lease(
            id=BurstId(str(number)),
            provider=candidate.provider,
            offer=offer.name,
            slot="",
            hosts=("",) * demand.request.slots,
            ranks=(0,),
            shape=Shape(self._site.machine.cores),
            userids=(self._jobs[job].userid,),
            created=self._epoch(now),
            price=offer.price,
            fee=offer.fee,
            priced_by=candidate.priced_by,
            end=candidate.lease_end,
        )
        online = now + offer.join_time
        payer = self._payer(JobId(job + 1), demand.preferences.rule)
        up = self._epoch(online)
        self._bursts[number] = BoughtBurst(lease, demand, payer, up, self._settings)
        self._on[job] = number
        self.made[job] = lease.nodes
        self._context = None
        return online

    def _use(self, number: int, job: int, demand: Demand, now: float) -> None:
        """Run a job on the nodes of a live burst that it was given."""
        bought = self._bursts[number]
        payer = self._payer(JobId(job + 1), demand.preferences.rule)
        bought.use(demand, payer, self._epoch(now))
        if not bought.free:
            del self._with_room[number]
        self._on[job] = number
        self._context = None

    def _payer(self, job: JobId, rule: str = "") -> Payer:
        facts = self._jobs[job - 1]
        return Payer(facts.userid, facts.bank, facts.queue, rule)

    def _take_down(self, number: int, now: float) -> None:
        self._with_room.pop(number).take_down(self._epoch(now))
        heappush(self._events, (now + self._site.teardown, Due.GONE, number))
        self._context = None

    def _nodes(self, job: int) -> int:
        return self._site.machine.nodes_for(self._jobs[job].cores)

    def _epoch(self, now: float) -> float:
        return self._trace.started + now
