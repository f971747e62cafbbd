# SPDX-License-Identifier: MIT
"""Places isolated bursts: they take no rank slot, but count against the limits."""

from __future__ import annotations

import hashlib
from collections.abc import Container

from burst.core.plan.context import PlanContext
from burst.core.plan.demands import Demand, Proposal
from burst.core.plan.limits import FurtherUse
from burst.core.plan.offers import ProviderOffer
from burst.core.records import RecordsView
from burst.model.burst import ISOLATED_STEM, BurstId, Lease


def unreadable_isolated_record(records: RecordsView) -> str:
    """Return the key of an isolated burst's record that cannot be read; empty if none.

    It may be the record of any job's isolated burst.
    """
    keys = (
        key for key in records.unreadable if key.startswith(f"burst/{ISOLATED_STEM}-")
    )
    return next(keys, "")


class IsolatedPlacement:
    """The isolated bursts of one plan."""

    def __init__(self, context: PlanContext, used_ids: Container[BurstId]) -> None:
        """`used_ids` are ids that other bursts have."""
        self._context = context
        self._used_ids = used_ids
        self._placed: list[tuple[ProviderOffer, Demand, int]] = []

    def take(self, candidate: ProviderOffer, demand: Demand, nodes: int) -> None:
        """Place a demand on so many nodes of an offer."""
        context, until = self._context, self._context.until(candidate, demand)
        use = FurtherUse.new(candidate.key, (nodes,), demand.userid, until)
        context.usage.begin(BurstId(f"isolated/{len(self._placed)}"), use)
        context.usage.purchases.buy(candidate, demand, nodes)
        context.eligible.failures.begin(candidate, (nodes,))
        self._placed.append((candidate, demand, nodes))

    def propose(self) -> list[Proposal]:
        """Return the isolated bursts that are to be made."""
        now, owner = self._context.now, self._context.eligible.isolated.identity.owner
        made: set[BurstId] = set()
        proposals = []
        for candidate, demand, nodes in self._placed:
            name = self._name((owner, candidate.key, nodes, demand.isolated, now), made)
            made.add(name)
            lease = Lease(
                id=name,
                provider=candidate.provider,
                offer=candidate.offer.name,
                slot="",
                hosts=tuple(f"{name}-{index}" for index in range(nodes)),
                ranks=(),
                shape=candidate.offer.shape,
                userids=() if demand.userid is None else (demand.userid,),
                created=now,
                price=candidate.offer.price,
                fee=candidate.offer.fee,
                priced_by=candidate.priced_by,
                spot=candidate.offer.spot,
                end=candidate.lease_end,
                place=candidate.place,
                isolated=demand.isolated,
                tag=demand.tag,
                image=demand.image,
            )
            jobs = () if demand.job is None else (demand.job,)
            proposals.append(Proposal(lease, jobs))
        return proposals

    def _name(self, content: tuple[object, ...], made: Container[BurstId]) -> BurstId:
        """Return an id that ends in a hash of its arguments, and that no burst has."""
        number = 0
        while True:
            text = repr((*content, number))
            name = BurstId(
                f"{ISOLATED_STEM}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
            )
            if name not in made and name not in self._used_ids:
                return name
            number += 1
