# SPDX-License-Identifier: MIT
"""A trace, run again on own nodes and on such as a policy buys.

Own nodes are one pool of cores, the cloud has no end, and no job fails. A burst is made
for one job; while it is up, its idle nodes may serve others. It decides as the daemon
does: whenever a job was submitted or has ended, all that wait are judged in their order
(`simulate_queue`, `judge`). With budgets, also when money comes back.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from burst.core.placement.offers import ProviderOffer
from burst.core.worth.estimate import (
    JUDGED_AGAIN_S,
    OnlineTime,
    Purchase,
    StartEstimate,
    judge,
    keep_purchase,
)
from burst.core.worth.keeping import break_even
from burst.core.worth.queue_model import Order
from burst.model.jobid import JobId
from burst.replay.bought_nodes import BoughtNodes, NodeHours
from burst.replay.own_scheduler import OwnScheduler
from burst.replay.policies import Asks, Policy
from burst.replay.spending import BurstPlan, Spending
from burst.replay.trace import Machine, TraceJob
from burst.replay.trace_forecasts import TraceForecasts

# What happens at one time, in this order; then jobs are submitted.
_END, _IDLE, _LOST, _GONE, _MONEY, _ASK, _LATE = range(7)
_PROGRESS_EVERY = 128


class Site(msgspec.Struct, frozen=True):
    """Own nodes, and how bought ones behave. Times in seconds."""

    machine: Machine
    order: Order = Order.EASY
    boot: float = 300.0
    teardown: float = 60.0
    idle: float = 0.0
    """For how long an idle burst is kept."""
    share_users: bool = False
    """Whether idle nodes serve jobs of any user, as `[plan] share_users`."""
    share: bool = True
    """Whether they do beside jobs that run on the burst, as `[plan] share`."""


class ReplayOutcome(msgspec.Struct, frozen=True):
    """What came of a replay."""

    waits: Sequence[float]
    """Of each job in seconds; math.inf if it never ran."""
    own_work: float
    """Node-hours of the jobs that ran on own nodes."""
    bought_at: Mapping[float | None, NodeHours]
    """Node-hours that were bought, by their price; None where there is but one."""
    bursts: int
    made: Sequence[int]
    """For each job: how many nodes the burst has that was made for it; 0 for none."""
    turned_down: int = 0
    """Jobs for which nothing was bought at some time, as no budget had the money."""

    @property
    def bought(self) -> NodeHours:
        """All node-hours that were bought."""
        found = NodeHours()
        for hours in self.bought_at.values():
            found.add(hours)
        return found


def replay(
    jobs: Sequence[TraceJob],
    site: Site,
    policy: Policy,
    progress: Callable[[int], None] = lambda _: None,
    spending: Spending | None = None,
) -> ReplayOutcome:
    """Run a trace. `progress` is now and then called with the jobs submitted so far.

    `spending` has the budgets; None where there are none.
    """
    return _Replay(jobs, site, policy, spending).run(progress)


class _Replay:
    """The state of one."""

    def __init__(
        self,
        jobs: Sequence[TraceJob],
        site: Site,
        policy: Policy,
        spending: Spending | None,
    ) -> None:
        self._jobs = jobs
        self._site = site
        self._policy = policy
        self._spending = spending
        self._own = OwnScheduler(jobs, site.machine.total, site.order)
        self._forecaster = (
            TraceForecasts(jobs, site.order) if policy.forecasts else None
        )
        self._events: list[tuple[float, int, int]] = []
        self._waits = [math.inf] * len(jobs)
        self._on: dict[int, int] = {}
        self._bursts: dict[int, BoughtNodes] = {}
        # Of these: with nodes that no job has, and without a job since this moment.
        self._with_room: dict[int, BoughtNodes] = {}
        self._emptied: set[int] = set()
        self._asks: dict[int, Asks] = {}
        self._online: dict[float, OnlineTime] = {}
        self._judged = 0
        self._paid: defaultdict[float | None, NodeHours] = defaultdict(NodeHours)
        self._made: dict[int, int] = {}
        self._bought = 0
        self._too_large: list[int] = []
        self._turned_down: set[int] = set()
        # Of bursts that are being taken down: what they are paid for in the end.
        self._leaving: dict[int, NodeHours] = {}
        self._asked_again = -math.inf
        self._own_work = 0.0

    def run(self, progress: Callable[[int], None]) -> ReplayOutcome:
        jobs, events, own = self._jobs, self._events, self._own
        submitted, count = 0, len(jobs)
        while submitted < count or events:
            due = events[0][0] if events else math.inf
            if submitted < count and jobs[submitted].submit < due:
                self._submit(submitted, jobs[submitted].submit)
                submitted += 1
                if submitted % _PROGRESS_EVERY == 0:
                    progress(submitted)
                continue
            ripe: list[int] = []
            changed = False
            while events and events[0][0] == due:
                changed |= self._handle(heapq.heappop(events), ripe)
            if changed and own.waiting:
                self._started(own.schedule(due), due)
                self._judge(ripe, due)
            if changed and self._too_large:
                self._judge_too_large(due)
            self._release_empty(due)
        progress(count)
        return ReplayOutcome(
            waits=self._waits,
            own_work=self._own_work / 3600.0,
            bought_at={price: _in_hours(paid) for price, paid in self._paid.items()},
            bursts=self._bought,
            turned_down=len(self._turned_down),
            made=[self._made.get(job, 0) for job in range(count)],
        )

    def _submit(self, job: int, now: float) -> None:
        if self._jobs[job].cores > self._own.total:
            self._too_large.append(job)
            self._judge_too_large(now)
        elif self._own.submit(job, now):
            self._started((job,), now)
        else:
            wait = self._asked(job, now).wait
            if wait:
                heapq.heappush(self._events, (now + wait, _ASK, job))
            self._judge([] if wait else [job], now)

    def _started(self, started: Iterable[int], now: float) -> None:
        for job in started:
            facts = self._jobs[job]
            self._waits[job] = now - facts.submit
            self._own_work += facts.run_time * facts.cores / self._site.machine.cores
            heapq.heappush(self._events, (now + facts.run_time, _END, job))
            if self._forecaster is not None:
                self._forecaster.start(job, now)

    def _handle(self, event: tuple[float, int, int], ripe: list[int]) -> bool:
        """Do what is due; tell whether jobs are to be judged again.

        `ripe` gets those that have tried own nodes for long enough.
        """
        now, what, number = event
        if what == _LATE:
            return number == self._judged
        if what == _ASK:
            ripe.append(number)
        elif what == _IDLE:
            burst = self._bursts.get(number)
            if burst is not None and burst.busy_until + self._idle(burst) <= now:
                self._take_down(number, now)
            return False
        elif what == _LOST:
            self._take_down(number, now)
            return False
        elif what == _GONE:
            assert self._spending is not None
            self._spending.settle(number, self._leaving.pop(number), now)
            return bool(self._turned_down)
        elif what == _END:
            self._end(number, now)
        return True

    def _end(self, job: int, now: float) -> None:
        if self._forecaster is not None:
            self._forecaster.end(job)
        number = self._on.pop(job, None)
        if number is None:
            self._own.end(job)
            return
        burst = self._bursts[number]
        burst.end(self._nodes(job), now)
        if self._spending is not None:
            facts = self._jobs[job]
            self._spending.work(number, facts, self._nodes(job) * facts.run_time)
        self._with_room[number] = burst
        if not burst.jobs:
            self._emptied.add(number)

    def _judge_too_large(self, now: float) -> None:
        """Judge the jobs for which own nodes are too few; most are asked about once."""
        left: list[int] = []
        for job in self._too_large:
            asks = self._asked(job, now)
            pays = asks.worth < math.inf and self._pays(
                self._purchase(job, asks), math.inf, asks.worth, now
            )
            if pays and not self._buy(job, asks, now) and not asks.fails:
                left.append(job)
        self._too_large = left

    def _judge(self, ripe: Sequence[int], now: float) -> None:
        """Judge the jobs that wait, and run on bought nodes those for which that pays.

        Where nothing is forecast, that is only once they are ripe: nothing changes.
        """
        own = self._own
        left: list[int] = []
        if self._forecaster is None:
            there = set(own.waiting) if len(ripe) > 1 else own.waiting
            left += [
                job for job in ripe if job in there and self._leaves(job, math.inf, now)
            ]
        else:
            waiting = tuple(own.waiting)

            def leaves(place: int, at: float, after: JobId) -> bool:  # noqa: ARG001
                if at <= now or not self._leaves(waiting[place], at, now):
                    return False
                left.append(waiting[place])
                return True

            starts = self._forecaster.starts(waiting, own.free, now, leaves)
            self._judged += 1
            late = min((at for at, _ in starts if at > now), default=math.inf)
            if late < math.inf:
                again = max(late, now + JUDGED_AGAIN_S)
                heapq.heappush(self._events, (again, _LATE, self._judged))
        for job in left:
            own.withdraw(job)
        if left:
            self._started(own.schedule(now), now)

    def _leaves(self, job: int, at: float, now: float) -> bool:
        """Run a job on nodes that are bought, if that pays; tell whether it did.

        `at` is when it would start on own nodes.
        """
        asks = self._asked(job, now)
        if asks.worth == math.inf or now < self._jobs[job].submit + asks.wait:
            return False
        for number, burst in self._with_room.items():
            if self._may_use(job, burst, now):
                keep = self._keep_purchase(job, burst, now)
                if self._pays(keep, at, asks.worth, now) and self._keeps(
                    number, job, now
                ):
                    self._run_on(job, number, now, asks)
                    return True
        if not self._pays(self._purchase(job, asks), at, asks.worth, now):
            return False
        return self._buy(job, asks, now)

    def _pays(self, purchase: Purchase, at: float, asks: float, now: float) -> bool:
        here = StartEstimate(expected=at, latest=at, earliest=at)
        return judge(here, purchase, asks, now).pays

    def _asked(self, job: int, now: float) -> Asks:
        if self._policy.by_hours:
            return self._policy.asks(self._jobs[job], now)
        known = self._asks.get(job)
        if known is None:
            known = self._asks[job] = self._policy.asks(self._jobs[job], now)
        return known

    def _boot(self, asks: Asks) -> float:
        return self._site.boot if asks.boot is None else asks.boot

    def _purchase(self, job: int, asks: Asks) -> Purchase:
        boot = self._boot(asks)
        online = self._online.get(boot)
        if online is None:
            online = self._online[boot] = OnlineTime(p50=boot, p90=boot, bursts=0)
        return Purchase(
            nodes=self._nodes(job),
            run_time=self._jobs[job].limit,
            online=online,
            teardown=self._site.teardown,
        )

    def _keep_purchase(self, job: int, burst: BoughtNodes, now: float) -> Purchase:
        """Return what it buys to keep a burst for a job."""
        idle = 0.0 if burst.jobs else self._idle(burst)
        kept = max(0.0, burst.busy_until + idle - now)
        return keep_purchase(burst.nodes, self._jobs[job].limit, kept)

    def _idle(self, burst: BoughtNodes) -> float:
        """Return for how many seconds a burst is kept once it is idle."""
        boot, teardown = burst.online - burst.made, self._site.teardown
        keep = break_even(burst.nodes, boot, teardown, burst.worth)
        return min(self._site.idle, keep)

    def _may_use(self, job: int, burst: BoughtNodes, now: float) -> bool:
        facts = self._jobs[job]
        shared = self._site.share_users or burst.userid == facts.userid
        shared = shared and (self._site.share or not burst.jobs)
        return shared and burst.online <= now and self._nodes(job) <= burst.free

    def _release_empty(self, now: float) -> None:
        """Take down, in time, bursts whose nodes no waiting job has taken."""
        for number in sorted(self._emptied):
            burst = self._bursts[number]
            if burst.jobs:
                continue
            idle = self._idle(burst)
            if idle:
                heapq.heappush(self._events, (now + idle, _IDLE, number))
            else:
                self._take_down(number, now)
        self._emptied.clear()

    def _buy(self, job: int, asks: Asks, now: float) -> bool:
        """Make a burst for a job, two where its rule races; tell whether.

        Of two, the one that is online first runs the job, and the other is taken down.
        """
        plans = [self._plan(job, asks.sold, asks.price, self._boot(asks))]
        if asks.rival is not None:
            offer = asks.rival.offer
            boot = offer.join_time or self._site.boot
            plans.append(self._plan(job, asks.rival, offer.price, boot))
        if not self._has_money(job, plans, now):
            return False
        first = min(plans, key=lambda plan: plan.boot)
        online = now + first.boot
        for plan in plans:
            number = self._bought
            self._bought += 1
            self._bursts[number] = BoughtNodes(
                plan.nodes, now, online, self._jobs[job].userid, plan.price
            )
            if self._spending is not None:
                self._spending.make(number, self._jobs[job], plan, now)
            if plan is first:
                self._made[job] = plan.nodes
                self._run_on(job, number, online, asks)
            else:
                heapq.heappush(self._events, (online, _LOST, number))
        return True

    def _plan(
        self, job: int, sold: ProviderOffer | None, price: float | None, boot: float
    ) -> BurstPlan:
        nodes = self._nodes(job)
        lasts = boot + self._jobs[job].limit + self._site.idle + self._site.teardown
        if sold is not None and price is not None:
            price += sold.offer.fee / nodes
        return BurstPlan(nodes, price, boot, lasts, sold)

    def _has_money(self, job: int, plans: Sequence[BurstPlan], now: float) -> bool:
        if self._spending is None:
            return True
        again = self._spending.may_make(self._jobs[job], plans, now)
        if again is None:
            return True
        self._turned_down.add(job)
        if now < again < math.inf and again != self._asked_again:
            self._asked_again = again
            heapq.heappush(self._events, (again, _MONEY, job))
        return False

    def _keeps(self, number: int, job: int, now: float) -> bool:
        """Keep a burst for a job, if the budgets have the money; tell whether."""
        if self._spending is None:
            return True
        facts = self._jobs[job]
        lasts = facts.limit + self._site.idle + self._site.teardown
        if not self._spending.may_use(number, facts, lasts, now):
            return False
        self._spending.use(number, facts, lasts, now)
        return True

    def _run_on(self, job: int, number: int, start: float, asks: Asks) -> None:
        facts, burst = self._jobs[job], self._bursts[number]
        burst.start(self._nodes(job), start, facts.limit, asks.worth)
        if not burst.free:
            self._with_room.pop(number, None)
        self._on[job] = number
        self._waits[job] = start - facts.submit
        heapq.heappush(self._events, (start + facts.run_time, _END, job))

    def _take_down(self, number: int, now: float) -> None:
        self._with_room.pop(number, None)
        burst = self._bursts.pop(number)
        paid = burst.take_down(now, self._site.teardown)
        self._paid[burst.price].add(paid)
        if self._spending is not None:
            self._leaving[number] = paid
            heapq.heappush(self._events, (now + self._site.teardown, _GONE, number))

    def _nodes(self, job: int) -> int:
        return self._site.machine.nodes_for(self._jobs[job].cores)


def _in_hours(seconds: NodeHours) -> NodeHours:
    found = NodeHours()
    found.add(seconds, 1 / 3600.0)
    return found
