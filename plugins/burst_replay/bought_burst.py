# SPDX-License-Identifier: MIT
"""One burst of a replay: its record, its account, and its view for a plan; and what
the budgets of a replay leave for further bursts.

Record and account are those of `burst.core`. Times are seconds since the epoch. The
nodes count as one rank with the cores of all nodes, because jobs have whole nodes, and
a trace does not tell which. Days, weeks and months of budgets are those of the trace.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from burst.config import PolicyRule, Settings
from burst.core.cost import idle_limit, kept_idle
from burst.core.lifecycle import apply, begin
from burst.core.money.ledger import Payer, SettledBurst, Use, count, extend, open_entry
from burst.core.money.life import Life, lives_until
from burst.core.money.periods import Period, day_of, groups_of
from burst.core.plan.capacity import source_of
from burst.core.plan.demands import Demand
from burst.core.plan.fit import NodePool
from burst.core.plan.online_times import ProviderTimes
from burst.core.plan.purchases import NO_PURCHASES, Purchases
from burst.core.plan.sources import LiveBurst
from burst.core.records import Records
from burst.model.burst import Lease
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58
from burst.model.shape import Shape


class BoughtBurst:
    """A burst from when it is made until it is taken down as a whole."""

    def __init__(
        self,
        lease: Lease,
        demand: Demand,
        payer: Payer,
        online: float,
        settings: Settings,
    ) -> None:
        """Make a burst for a job, which gets all nodes; `lease.shape` is one node's."""
        assert demand.job is not None
        self._settings = settings
        self.idle_until: float | None = None
        """When it is taken down unless a job uses it before, in seconds of the trace;
        None while a job runs or it is not known yet."""
        self._jobs: dict[JobId, tuple[int, float]] = {}
        self._cores, made = lease.shape.cores, lease.created
        self.burst = begin(lease, {demand.job: demand.since}, made)
        self._note(made, "provision-start")
        self._note(online, "provision-finish")
        self._note(online, "online", ranks="0")
        until = self._until(demand, made, online=False)
        entry = open_entry(lease, until, {demand.job: payer}, made)
        self.entry = count(entry, Use("boot"), made, joined=True)
        # In a replay, the end of a lease does not limit the run time of jobs.
        source = source_of(self.burst, settings.deadlines, online)
        self._view = LiveBurst(
            source=msgspec.structs.replace(source, lasts=math.inf),
            pool=NodePool({0: Shape(0)}, {0: Shape(lease.nodes * self._cores)}),
        )
        self._run(demand, online)

    @property
    def busy(self) -> bool:
        """Whether a job has any of its nodes."""
        return bool(self._jobs)

    @property
    def free(self) -> bool:
        """Whether it has nodes without a job."""
        return bool(self._view.pool)

    def use(self, demand: Demand, payer: Payer, now: float) -> None:
        """Run a further job. Its nodes have been taken from the pool already."""
        assert demand.job is not None
        jobs = {format_f58(demand.job): demand.since}
        self._note(now, "assign", jobs=jobs)
        until = self._until(demand, now, online=True)
        self.entry = extend(self.entry, until, {demand.job: payer})
        self._run(demand, now)

    def end(
        self,
        job: JobId,
        rules: Sequence[PolicyRule],
        times: Mapping[str, ProviderTimes],
        now: float,
    ) -> None:
        """End a job. `rules` and `times` decide how long the burst is kept idle."""
        nodes, _ = self._jobs.pop(job)
        self._view.pool.give_shares({0: Shape(nodes * self._cores)})
        self._note(now, "job-finish", id=format_f58(job), result="completed")
        self._count(now)
        if not self._jobs:
            keep = kept_idle(self.burst, self.entry.payers, rules, times)
            self._note(now, "idle", **({} if math.isinf(keep) else {"keep": keep}))

    def view(self, now: float) -> LiveBurst:
        """Return the live burst at a time, as a plan sees it."""
        view, since = self._view, self.burst.idle_since
        view.jobs, view.idle = frozenset(self.burst.jobs), since is not None
        until = max((end for _, end in self._jobs.values()), default=now)
        if since is not None:
            until = since + idle_limit(self.burst, self._settings)
        view.source.stays = max(0.0, until - now)
        return view

    def take_down(self, now: float) -> None:
        """Give the burst back; it costs money until it is gone."""
        self.entry = count(self.entry, Use("teardown"), now, joined=True)

    def _run(self, demand: Demand, at: float) -> None:
        assert demand.job is not None
        nodes = demand.request.slots
        self.idle_until = None
        self._jobs[demand.job] = nodes, at + demand.duration
        self._note(at, "job-start", id=format_f58(demand.job))
        self._count(at)

    def _until(self, demand: Demand, now: float, *, online: bool) -> float:
        """Return the time until which money is reserved for a job."""
        lease = self.burst.lease
        life = Life(
            provider=lease.provider,
            lease_end=lease.end,
            run_times=(demand.duration,),
            online=online,
        )
        return lives_until(life, self._settings, now)

    def _count(self, now: float) -> None:
        """Account for its nodes up to now, and set their use from now on."""
        jobs = tuple((job, nodes) for job, (nodes, _) in self._jobs.items())
        use = Use("idle", sum(nodes for _, nodes in jobs), jobs)
        self.entry = count(self.entry, use, now, joined=True)

    def _note(self, at: float, name: str, **context: object) -> None:
        self.burst = apply(self.burst, Event(at, name, context))


# No period of a budget is longer than a month; a burst counts in the one in which it
# was made.
_KEPT_S = 100 * 86400.0


class Spending:
    """The money that one replay has spent, and what may still be bought."""

    def __init__(
        self,
        settings: Settings,
        userids: Mapping[str, int],
        payer: Callable[[JobId], Payer],
    ) -> None:
        """`userids` is as in `World`, `payer` as in `Purchases`."""
        self._settings = settings
        self._userids, self._payer = userids, payer
        self._periods: dict[str, Period] = {}

    def purchases(self, bought: Collection[BoughtBurst], now: float) -> Purchases:
        """Return what may be bought at a time; `bought` are not settled yet."""
        if not self._settings.budget:
            return NO_PURCHASES
        bursts = {each.burst.id: each.burst for each in bought}
        entries = {each.burst.id: each.entry for each in bought}
        records = Records(bursts=bursts, entries=entries, periods=self._periods)
        return Purchases(records, self._settings, self._userids, self._payer, now)

    def settle(self, settled: SettledBurst) -> None:
        """Add the cost of a settled burst."""
        if not self._settings.budget:
            return
        day = day_of(settled.made)
        known = self._periods.get(day, Period())
        self._periods[day] = known.plus(groups_of(settled), 1)
        oldest = day_of(max(0.0, settled.ended - _KEPT_S))
        self._periods = {key: its for key, its in self._periods.items() if key > oldest}
