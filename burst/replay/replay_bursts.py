# SPDX-License-Identifier: MIT
"""The bursts of a replay: made, used, kept while idle, taken down, and paid."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from burst.core.plan.offers import ProviderOffer
from burst.core.worth.estimate import Purchase, keep_purchase
from burst.core.worth.keeping import break_even
from burst.model.scheduler import Order
from burst.replay.bought_nodes import BoughtNodes, NodeHours
from burst.replay.events import Due, EventQueue
from burst.replay.policies import Asks
from burst.replay.spending import BurstPlan, Spending
from burst.replay.trace import Machine, TraceJob


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

    def boot_of(self, asks: Asks) -> float:
        """Return how long nodes take to come online."""
        return self.boot if asks.boot is None else asks.boot


class ReplayBursts:
    """All of them, each by its number; jobs by their place in the trace."""

    def __init__(
        self,
        jobs: Sequence[TraceJob],
        site: Site,
        events: EventQueue,
        spending: Spending | None,
    ) -> None:
        self._jobs = jobs
        self._site = site
        self._events = events
        self._spending = spending
        self._on: dict[int, int] = {}
        self._live: dict[int, BoughtNodes] = {}
        # Of these: with nodes that no job has, and without a job since this moment.
        self._with_room: dict[int, BoughtNodes] = {}
        self._emptied: set[int] = set()
        # Of bursts that are being taken down: what they are paid for in the end.
        self._leaving: dict[int, NodeHours] = {}
        self._paid: defaultdict[float | None, NodeHours] = defaultdict(NodeHours)
        self._asked_again = -math.inf
        self.count = 0
        """How many were made."""
        self.made: dict[int, int] = {}
        """How many nodes the burst has that was made for a job and ran it, by job."""
        self.turned_down: set[int] = set()
        """Jobs for which no budget had the money at some time."""

    @property
    def paid(self) -> Mapping[float | None, NodeHours]:
        """What was paid by bursts that are gone, in node-seconds, by their price."""
        return self._paid

    def usable(self, job: int, now: float) -> Iterator[int]:
        """Yield the bursts that have room for a job which may use them."""
        facts, nodes = self._jobs[job], self._nodes(job)
        for number, burst in self._with_room.items():
            shared = self._site.share_users or burst.userid == facts.userid
            shared = shared and (self._site.share or not burst.jobs)
            if shared and burst.online <= now and nodes <= burst.free:
                yield number

    def keep_purchase(self, job: int, number: int, now: float) -> Purchase:
        """Return what it buys to keep a burst for a job."""
        burst = self._live[number]
        idle = 0.0 if burst.jobs else self._idle(burst)
        kept = max(0.0, burst.busy_until + idle - now)
        return keep_purchase(burst.nodes, self._jobs[job].limit, kept)

    def use(self, job: int, number: int, asks: Asks, now: float) -> bool:
        """Run a job on a burst, if the budgets have the money; tell whether."""
        if self._spending is not None:
            facts = self._jobs[job]
            lasts = facts.limit + self._site.idle + self._site.teardown
            if not self._spending.may_use(number, facts, lasts, now):
                return False
            self._spending.use(number, facts, lasts, now)
        self._run(job, number, now, asks)
        return True

    def buy(self, job: int, asks: Asks, now: float) -> float | None:
        """Make a burst for a job.

        Return when the job starts; None where no budget has the money.
        """
        plan = self._plan(job, asks.sold, asks.price, self._site.boot_of(asks))
        if not self._has_money(job, plan, now):
            return None
        online = now + plan.boot
        number = self._make(job, plan, now, online)
        self.made[job] = plan.nodes
        self._run(job, number, online, asks)
        return online

    def end(self, job: int, now: float) -> bool:
        """Note that a job has ended; tell whether it ran on a burst."""
        number = self._on.pop(job, None)
        if number is None:
            return False
        burst, nodes = self._live[number], self._nodes(job)
        burst.end(nodes, now)
        if self._spending is not None:
            facts = self._jobs[job]
            self._spending.work(number, facts, nodes * facts.run_time)
        self._with_room[number] = burst
        if not burst.jobs:
            self._emptied.add(number)
        return True

    def handle(self, what: Due, number: int, now: float) -> bool:
        """Do what is due for a burst; tell whether money has come back."""
        if what is Due.GONE:
            assert self._spending is not None
            self._spending.settle(number, self._leaving.pop(number), now)
            return bool(self.turned_down)
        burst = self._live.get(number)
        if burst is None:
            return False
        if burst.busy_until + self._idle(burst) <= now:
            self._take_down(number, now)
        return False

    def release_empty(self, now: float) -> None:
        """Take down, in time, bursts whose nodes no waiting job has taken."""
        for number in sorted(self._emptied):
            burst = self._live[number]
            if burst.jobs:
                continue
            idle = self._idle(burst)
            if idle:
                self._events.push(now + idle, Due.IDLE, number)
            else:
                self._take_down(number, now)
        self._emptied.clear()

    def _idle(self, burst: BoughtNodes) -> float:
        """Return for how many seconds a burst is kept once it is idle."""
        boot, teardown = burst.online - burst.made, self._site.teardown
        keep = break_even(burst.nodes, boot, teardown, burst.worth)
        return min(self._site.idle, keep)

    def _plan(
        self, job: int, sold: ProviderOffer | None, price: float | None, boot: float
    ) -> BurstPlan:
        nodes = self._nodes(job)
        lasts = boot + self._jobs[job].limit + self._site.idle + self._site.teardown
        if sold is not None and price is not None:
            price += sold.offer.fee / nodes
        return BurstPlan(nodes, price, boot, lasts, sold)

    def _has_money(self, job: int, plan: BurstPlan, now: float) -> bool:
        if self._spending is None:
            return True
        again = self._spending.may_make(self._jobs[job], plan, now)
        if again is None:
            return True
        self.turned_down.add(job)
        if now < again < math.inf and again != self._asked_again:
            self._asked_again = again
            self._events.push(again, Due.MONEY, job)
        return False

    def _make(self, job: int, plan: BurstPlan, now: float, online: float) -> int:
        number, facts = self.count, self._jobs[job]
        self.count += 1
        self._live[number] = BoughtNodes(
            plan.nodes, now, online, facts.userid, plan.price
        )
        if self._spending is not None:
            self._spending.make(number, facts, plan, now)
        return number

    def _run(self, job: int, number: int, start: float, asks: Asks) -> None:
        burst = self._live[number]
        burst.start(self._nodes(job), start, self._jobs[job].limit, asks.worth)
        if not burst.free:
            self._with_room.pop(number, None)
        self._on[job] = number

    def _take_down(self, number: int, now: float) -> None:
        self._with_room.pop(number, None)
        burst = self._live.pop(number)
        paid = burst.take_down(now, self._site.teardown)
        self._paid[burst.price].add(paid)
        if self._spending is not None:
            self._leaving[number] = paid
            self._events.push(now + self._site.teardown, Due.GONE, number)

    def _nodes(self, job: int) -> int:
        return self._site.machine.nodes_for(self._jobs[job].cores)
