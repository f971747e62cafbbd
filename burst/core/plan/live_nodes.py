# SPDX-License-Identifier: MIT
"""What live bursts can give to jobs while a plan is made, and which must end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set

import msgspec

from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand
from burst.core.plan.fit import nodes_needed
from burst.core.plan.limits import FurtherUse
from burst.core.plan.promises import Kept
from burst.core.plan.sources import LiveBurst, Portion
from burst.model.burst import BurstId
from burst.model.decision import OfferRejection
from burst.model.jobid import JobId

IdleShare = tuple[LiveBurst, list[int]]
"""A live burst, and the ranks of it that a job gets, each a whole idle node."""


class _Passing(msgspec.Struct):
    """How many nodes jobs behind a job may get while it waits until an unknown time."""

    job: JobId
    bursts: Set[BurstId]
    until: float
    """When it stops waiting for them."""
    nodes: int
    """The most that may be given to others: as many as it needs."""
    given: int

    def lets(self, burst: BurstId, nodes: int, needed: float) -> bool:
        """Tell whether a burst that the job waits for may give nodes to another job.

        `needed` is when a job ahead needs the burst: if that is before `until`, another
        job ahead needs it as well, and it gives none.
        """
        mine = burst in self.bursts and needed >= self.until
        return mine and self.given + nodes <= self.nodes


class LiveNodes:
    """The nodes of live bursts. Nothing becomes free while a plan is made."""

    def __init__(self, context: PlanContext) -> None:
        self.assignments: dict[JobId, tuple[BurstId, ...]] = {}
        self.ending: set[BurstId] = set()
        self._context = context
        self._given: set[BurstId] = set()
        self._due: dict[BurstId, float] = {}
        """By burst: when it has to be gone for a job ahead that waits for it."""
        self._passing: _Passing | None = None

    def reuse(self, demand: Demand) -> BurstId | None:
        """Give a job to one live burst that has room for it now; return which."""
        assert demand.job is not None
        admitted = self._context.admitted(demand)
        for live in self._context.live:
            if not self._is_there(demand, live):
                continue
            refused = self._why_not(demand, live)
            if refused is None and live.pool.take(demand.request, admitted):
                self._context.usage.purchases.use(demand, live.burst)
                nodes = nodes_needed(demand.request, live.pool.shape)
                self._join(demand, live, nodes)
                self.assignments[demand.job] = (live.burst,)
                return live.burst
        return None

    def idle_nodes(self, demand: Demand) -> list[IdleShare]:
        """Return idle nodes of several live bursts for a job, as many as it lacks.

        They are fewer if there are no more. Bursts with the most idle nodes come first,
        so that the job depends on few bursts. Only bursts of whose nodes it needs the
        same number are combined.
        """
        found: list[IdleShare] = []
        lacks = 0
        admitted = self._context.admitted(demand)
        for live in self._context.live:
            if demand.job in live.jobs or not self._is_there(demand, live):
                continue
            if self._why_not(demand, live):
                continue
            ranks = live.pool.idle(demand.lacks, admitted)
            if not ranks:
                continue
            need = nodes_needed(demand.lacks, live.pool.shape)
            lacks = lacks or need
            if need == lacks:
                found.append((live, ranks))
        found.sort(key=lambda share: -len(share[1]))
        return self._first(demand, found, lacks)

    def _first(
        self, demand: Demand, found: list[IdleShare], lacks: int
    ) -> list[IdleShare]:
        """Return the first `lacks` of these nodes that the job's user may have."""
        chosen: list[IdleShare] = []
        for live, ranks in found:
            here = ranks[: max(0, lacks)]
            more = [*chosen, (live, here)]
            if not here or self._why_not(demand, live, self.joined(demand, more)):
                continue
            chosen = more
            lacks -= len(here)
        return chosen

    def buys(self, demand: Demand, shares: Sequence[IdleShare]) -> bool:
        """Tell whether budgets allow to keep bursts for a job, and if so count that."""
        usage = self._context.usage
        before = usage.purchases.copy()
        for live, _ in shares:
            if self._why_not(demand, live):
                usage.purchases = before
                return False
            usage.purchases.use(demand, live.burst)
        return True

    def joined(self, demand: Demand, shares: Sequence[IdleShare]) -> FurtherUse:
        """Return what a job uses of the limits if it joins these bursts."""
        nodes = sum(live.source.joined_by(demand) for live, _ in shares)
        bursts = tuple(live.burst for live, _ in shares)
        until = demand.end(self._context.now)
        return FurtherUse.joined(demand.userid, nodes, bursts, until)

    def give(self, demand: Demand, shares: Sequence[IdleShare]) -> None:
        """Give these idle nodes to a job."""
        assert demand.job is not None
        for live, ranks in shares:
            live.pool.remove(ranks)
            self._join(demand, live, len(ranks))
        self.assignments[demand.job] = tuple(live.burst for live, _ in shares)

    @property
    def overtaken(self) -> Mapping[JobId, int]:
        """How many nodes others got while a job waits for them until an unknown time.

        Nodes that cost money would be idle all that time. So jobs behind it get, all
        together, as many of them as it needs.
        """
        passing = self._passing
        return {passing.job: passing.given} if passing and passing.given else {}

    def let_pass(
        self, demand: Demand, bursts: Set[BurstId], until: float, nodes: int
    ) -> None:
        """Let jobs behind `demand` use up to `nodes` nodes of bursts that it waits for.

        `until` is when it stops waiting.
        """
        assert demand.job is not None
        given = self._context.overtaken.get(demand.job, 0)
        self._passing = _Passing(demand.job, bursts, until, nodes, given)

    def wait_for(self, demand: Demand, kept: Kept, *, combines: bool) -> set[BurstId]:
        """Have bursts end that a job waits for; return the idle ones that it will use.

        The job waits for bursts that have to be gone, or that have ranks promised to
        it. An idle burst that it cannot use ends when the promise starts; until then it
        serves jobs that end before. One that was requested ahead of jobs ends by its
        own deadline.
        """
        stay: set[BurstId] = set()
        start = kept.promise.start
        for live in self._context.live:
            burst, source = live.burst, live.source
            if burst not in kept.gone:
                continue
            self._due[burst] = min(start, self._due.get(burst, math.inf))
            if not live.idle or burst in self._given:
                continue
            may_stay = combines and burst not in kept.cannot_stay
            if may_stay and self._context.why_not(demand, source) is None:
                stay.add(burst)
            elif start <= self._context.now:
                requested = not source.userids or source.requester is not None
                if not requested:
                    self.ending.add(burst)
        return stay

    def _is_there(self, demand: Demand, live: LiveBurst) -> bool:
        """Tell whether a burst has something free for as long as a job may run."""
        if not live.pool or live.burst in self.ending:
            return False
        if live.jobs and not self._context.settings.share:
            return False
        if self._ends_in_time(demand, live):
            return True
        if self._passing is None:
            return False
        nodes = nodes_needed(demand.request, live.pool.shape)
        return self._passing.lets(live.burst, nodes, self._needed(live))

    def _why_not(
        self, demand: Demand, live: LiveBurst, use: FurtherUse | None = None
    ) -> OfferRejection | None:
        """Return why a job may not join a burst; `use` includes others it joins."""
        share = Portion(use or self.joined(demand, [(live, [])]))
        return self._context.why_not(demand, live.source, share)

    def _ends_in_time(self, demand: Demand, live: LiveBurst) -> bool:
        """Tell whether a job ends before a burst is needed for a job ahead."""
        return demand.end(self._context.now) <= self._needed(live)

    def _needed(self, live: LiveBurst) -> float:
        """Return when a burst is needed for a job ahead; math.inf for never."""
        promised = self._context.table.promised_from(live.pool.whole)
        return min(promised, self._due.get(live.burst, math.inf))

    def _join(self, demand: Demand, live: LiveBurst, nodes: int) -> None:
        """Count a job that a live burst gives nodes to, also against its user."""
        context = self._context
        if self._passing and not self._ends_in_time(demand, live):
            self._passing.given += nodes
        context.usage.join(live.burst, self.joined(demand, [(live, [])]))
        if live.source.userids and demand.userid is not None:
            live.source.userids |= {demand.userid}
        self._given.add(live.burst)
        context.table.prolong(live.pool.whole, demand.end(context.now))
