# SPDX-License-Identifier: MIT
"""What is never exceeded: nodes and bursts in use, now and once others have ended."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from burst.config import LimitSettings
from burst.core.plan.leasable import burst_end
from burst.core.plan.purchases import NO_PURCHASES, Purchases
from burst.model.burst import Burst, BurstId
from burst.model.decision import OfferRejection
from burst.model.jobid import JobId, format_f58
from burst.model.lead import LeadView
from burst.model.reason import Reason

_NOBODY: Mapping[int, int] = MappingProxyType({})


class Joined(NamedTuple):
    """Bursts that a job joins, which are there already or in the plan."""

    nodes: int = 0
    """How many of their nodes count anew against its user."""
    bursts: tuple[BurstId, ...] = ()
    given: int = 0
    """How many of their nodes the job is given, which are among those that come."""


NOT_JOINED = Joined()


class FurtherUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a demand would use beside what is in use, or what a burst uses."""

    offer: str = ""
    """`PROVIDER/OFFER`."""
    sizes: tuple[int, ...] = ()
    """Nodes of each burst that is made or grows; of none where a job joins one."""
    nodes: int = 0
    """How many of them are new."""
    bursts: int = 0
    """How many bursts are new."""
    charged: Mapping[int, int] = _NOBODY
    """How many nodes more count against each user."""
    until: float = math.inf
    """When it will have ended; of a live burst as of `burst_end`."""
    staying: tuple[BurstId, ...] = ()
    """Bursts that are there until then for it."""

    @classmethod
    def new(
        cls,
        offer: str,
        sizes: tuple[int, ...],
        userid: int | None,
        until: float,
        beside: Joined = NOT_JOINED,
    ) -> FurtherUse:
        """Return what new bursts of these sizes are, with those that the job joins."""
        nodes = sum(sizes)
        return cls(
            offer=offer,
            sizes=sizes,
            nodes=nodes,
            bursts=len(sizes),
            charged={} if userid is None else {userid: nodes + beside.nodes},
            until=until,
            staying=beside.bursts,
        )

    @classmethod
    def joined(
        cls, userid: int | None, joined: Joined, until: float = math.inf
    ) -> FurtherUse:
        """Return what it is that a user's job joins bursts until then."""
        nodes = joined.nodes
        charged = {} if userid is None or not nodes else {userid: nodes}
        return cls(charged=charged, until=until, staying=joined.bursts)


class Room(NamedTuple):
    """When limits allow something."""

    start: float
    """Seconds since the epoch; 0: now, or once idle bursts are gone."""
    known: bool
    """Whether time limits say so; else it is waited for until then."""
    gone: frozenset[BurstId]
    """The bursts that have to be gone by then."""


class _InUse(msgspec.Struct):
    """So much is in use, or will be."""

    nodes: int = 0
    bursts: int = 0
    by_user: Counter[int] = msgspec.field(default_factory=Counter)
    by_offer: Counter[str] = msgspec.field(default_factory=Counter)

    def add(self, more: FurtherUse) -> None:
        self.nodes += more.nodes
        self.bursts += more.bursts
        self.by_user.update(more.charged)
        self.by_offer[more.offer] += more.nodes

    def remove(self, use: FurtherUse) -> None:
        self.nodes -= use.nodes
        self.bursts -= use.bursts
        self.by_user.subtract(use.charged)
        self.by_offer[use.offer] -= use.nodes

    def copy(self) -> _InUse:
        users, offers = self.by_user.copy(), self.by_offer.copy()
        return _InUse(self.nodes, self.bursts, users, offers)


class _Kept(msgspec.Struct):
    """What will be in use as a job begins to which nodes are promised, with its own."""

    start: float
    job: JobId
    asked: FurtherUse
    """Its own."""
    use: _InUse
    ended: set[BurstId]
    """Bursts that are not in use any more by then, if no further job has them stay."""


