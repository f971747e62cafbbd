# SPDX-License-Identifier: MIT
"""Run a trace again, on own nodes and on nodes that a policy buys.

Own nodes are one pool of cores, the cloud has no limit, and no job fails. A burst is
made for one job; while it is up, its idle nodes may serve others. Decisions are those
of the daemon: whenever a job is submitted or ends, all waiting jobs are judged in their
order (`simulate_queue`, `judge`). This also happens when money of a budget comes back,
when a rule's `hours` begin or end, and when its `wait` is over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush

import msgspec

from burst.config import PolicyRule
from burst.core.money.ledger import Costs, NodeSeconds
from burst.core.plan.estimate import judged_again_at
from burst_replay.own_nodes import OwnQueue
from burst_replay.policies import Policy
from burst_replay.replay_bursts import Due, Events, ReplayBursts
from burst_replay.site import Site
from burst_replay.trace import Trace

_PROGRESS_EVERY = 128
_ALL_HOURS_S = 8 * 86400.0
"""In this time all hours of all rules occur: a week, longer if clocks are set back."""


class ReplayOutcome(msgspec.Struct, frozen=True):
    """The result of a replay."""

    waits: Sequence[float]
    """The wait of each job in seconds; math.inf if it never ran."""
    own_work: float
    """Node-hours of the jobs that ran on own nodes."""
    bursts: int
    """How many bursts were made."""
    spent: NodeSeconds
    """The use of the nodes of all bursts, in node-seconds."""
    costs: Costs
    """The cost of these node-seconds, in micro-units."""
    made: Sequence[int]
    """The size in nodes of the burst that was made for each job; 0 for none."""
    turned_down: int = 0
    """Jobs for which, at some time, no budget had the money for nodes."""


def replay(
    trace: Trace,
    site: Site,
    policy: Policy,
    progress: Callable[[int], None] = lambda _: None,
) -> ReplayOutcome:
    """Run a trace on the machine of a site.

    `progress` is called now and then with the number of jobs submitted so far.
    """
    return _Replay(trace, site, policy).run(progress)


class _Replay:
    """The state of one replay."""

    def __init__(self, trace: Trace, site: Site, policy: Policy) -> None:
        jobs = trace.jobs
        self._jobs, self._site, self._policy = jobs, site, policy
        self._trace_began = trace.started
        self._own = OwnQueue(
            jobs, site.machine.total, site.order, forecasts=policy.forecasts
        )
        self._events: Events = []
        self._bursts = ReplayBursts(trace, site, policy, self._events)
        self._waits = [math.inf] * len(jobs)
        self._rules: dict[int, PolicyRule] = {}
        self._judged = 0
        # When something else than the hours of rules changed last, and when these do.
        self._changed = 0.0
        self._hours_at = -math.inf
        self._too_large: list[int] = []
        self._own_work = 0.0

    def run(self, progress: Callable[[int], None]) -> ReplayOutcome:
        jobs, events = self._jobs, self._events
        submitted, count = 0, len(jobs)
        while submitted < count or events:
            due = events[0][0] if events else math.inf
            if submitted < count and jobs[submitted].submit < due:
                self._submit(submitted, jobs[submitted].submit)
                submitted += 1
                if submitted % _PROGRESS_EVERY == 0:
                    progress(submitted)
            else:
                self._let_happen(due)
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
        self._changed = now
        if not self._fits_here(job):
            self._too_large.append(job)
        elif started := self._own.submit(job, now):
            self._started(started, now)
            return
        else:
            self._rule(job, now)
        self._judge(now)

    def _let_happen(self, now: float) -> None:
        """Do all that is due at a time, and judge jobs again if that can matter."""
        changed = False
        while self._events and self._events[0][0] == now:
            _, what, number = heappop(self._events)
            changed |= self._happens(what, number, now)
            if what is not Due.HOURS:
                self._changed = now
        if changed:
            self._started(self._own.schedule(now), now)
            self._judge(now)
        self._bursts.release_empty(now)

    def _happens(self, what: Due, number: int, now: float) -> bool:
        """Do one thing that is due; tell whether jobs have to be judged again."""
        if what is Due.LATE:
            return number == self._judged
        if what in (Due.IDLE, Due.GONE):
            return self._bursts.handle(what, number, now)
        if what is Due.END:
            self._own.end(number)
            self._bursts.end(number, now)
        return True

    def _started(self, started: Iterable[int], now: float) -> None:
        """Note that jobs start on own nodes."""
        for job in started:
            facts = self._jobs[job]
            self._own_work += facts.run_time * facts.cores / self._site.machine.cores
            self._runs(job, now)

    def _runs(self, job: int, start: float) -> None:
        facts = self._jobs[job]
        self._waits[job] = start - facts.submit
        heappush(self._events, (start + facts.run_time, Due.END, job))

    def _judge(self, now: float) -> None:
        """Judge the waiting jobs, and run those on bought nodes for which that pays.

        If the policy asks for no worth, their start on own nodes does not matter.
        """
        if not self._policy.buys:
            return
        waiting = tuple(self._own.waiting)
        if waiting and self._policy.forecasts:
            self._judge_by_starts(waiting, now)
        else:
            for job in waiting:
                # It may have started on own nodes when a job before it had left.
                if self._waits[job] == math.inf and self._leaves(job, math.inf, now):
                    self._left([job], now)
        self._too_large = [
            job for job in self._too_large if not self._leaves(job, math.inf, now)
        ]
        if self._hours_at <= now and (self._own.waiting or self._too_large):
            self._note_hours(now)

    def _note_hours(self, now: float) -> None:
        """Judge the waiting jobs again when other rules are within their hours.

        This ends if nothing else changes: a job may be larger than any rule allows.
        """
        began = self._trace_began
        again = self._policy.rules.next_change(began + now) - began
        if math.isinf(again):
            self._hours_at = again
        elif now < again <= self._changed + _ALL_HOURS_S:
            self._hours_at = again
            heappush(self._events, (again, Due.HOURS, 0))

    def _judge_by_starts(self, waiting: Sequence[int], now: float) -> None:
        """Judge jobs by the time when each would start on own nodes.

        If a job has not started at that time, they are judged again.
        """
        left: list[int] = []

        def leaves(place: int, at: float) -> bool:
            if at <= now or not self._leaves(waiting[place], at, now):
                return False
            left.append(waiting[place])
            return True

        starts = self._own.starts(now, leaves)
        self._judged += 1
        again = judged_again_at((at for at, _ in starts), now)
        if again < math.inf:
            heappush(self._events, (again, Due.LATE, self._judged))
        self._left(left, now)

    def _left(self, left: Sequence[int], now: float) -> None:
        """Remove jobs that no longer wait for own nodes; start others if they fit."""
        for job in left:
            self._own.waiting.remove(job)
        if left:
            self._started(self._own.schedule(now), now)

    def _leaves(self, job: int, at: float, now: float) -> bool:
        """Run a job on bought nodes if that pays; tell whether it runs.

        `at` is when it would start on own nodes.
        """
        rule, until = self._rule(job, now)
        if rule.worth == math.inf or (self._fits_here(job) and now < until):
            return False
        start = self._bursts.serve(job, rule, at, now)
        if start is not None:
            self._runs(job, start)
        return start is not None

    def _fits_here(self, job: int) -> bool:
        return self._jobs[job].cores <= self._site.machine.total

    def _rule(self, job: int, now: float) -> tuple[PolicyRule, float]:
        """Return the rule for a job, and until when the job tries own nodes."""
        facts, known = self._jobs[job], self._rules.get(job)
        rule = known
        if rule is None or self._policy.rules.by_hours:
            nodes = self._site.machine.nodes_for(facts.cores)
            rule = self._policy.rule(facts, nodes, self._trace_began + now)
            self._rules[job] = rule
        until = facts.submit + (rule.wait or 0.0)
        if rule is not known and now < until:
            heappush(self._events, (until, Due.ASK, job))
        return rule, until
