# SPDX-License-Identifier: MIT
"""Places isolated bursts: they take no rank slot, but count against the limits."""

from __future__ import annotations

import hashlib
from collections.abc import Container

from burst.core.plan.demands import Demand, Proposal
from burst.core.plan.eligible import IsolatedFacts
from burst.core.plan.limits import FurtherUse, Usage
from burst.core.plan.offers import ProviderOffer
from burst.core.records import RecordsView
from burst.model.burst import ISOLATED_STEM, BurstId, Lease
from burst.model.lead import LeadIdentity


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

    def __init__(
        self,
        usage: Usage,
        used_ids: Container[BurstId],
        unreadable: str,
        identity: LeadIdentity,
    ) -> None:
        """`used_ids` are ids that other bursts have.

        `unreadable` as of `IsolatedFacts`.
        """
        self.usage = usage
        self._used_ids = used_ids
        self.facts = IsolatedFacts(identity, unreadable)
        self._placed: list[tuple[ProviderOffer, Demand, int]] = []

    def take(
        self, candidate: ProviderOffer, demand: Demand, nodes: int, until: float
    ) -> None:
        """Place a demand on so many nodes of an offer, until then."""
        use = FurtherUse.new(candidate.key, (nodes,), demand.userid, until)
        self.usage.begin(BurstId(f"isolated/{len(self._placed)}"), use)
        self.usage.purchases.buy(candidate, demand, nodes)
        self._placed.append((candidate, demand, nodes))

    def propose(self, owner: str, now: float) -> list[Proposal]:
        """Return them as they are to be made."""
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