class Usage:
    """Nodes and bursts in use, against the limits; grows as a plan is made."""

    def __init__(
        self,
        limits: LimitSettings,
        live: Mapping[BurstId, FurtherUse] = MappingProxyType({}),
        purchases: Purchases | None = None,
        totals: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """`totals` are how many nodes of offers there are, by `PROVIDER/OFFER`."""
        self._limits = limits
        self.purchases = purchases or NO_PURCHASES
        """What the plan buys, against the budgets."""
        self._totals = totals
        of_all = limits.max_nodes, limits.max_bursts, limits.max_nodes_per_user
        self._limited = any(of_all) or any(totals.values())
        self._live = dict(live)
        self._now = _InUse()
        self._kept: list[_Kept] = []
        self._due: dict[BurstId, float] = {}
        """When bursts have to be gone of which time limits tell the end."""
        for use in live.values():
            self._now.add(use)

    def add(self, more: FurtherUse) -> None:
        """Count that; all of it against each user."""
        self._now.add(more)
        for kept in self._kept:
            if kept.start < more.until:
                kept.use.add(more)

    def begin(self, name: BurstId, use: FurtherUse) -> None:
        """Count a burst of this plan, which those behind may wait for."""
        self._live[name] = use
        for kept in self._kept:
            if use.until <= kept.start:
                kept.ended.add(name)
        self.add(use)

    def join(self, name: BurstId, more: FurtherUse) -> None:
        """Count what a job uses anew that gets nodes of a burst.

        The burst stays for it, and whoever waits for its end gets all of that back.
        """
        use = self._live.get(name)
        for kept in self._kept:
            if use is not None and kept.start < more.until and name in kept.ended:
                kept.ended.discard(name)
                kept.use.add(use)
        self.add(more)
        if use is not None:
            nodes, users = use.nodes + more.nodes, {**use.charged, **more.charged}
            self._live[name] = msgspec.structs.replace(
                use,
                nodes=nodes,
                charged=dict.fromkeys(users, nodes),
                until=max(use.until, more.until),
            )

    def due(self, name: BurstId) -> float:
        """Return by when a burst has to end for what is kept; math.inf for never."""
        return self._due.get(name, math.inf)

    @property
    def largest_burst(self) -> float:
        """How many nodes one burst may have; math.inf for any number."""
        return self._limits.max_nodes_per_burst or math.inf

    def why_never(self, nodes: int, userid: int | None) -> dict[str, object] | None:
        """Return the limit that alone keeps anybody from so many nodes for a user."""
        limits = self._limits
        for key, limit in (
            ("max_nodes", limits.max_nodes),
            ("max_nodes_per_user", 0 if userid is None else limits.max_nodes_per_user),
        ):
            if 0 < limit < nodes:
                return {"key": f"limits.{key}", "limit": limit, "need": nodes}
        return None

    def why_not(self, asked: FurtherUse) -> OfferRejection | None:
        """Return why that much more is too much, None if it is not."""
        refused = self._exceeded(self._now, asked)
        if refused:
            return refused
        for kept in self._kept:
            if kept.start < asked.until and self._exceeds(kept, asked):
                facts = {"job": format_f58(kept.job)}
                return OfferRejection(asked.offer, Reason.LIMIT_RESERVED, facts)
        return None

    def _exceeds(self, kept: _Kept, asked: FurtherUse) -> bool:
        """Tell whether that is too much beside what is kept, with bursts that stay."""
        use = kept.use
        for name in kept.ended.intersection(asked.staying):
            stays = self._live[name]
            if self._exceeded(use, stays):
                return True
            use = use.copy()
            use.add(stays)
        return self._exceeded(use, asked) is not None

    def when(
        self, asked: FurtherUse, late: float, own: Set[BurstId] = frozenset()
    ) -> Room | None:
        """Return when limits allow that much; None where they never do.

        What is promised to jobs ahead counts as in use until it ends. `late` as of
        `RankTable.earliest`; `own` are bursts that the job has, and that stay.
        """
        gone: set[BurstId] = set()
        start, known = 0.0, True
        if not self._limited:
            return Room(start, known, frozenset())
        left = self._now.copy()
        for kept in self._kept:
            left.add(kept.asked)
        refused = self._exceeded(left, asked)
        for name, use in self._by_end():
            at = use.until if use.until < math.inf else late
            if refused is None or at == math.inf:
                break
            if name in own:
                continue
            mine = not asked.charged.keys().isdisjoint(use.charged)
            if refused.reason is Reason.LIMIT_USER and not mine:
                continue
            if refused.reason is Reason.OFFER_FULL and use.offer != asked.offer:
                continue
            start, known = max(start, at), known and use.until < math.inf
            if name is not None:
                gone.add(name)
            left.remove(use)
            refused = self._exceeded(left, asked)
        return None if refused else Room(start, known, frozenset(gone))

    def _by_end(self) -> list[tuple[BurstId | None, FurtherUse]]:
        """Return what will end, in that order: bursts, and what is promised.

        Nobody waits for the end of what has not begun, and of which no limit tells it.
        """
        ahead = (each.asked for each in self._kept if each.asked.until < math.inf)
        both = [*self._live.items(), *((None, each) for each in ahead)]
        return sorted(both, key=lambda it: (it[1].until, it[0] or ""))

    def keep(
        self, job: JobId, asked: FurtherUse, start: float, gone: Iterable[BurstId]
    ) -> None:
        """Keep that much for a job from a time on, at which these bursts are gone."""
        if not self._limited:
            return
        use, going = self._now.copy(), frozenset(gone)
        # One that is idle stays until somebody has it go.
        ended = {name for name, burst in self._live.items() if 0 < burst.until <= start}
        for name in self._live.keys() & (going | ended):
            burst = self._live[name]
            use.remove(burst)
            if name in going and burst.until < math.inf:
                self._due[name] = min(start, self.due(name))
        for each in (*(kept.asked for kept in self._kept), asked):
            if each.until > start:
                use.add(each)
        self._kept.append(_Kept(start, job, asked, use, ended - going))

    def _exceeded(self, use: _InUse, asked: FurtherUse) -> OfferRejection | None:
        limits, offer, nodes = self._limits, asked.offer, asked.nodes
        largest = max(asked.sizes, default=0)
        if 0 < limits.max_nodes_per_burst < largest:
            facts = {"limit": limits.max_nodes_per_burst, "need": largest}
            return OfferRejection(offer, Reason.LIMIT_BURST, facts)
        if asked.bursts and 0 < limits.max_bursts < use.bursts + asked.bursts:
            facts = {"limit": limits.max_bursts}
            return OfferRejection(offer, Reason.LIMIT_BURSTS, facts)
        if nodes and 0 < limits.max_nodes < use.nodes + nodes:
            facts = {"limit": limits.max_nodes, "used": use.nodes, "need": nodes}
            return OfferRejection(offer, Reason.LIMIT_NODES, facts)
        total, used = self._totals.get(offer, 0), use.by_offer[offer]
        if nodes and 0 < total < used + nodes:
            facts = {"total": total, "used": used, "need": nodes}
            return OfferRejection(offer, Reason.OFFER_FULL, facts)
        limit = limits.max_nodes_per_user
        for userid, more in asked.charged.items():
            if 0 < limit < use.by_user[userid] + more:
                facts = {"limit": limit, "used": use.by_user[userid], "need": more}
                return OfferRejection(offer, Reason.LIMIT_USER, facts)
        return None


def usage_of(burst: Burst, lead: LeadView) -> FurtherUse:
    """Return what a live burst uses. It counts against those it was
    made for, and those whose jobs joined it.

    Against nobody where it was requested ahead of jobs.
    """
    userids = set(burst.lease.userids)
    if userids:
        userids.update(lead.jobs[job].userid for job in burst.jobs if job in lead.jobs)
    return FurtherUse(
        offer=burst.lease.key,
        nodes=burst.lease.nodes,
        bursts=1,
        charged=dict.fromkeys(userids, burst.lease.nodes),
        until=math.inf if burst.quarantined else burst_end(burst, lead),
    )
