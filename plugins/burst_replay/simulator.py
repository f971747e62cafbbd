# SPDX-License-Identifier: MIT
"""A trace, run again on own nodes and on such as a policy buys.

Own nodes are one pool of cores, the cloud has no end, and no job fails. A burst is made
for one job; while it is up, its idle nodes may serve others. It decides as the daemon
does: whenever a job was submitted or has ended, all that wait are judged in their order
(`simulate_queue`, `judge`). With budgets, also when money comes back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

from burst.core.worth.estimate import JUDGED_AGAIN_S
from burst.core.worth.ledger import Costs, NodeSeconds
from burst_replay.events import Due, EventQueue
from burst_replay.own_queue import OwnQueue
from burst_replay.policies import Asks, Policy
from burst_replay.replay_bursts import ReplayBursts
from burst_replay.site import Site
from burst_replay.trace import TraceJob
from burst_replay.trace_forecasts import TraceForecasts

_PROGRESS_EVERY = 128


class ReplayOutcome(msgspec.Struct, frozen=True):
    """What came of a replay."""

    waits: Sequence[float]
    """Of each job in seconds; math.inf if it never ran."""
    own_work: float
    """Node-hours of the jobs that ran on own nodes."""
    bursts: int
    spent: NodeSeconds
    """What the nodes of all bursts did, in node-seconds."""
    costs: Costs
    """What was paid for that, in micro-units."""
    made: Sequence[int]
    """For each job: how many nodes the burst has that was made for it; 0 for none."""
    turned_down: int = 0
    """Jobs for which nothing was bought at some time, as no budget had the money."""


def replay(
    jobs: Sequence[TraceJob],
    site: Site,
    policy: Policy,
    progress: Callable[[int], None] = lambda _: None,
) -> ReplayOutcome:
    """Run a trace. `progress` is now and then called with the jobs submitted so far."""
    return _Replay(jobs, site, policy).run(progress)


class _Replay:
    """The state of one."""

    def __init__(
        self,
        jobs: Sequence[TraceJob],
        site: Site,
        policy: Policy,
    ) -> None:
        self._jobs = jobs
        self._site = site
        self._policy = policy
        self._own = OwnQueue(jobs, site.machine.total, site.order)
        self._forecaster = (
            TraceForecasts(jobs, site.order) if policy.forecasts else None
        )
        self._events = EventQueue()
        self._bursts = ReplayBursts(jobs, site, policy, self._events)
        self._waits = [math.inf] * len(jobs)
        self._asks: dict[int, Asks] = {}
        self._judged = 0
        self._too_large: list[int] = []
        self._own_work = 0.0

    def run(self, progress: Callable[[int], None]) -> ReplayOutcome:
        jobs, events, own = self._jobs, self._events, self._own
        submitted, count = 0, len(jobs)
        while submitted < count or events.next_at < math.inf:
            due = events.next_at
            if submitted < count and jobs[submitted].submit < due:
                self._submit(submitted, jobs[submitted].submit)
                submitted += 1
                if submitted % _PROGRESS_EVERY == 0:
                    progress(submitted)
                continue
            ripe: list[int] = []
            changed = False
            for what, number in events.pop(due):
                changed |= self._handle(what, number, due, ripe)
            if changed and own.waiting:
                self._started(own.schedule(due), due)
                self._judge(ripe, due)
            if changed and self._too_large:
                self._judge_too_large(due)
            self._bursts.release_empty(due)
        progress(count)
        bursts = self._bursts
        return ReplayOutcome(
            waits=self._waits,
            own_work=self._own_work / 3600.0,
            bursts=len(bursts.made),
            spent=bursts.spent,
            costs=bursts.costs,
            turned_down=len(bursts.turned_down),
            made=[bursts.made.get(job, 0) for job in range(count)],
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
                self._events.push(now + wait, Due.ASK, job)
            self._judge([] if wait else [job], now)

    def _started(self, started: Iterable[int], now: float) -> None:
        """Note that jobs start on own nodes."""
        for job in started:
            facts = self._jobs[job]
            self._own_work += facts.run_time * facts.cores / self._site.machine.cores
            self._runs(job, now)
            if self._forecaster is not None:
                self._forecaster.start(job, now)

    def _runs(self, job: int, start: float) -> None:
        facts = self._jobs[job]
        self._waits[job] = start - facts.submit
        self._events.push(start + facts.run_time, Due.END, job)

    def _handle(self, what: Due, number: int, now: float, ripe: list[int]) -> bool:
        """Do what is due; tell whether jobs are to be judged again.

        `ripe` gets those that have tried own nodes for long enough.
        """
        if what is Due.LATE:
            return number == self._judged
        if what in (Due.IDLE, Due.GONE):
            return self._bursts.handle(what, number, now)
        if what is Due.ASK:
            ripe.append(number)
        elif what is Due.END:
            if self._forecaster is not None:
                self._forecaster.end(number)
            if not self._bursts.end(number, now):
                self._own.end(number)
        return True

    def _judge_too_large(self, now: float) -> None:
        """Judge the jobs for which own nodes are too few; most are asked about once."""
        left: list[int] = []
        for job in self._too_large:
            asks = self._asked(job, now)
            if not self._run_on_burst(job, asks, math.inf, now):
                left += [job] if job in self._bursts.turned_down else []
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

            def leaves(place: int, at: float) -> bool:
                if at <= now or not self._leaves(waiting[place], at, now):
                    return False
                left.append(waiting[place])
                return True

            starts = self._forecaster.starts(waiting, own.room, now, leaves)
            self._judged += 1
            late = min((at for at, _ in starts if at > now), default=math.inf)
            if late < math.inf:
                again = max(late, now + JUDGED_AGAIN_S)
                self._events.push(again, Due.LATE, self._judged)
        for job in left:
            own.withdraw(job)
        if left:
            self._started(own.schedule(now), now)

    def _leaves(self, job: int, at: float, now: float) -> bool:
        """Run a job on nodes that are bought, if that pays; tell whether it did.

        `at` is when it would start on own nodes.
        """
        asks = self._asked(job, now)
        tried = now >= self._jobs[job].submit + asks.wait
        return tried and self._run_on_burst(job, asks, at, now)

    def _run_on_burst(self, job: int, asks: Asks, at: float, now: float) -> bool:
        """Run a job on nodes that are bought, if that pays; tell whether it did."""
        if asks.worth == math.inf:
            return False
        start = self._bursts.serve(job, asks, at, now)
        if start is not None:
            self._runs(job, start)
        return start is not None

    def _asked(self, job: int, now: float) -> Asks:
        if self._policy.by_hours:
            return self._policy.asks(self._jobs[job], now)
        known = self._asks.get(job)
        if known is None:
            known = self._asks[job] = self._policy.asks(self._jobs[job], now)
        return known
