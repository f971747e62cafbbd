# SPDX-License-Identifier: MIT
"""What a node of a member will cost, while it has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from burst.core.plan.offers import price_of
from burst.provider import Offer
from burst_ensemble.config.spec import MemberSpec
from burst_ensemble.core.read_members import MemberState


def with_offered_price(
    found: MemberState,
    member: MemberSpec,
    offers: Sequence[Offer],
    prices: Mapping[str, float],
) -> MemberState:
    """Return a member without nodes with the price of the offer that it would take.

    Else it would seem to cost nothing, and jobs go where they cost least. `offers` are
    those of its provider, `prices` as `[prices]` has them.
    """
    if found.reading.nodes:
        return found
    fit = [
        price_of(member.provider, offer, prices)[0]
        for offer in offers
        if offer.name == (member.offer or offer.name) and offer.max_nodes >= member.min
    ]
    reading = msgspec.structs.replace(found.reading, price=min(fit, default=0.0))
    return msgspec.structs.replace(found, reading=reading)
