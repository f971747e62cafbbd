# SPDX-License-Identifier: MIT
"""What is never exceeded."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from burst.config import LimitSettings
from burst.core.placement.purchases import NO_PURCHASES, Purchases
from burst.model.burst import Burst
from burst.model.decision import OfferRejection
from burst.model.jobid import JobId
from burst.model.lead import JobView
from burst.model.reason import Reason


class BurstUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What bursts use of the limits, and which users bear it."""

    nodes: int
    bursts: int
    userids: frozenset[int]


class Usage:
    """Nodes and bursts in use, against the limits; grows as a plan is made."""

    def __init__(
        self,
        limits: LimitSettings,
        live: Iterable[Burst],
        jobs: Mapping[JobId, JobView] = MappingProxyType({}),
        purchases: Purchases | None = None,
        totals: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Count live bursts; `jobs` tells the users of jobs that joined them later.

        `totals` are how many nodes of offers there are, by `PROVIDER/OFFER`.
        """
        self._limits = limits
        self.purchases = purchases or NO_PURCHASES
        """What the plan buys, against the budgets."""
        self._nodes = 0
        self._bursts = 0
        self._by_user: dict[int, int] = {}
        self._totals = totals
        self._of_offer: Counter[str] = Counter()
        for burst in live:
            share, lease = usage_of(burst, jobs), burst.lease
            offer = f"{lease.provider}/{lease.offer}"
            self.add(offer, share.nodes, share.bursts, share.userids)

    def add(self, offer: str, nodes: int, bursts: int, userids: Iterable[int]) -> None:
        """Count nodes and bursts made for these users; each user bears all of it."""
        self._of_offer[offer] += nodes
        self._nodes += nodes
        self._bursts += bursts
        for userid in userids:
            self.add_user(nodes, userid)

    def add_user(self, nodes: int, userid: int | None) -> None:
        """Count nodes against a user alone, who joined a burst that is counted."""
        if userid is not None:
            self._by_user[userid] = self._by_user.get(userid, 0) + nodes

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

    def exceeded(self, more: BurstUsage, gone: Iterable[BurstUsage]) -> Reason | None:
        """Return which limit would not allow so much more once others are gone."""
        limits = self._limits
        nodes, bursts = self._nodes + more.nodes, self._bursts + more.bursts
        by_user = {user: self._by_user.get(user, 0) for user in more.userids}
        for share in gone:
            nodes -= share.nodes
            bursts -= share.bursts
            for user in by_user.keys() & share.userids:
                by_user[user] -= share.nodes
        if 0 < limits.max_nodes < nodes:
            return Reason.LIMIT_NODES
        if 0 < limits.max_bursts < bursts:
            return Reason.LIMIT_BURSTS
        most = max(by_user.values(), default=0) + more.nodes
        over = bool(by_user) and 0 < limits.max_nodes_per_user < most
        return Reason.LIMIT_USER if over else None

    def refuse(
        self, offer: str, sizes: tuple[int, ...], grown: int
    ) -> OfferRejection | None:
        """Return why that much more is too much, None if it is not.

        `sizes` are the nodes of each new burst; with `grown`, instead, one burst
        that the plan has already grows to sizes[0], of which `grown` are new.
        """
        limits = self._limits
        nodes = grown or sum(sizes)
        if 0 < limits.max_nodes_per_burst < max(sizes):
            facts = {"limit": limits.max_nodes_per_burst, "need": max(sizes)}
            return OfferRejection(offer, Reason.LIMIT_BURST, facts)
        if 0 < limits.max_bursts < self._bursts + (0 if grown else len(sizes)):
            return OfferRejection(
                offer, Reason.LIMIT_BURSTS, {"limit": limits.max_bursts}
            )
        if 0 < limits.max_nodes < self._nodes + nodes:
            facts = {"limit": limits.max_nodes, "used": self._nodes, "need": nodes}
            return OfferRejection(offer, Reason.LIMIT_NODES, facts)
        total, used = self._totals.get(offer, 0), self._of_offer[offer]
        if 0 < total < used + nodes:
            facts = {"total": total, "used": used, "need": nodes}
            return OfferRejection(offer, Reason.OFFER_FULL, facts)
        return None

    def refuse_user(
        self, offer: str, nodes: int, userid: int | None
    ) -> OfferRejection | None:
        """Return why so many nodes more are too many for a user; None for nobody."""
        used = self._by_user.get(userid, 0) if userid is not None else 0
        limit = self._limits.max_nodes_per_user
        if userid is None or not 0 < limit < used + nodes:
            return None
        facts = {"limit": limit, "used": used, "need": nodes}
        return OfferRejection(offer, Reason.LIMIT_USER, facts)


def usage_of(burst: Burst, jobs: Mapping[JobId, JobView]) -> BurstUsage:
    """Return what a live burst uses. Who joined it bears it, as those it was made for.

    Nobody does where it was requested ahead of jobs.
    """
    userids = set(burst.lease.userids)
    if userids:
        userids.update(jobs[job].userid for job in burst.jobs if job in jobs)
    return BurstUsage(nodes=burst.lease.nodes, bursts=1, userids=frozenset(userids))
