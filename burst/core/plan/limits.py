# SPDX-License-Identifier: MIT
"""Limits on nodes and bursts in use, now and at the time other bursts have ended."""

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


class FurtherUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a demand would use in addition to what is in use, or what a burst uses."""

    offer: str = ""
    """`PROVIDER/OFFER`; without OFFER if that is not known."""
    sizes: tuple[int, ...] = ()
    """Number of nodes of each burst that is made or grows; empty if a job joins one."""
    nodes: int = 0
    """How many of them are new."""
    bursts: int = 0
    """How many bursts are new."""
    charged: Mapping[int, int] = _NOBODY
    """By user: how many more nodes count against that user."""
    until: float = math.inf
    """When the use will have ended; for a live burst its `burst_end`."""
    staying: tuple[BurstId, ...] = ()
    """Bursts that stay until `until` for the job."""

    @classmethod
    def new(
        cls,
        offer: str,
        sizes: tuple[int, ...],
        userid: int | None,
        until: float,
        beside: FurtherUse | None = None,
    ) -> FurtherUse:
        """Return the use by new bursts of these sizes, and by others that a job joins.

        `beside` is what `joined` returned for the latter.
        """
        nodes = sum(sizes)
        more = 0 if beside is None else sum(beside.charged.values())
        return cls(
            offer=offer,
            sizes=sizes,
            nodes=nodes,
            bursts=len(sizes),
            charged={} if userid is None else {userid: nodes + more},
            until=until,
            staying=() if beside is None else beside.staying,
        )

    @classmethod
    def joined(
        cls,
        userid: int | None,
        nodes: int,
        bursts: tuple[BurstId, ...] = (),
        until: float = math.inf,
    ) -> FurtherUse:
        """Return the use by a user's job that joins bursts until `until`.

        `nodes` is how many of their nodes newly count against the user.
        """
        charged = {} if userid is None or not nodes else {userid: nodes}
        return cls(charged=charged, until=until, staying=bursts)


class Room(NamedTuple):
    """When limits allow a further use."""

    start: float
    """Seconds since the epoch; 0 for now, or once idle bursts are gone."""
    known: bool
    """Whether time limits tell `start`. If False, the job waits until `start`."""
    gone: frozenset[BurstId]
    """The bursts that have to be gone by then."""


class _InUse(msgspec.Struct):
    """The nodes and bursts that are in use, or will be."""

    nodes: int = 0
    bursts: int = 0
    by_user: Counter[int] = msgspec.field(default_factory=Counter)
    by_offer: Counter[str] = msgspec.field(default_factory=Counter)

    def add(self, more: FurtherUse, times: int = 1) -> None:
        """Count a further use; `times` is -1 for one that has ended."""
        self.nodes += times * more.nodes
        self.bursts += times * more.bursts
        self.by_offer[more.offer] += times * more.nodes
        for userid, nodes in more.charged.items():
            self.by_user[userid] += times * nodes

    def copy(self) -> _InUse:
        users, offers = self.by_user.copy(), self.by_offer.copy()
        return _InUse(self.nodes, self.bursts, users, offers)


class _Kept(msgspec.Struct):
    """What will be in use when a job with a promise begins, its own use included."""

    start: float
    job: JobId
    asked: FurtherUse
    """The use by the job itself."""
    use: _InUse
    ended: set[BurstId]
    """Bursts that will have ended by then, unless a further job makes them stay."""


class Usage:
    """Nodes and bursts in use, compared with the limits; grows as a plan is made."""

    def __init__(
        self,
        limits: LimitSettings,
        live: Mapping[BurstId, FurtherUse] = MappingProxyType({}),
        purchases: Purchases | None = None,
        totals: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """`totals` is how many nodes offers have, by `PROVIDER/OFFER`; 0 if unknown."""
        self._limits = limits
        self.purchases = purchases or NO_PURCHASES
        """What the plan buys, compared with the budgets."""
        self._totals = totals
        of_all = limits.max_nodes, limits.max_bursts, limits.max_nodes_per_user
        self._limited = any(of_all) or any(totals.values())
        self._live = dict(live)
        self._now = _InUse()
        self._promised = _InUse()
        """What is in use, and all that was promised."""
        self._kept: list[_Kept] = []
        self._due: dict[BurstId, float] = {}
        """When bursts have to be gone for a promise, if time limits tell their end."""
        for use in live.values():
            self._now.add(use)
            self._promised.add(use)

    def add(self, more: FurtherUse) -> None:
        """Count a further use, in full against each user that it charges."""
        self._now.add(more)
        self._promised.add(more)
        for kept in self._kept:
            if kept.start < more.until:
                kept.use.add(more)

    def begin(self, name: BurstId, use: FurtherUse) -> None:
        """Count a burst of this plan, for whose end later jobs may wait."""
        self._live[name] = use
        for kept in self._kept:
            if use.until <= kept.start:
                kept.ended.add(name)
        self.add(use)

    def join(self, name: BurstId, more: FurtherUse) -> None:
        """Count the further use by a job that gets nodes of a burst.

        The burst stays for the job, and its end gives back the further use as well.
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
        """Return by when a burst has to end for a promise; math.inf for never."""
        return self._due.get(name, math.inf)

    @property
    def bounded(self) -> bool:
        """Whether a limit, the total of an offer or a budget may refuse anything."""
        return self._limited or self.purchases.limited

    @property
    def largest_burst(self) -> float:
        """How many nodes one burst may have; math.inf for any number."""
        return self._limits.max_nodes_per_burst or math.inf

    def why_never(self, nodes: int, userid: int | None) -> dict[str, object] | None:
        """Return the limit that is below `nodes` by itself; None if there is none.

        The limit for each user counts if `userid` is not None.
        """
        limits = self._limits
        for key, limit in (
            ("max_nodes", limits.max_nodes),
            ("max_nodes_per_user", 0 if userid is None else limits.max_nodes_per_user),
        ):
            if 0 < limit < nodes:
                return {"key": f"limits.{key}", "limit": limit, "need": nodes}
        return None

    def why_not(self, asked: FurtherUse) -> OfferRejection | None:
        """Return why limits forbid a further use; None if they allow it."""
        refused = self._exceeded(self._now, asked)
        if refused:
            return refused
        for kept in self._kept:
            if kept.start < asked.until and self._exceeds(kept, asked):
                facts = {"job": format_f58(kept.job)}
                return OfferRejection(asked.offer, Reason.LIMIT_RESERVED, facts)
        return None

    def _exceeds(self, kept: _Kept, asked: FurtherUse) -> bool:
        """Tell whether a use exceeds limits beside a promise, with bursts that stay."""
        use = kept.use
        for name in kept.ended.intersection(asked.staying):
            stays = self._live[name]
            if self._exceeded(use, stays):
                return True
            use = use.copy()
            use.add(stays)
        return self._exceeded(use, asked) is not None

    def when(
        self,
        asked: FurtherUse,
        late: float,
        own: Set[BurstId] = frozenset(),
        joins: Mapping[BurstId, float] = MappingProxyType({}),
    ) -> Room | None:
        """Return when limits allow a further use; None if they never do.

        What is promised to jobs ahead counts as in use until these end. `late` is as in
        `RankTable.earliest`; `own` are bursts that the job has, and that stay. It needs
        fewer new nodes by those of bursts that it joins; `joins` is from when.
        """
        gone: set[BurstId] = set()
        start, known, joined = 0.0, True, 0
        if not self._limited:
            return Room(start, known, frozenset())
        left = self._promised.copy()
        refused = self._exceeded(left, asked)
        for until, name, use in self._by_end(joins):
            at = until if until < math.inf else late
            if refused is None or at == math.inf:
                break
            if name in own:
                continue
            mine = not asked.charged.keys().isdisjoint(use.charged)
            if refused.reason is Reason.LIMIT_USER and not mine:
                continue
            if refused.reason is Reason.OFFER_FULL and use.offer != asked.offer:
                continue
            start, known = max(start, at), known and until < math.inf
            if name is not None:
                gone.add(name)
            stays = name in joins
            joined += use.nodes if stays else 0
            # It counts as a burst beside those that are made for the rest.
            left.add(msgspec.structs.replace(use, bursts=0) if stays else use, -1)
            refused = self._exceeded(left, asked) if joined < asked.nodes else None
        return None if refused else Room(start, known, frozenset(gone))

    def _by_end(
        self, joins: Mapping[BurstId, float]
    ) -> list[tuple[float, BurstId | None, FurtherUse]]:
        """Return bursts and promised uses, in the order in which they end.

        Promised uses without a known end are left out: they have not begun, and nobody
        waits for their end.
        """
        ahead = (each.asked for each in self._kept if each.asked.until < math.inf)
        both: list[tuple[float, BurstId | None, FurtherUse]] = [
            *(
                (joins.get(name, use.until), name, use)
                for name, use in self._live.items()
            ),
            *((each.until, None, each) for each in ahead),
        ]
        return sorted(both, key=lambda it: (it[0], it[1] or ""))

    def keep(
        self, job: JobId, asked: FurtherUse, start: float, gone: Iterable[BurstId]
    ) -> None:
        """Keep a use for a job from `start` on, when the bursts in `gone` are gone."""
        if not self._limited:
            return
        use, going = self._now.copy(), frozenset(gone)
        # An idle burst (`until` 0) stays until something ends it.
        ended = {name for name, burst in self._live.items() if 0 < burst.until <= start}
        for name in self._live.keys() & (going | ended):
            burst = self._live[name]
            use.add(burst, -1)
            if name in going and burst.until < math.inf:
                self._due[name] = min(start, self.due(name))
        for each in (*(kept.asked for kept in self._kept), asked):
            if each.until > start:
                use.add(each)
        self._promised.add(asked)
        self._kept.append(_Kept(start, job, asked, use, ended - going))

    def _exceeded(self, use: _InUse, asked: FurtherUse) -> OfferRejection | None:
        limits, offer, nodes = self._limits, asked.offer, asked.nodes
        largest = max(asked.sizes, default=0)
        if 0 < limits.max_nodes_per_burst < largest:
            facts = {"limit": limits.max_nodes_per_burst, "need": largest}
            return OfferRejection(offer, Reason.LIMIT_BURST, facts)
        if asked.bursts and 0 < limits.max_bursts < use.bursts + asked.bursts:
            facts = {"limit": limits.max_bursts, "need": asked.bursts}
            alone = asked.bursts > limits.max_bursts
            why = Reason.FEW_BURSTS if alone else Reason.LIMIT_BURSTS
            return OfferRejection(offer, why, facts)
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
    """Return what a live burst uses of the limits.

    It counts against the users it was made for, and those whose jobs joined it. One
    that the instance owner requested ahead of jobs counts against nobody.
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
