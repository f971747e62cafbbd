# SPDX-License-Identifier: MIT
"""The planner: each job in its order gets the place that costs least, or a promise.

Jobs that ask for the same are tried once: what failed for one fails for the next, as
nothing becomes free while a plan is made. So the time grows with the jobs, not with
jobs times offers times slots.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand, Plan
from burst.core.plan.fit import rest_of
from burst.core.plan.limits import FurtherUse
from burst.core.plan.live_nodes import LiveNodes
from burst.core.plan.openings import Openings
from burst.core.plan.planned_bursts import DemandKey, PlannedBursts
from burst.core.plan.promises import Promises
from burst.model.burst import PRICE_SOURCES, BurstId, Lease
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.reason import Reason
from burst.model.request import ResourceRequest


def make_plan(
    demands: Iterable[Demand], context: PlanContext, used_ids: Container[BurstId] = ()
) -> Plan:
    """Place demands in the order in which they are to be served. Deterministic.

    `used_ids` are ids that other bursts have.
    """
    return _Planner(context, used_ids).make(list(demands))


class _Planner:
    """Makes one plan."""

    def __init__(self, context: PlanContext, used_ids: Container[BurstId]) -> None:
        self._context = context
        self._used_ids = used_ids
        self._live = LiveNodes(context)
        self._planned = PlannedBursts(context)
        self._openings = Openings(context)
        self._promises = Promises(context)
        self._refused: dict[DemandKey, _Refusal] = {}
        self._for_good: set[DemandKey] = set()
        """Keys of jobs that are promised nothing in this plan."""
        self._decisions: dict[JobId | None, Decision] = {}

    def make(self, demands: Sequence[Demand]) -> Plan:
        live = self._context.live
        least = _least_behind(demands) if live else [math.inf] * len(demands)
        awaited: set[BurstId] = set()
        for demand, behind in zip(demands, least, strict=True):
            awaited |= self._place(demand, behind)
        proposals = self._planned.propose(self._used_ids)
        leases: dict[JobId | None, list[Lease]] = {}
        for proposal in proposals:
            jobs: list[JobId | None] = [*proposal.jobs] or [None]
            for job in jobs:
                leases.setdefault(job, []).append(proposal.lease)
        made: dict[tuple[BurstId, ...], Decision] = {}
        for job, theirs in leases.items():
            names = tuple(lease.id for lease in theirs)
            if names not in made:  # thousands of jobs may share one burst
                made[names] = _decide_proposed(theirs)
            self._decisions.setdefault(job, made[names])
        return Plan(
            proposals=tuple(proposals),
            assignments=self._live.assignments,
            promises=tuple(self._promises.made),
            overtaken=self._live.overtaken,
            ending=frozenset(self._live.ending),
            awaited=frozenset(awaited),
            decisions=self._decisions,
        )

    def _place(self, demand: Demand, behind: float) -> set[BurstId]:
        """Place one demand where it costs least; return idle bursts that wait for it.

        A live burst is tried first, then a burst of this plan, then a new one. A demand
        that fits on none of them now is promised ranks, or refused. `behind` is the
        least number of idle nodes on which some job behind it might start.
        """
        key = self._openings.key(demand)
        others = _may_use_other_bursts(demand)
        known = self._refused.get(key)
        if known is not None and demand.end(0.0) >= known.shortest:
            refused = known.decision
            # A live burst that is not worth it to one job may be worth it to another.
            asks = demand.live_worth or known.by_worth
            if others and asks and self._reuse(demand):
                return set()
        elif others and (self._reuse(demand) or self._planned.join(demand, key)):
            return set()
        else:
            found = self._combine_or_open(demand, key, behind)
            if found is None:
                return set()
            refused = found
            if demand.not_bought is None:
                shortest = demand.end(0.0) if self._promises.made else -math.inf
                by_worth = demand.live_worth is not None
                self._refused[key] = _Refusal(refused, shortest, by_worth)
        self._decisions[demand.job] = demand.not_bought or refused
        return set() if demand.not_bought else self._promise(demand, key, refused)

    def _promise(
        self, demand: Demand, key: DemandKey, refused: Decision
    ) -> set[BurstId]:
        """Promise ranks to a job that has no place now.

        Return the idle bursts that it will use. Idle bursts in its way have to end.
        """
        if refused.reason is not Reason.TURNED_DOWN or key in self._for_good:
            return set()
        kept = self._promises.make(demand, self._openings.wanted(demand))
        if kept is None:
            self._for_good.add(key)
            return set()
        self._decisions[demand.job] = kept.decision(refused.refusals)
        if not kept.promise.known:
            self._live.let_pass(demand, kept.gone, kept.promise.start, kept.nodes)
        return self._live.wait_for(demand, kept, combines=self._may_combine(demand))

    def _reuse(self, demand: Demand) -> bool:
        """Give the job to a live burst that has room for it now."""
        burst = self._live.reuse(demand)
        if burst is None:
            return False
        self._decisions[demand.job] = Decision(Reason.ASSIGNED, {"burst": burst})
        return True

    def _combine_or_open(
        self, demand: Demand, key: DemandKey, behind: float
    ) -> Decision | None:
        """Give a job idle nodes of several live bursts, new bursts, or some of both.

        Return why not; None if the job got nodes. If the idle nodes alone would serve a
        job behind this one, they are left to it, provided that this job can have new
        bursts instead.
        """
        combines = self._may_combine(demand)
        shares = self._live.idle_nodes(demand) if combines else []
        if not shares:
            return self._open(demand, key)
        idle = sum(len(ranks) for _, ranks in shares)
        given = ((live.pool.shape, len(ranks)) for live, ranks in shares)
        rest = rest_of(demand.lacks, given)
        whole = not rest.slots
        if whole and self._live.buys(demand, shares):
            facts = {"burst": ", ".join(live.burst for live, _ in shares)}
            self._decisions[demand.job] = Decision(Reason.ASSIGNED, facts)
            self._live.give(demand, shares)
            return None
        if whole or demand.not_bought:
            return self._open(demand, key)
        if behind <= idle and self._open(demand, key) is None:
            return None
        usage = self._context.usage
        before = usage.purchases.copy()
        if self._live.buys(demand, shares):
            # All nodes of a burst that the job joins count against its user, too.
            joined = self._live.joined(demand, shares)
            if self._open(demand, key, joined, rest) is None:
                self._live.give(demand, shares)
                return None
            usage.purchases = before
        # An isolated burst has all nodes of its job.
        return self._open(demand, key)

    def _may_combine(self, demand: Demand) -> bool:
        """Tell whether a demand may be served by idle nodes of several bursts."""
        joins = demand.job is not None and demand.preferences.mode != "isolated"
        return joins and self._context.may_spread(demand)

    def _open(
        self,
        demand: Demand,
        key: DemandKey,
        beside: FurtherUse | None = None,
        rest: ResourceRequest | None = None,
    ) -> Decision | None:
        """Make one or more bursts for the job; return why not, None if they were made.

        `beside` is the use of other bursts that it joins, and `rest` is what it needs
        beside what it gets of them.
        """
        if demand.not_bought:
            return demand.not_bought
        found = self._openings.find(demand, beside, rest)
        if isinstance(found, Decision):
            return found
        if found.pieces:
            self._planned.open(found.candidate, demand, key, found.pieces)
        else:
            self._planned.isolate(found.candidate, demand, found.nodes)
        return None


class _Refusal(NamedTuple):
    """A refusal of all jobs with the same key that are at least as long."""

    decision: Decision
    shortest: float
    """How long the shortest of them may run; a shorter job may end before ranks that
    are promised to others are needed. -math.inf if nothing was promised."""
    by_worth: bool
    """Whether live bursts may have been refused for their worth alone."""


def _least_behind(demands: Sequence[Demand]) -> list[float]:
    """Return for each demand the least number of idle nodes on which some job behind it
    might start.
    """
    least = [math.inf]
    for demand in reversed(demands):
        nodes = (demand.request.nodes or 1) if demand.job is not None else math.inf
        least.append(min(least[-1], nodes))
    return least[-2::-1]


def _decide_proposed(leases: Sequence[Lease]) -> Decision:
    """Return the decision on a job for which these bursts of one offer are made."""
    lease = leases[0]
    facts = {
        "nodes": sum(each.nodes for each in leases),
        "offer": lease.key,
        "burst": ", ".join(each.id for each in leases),
        "price": _price_words(lease),
    }
    return Decision(Reason.PROPOSED, facts)


def _price_words(lease: Lease) -> str:
    """Return in words what a burst costs and where its price comes from; or nothing."""
    words = []
    if lease.price:
        source = PRICE_SOURCES[lease.priced_by]
        words.append(f"at {lease.price:g} per node-hour {source}")
    if lease.fee:
        words.append(f"plus a fee of {lease.fee:g} per hour for the burst")
    return "".join(f", {each}" for each in words)


def _may_use_other_bursts(demand: Demand) -> bool:
    """Tell whether a demand may be served by a burst that is made for another."""
    isolated = demand.preferences.mode == "isolated"
    return demand.job is not None and demand.rest is None and not isolated
