# SPDX-License-Identifier: MIT
"""What a replay is told beside the trace: own nodes, what may be bought, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from burst.config import DeadlineSettings, Seconds, Settings
from burst.core.plan.catalog import offer_catalog
from burst.core.plan.failures import Failures
from burst.core.plan.offers import ProviderOffer, provider_offers
from burst.core.worth.stage_times import ProviderTimes, StageTimes, kind_of
from burst.model.scheduler import Order
from burst.model.shape import Shape
from burst.provider import Offer
from burst_replay.trace import MOST_CORES, Machine

DEFAULT_PRICE = 1.0
"""Of a node and hour, where neither command nor file says: money is then hours."""
BOOT_S = 300.0
"""How long nodes take to come online, where neither says."""
ANY_NODES = Offer(name="", shape=Shape(1), max_nodes=MOST_CORES)
"""What a provider sells of which no offer is known: as many as are asked for."""
NO_FILE = Settings(deadlines=DeadlineSettings(idle=Seconds(0)))
"""The settings where no file names providers: idle bursts are not kept."""


def sold_offers(
    settings: Settings,
    offers: Mapping[str, Sequence[Offer]],
    price: float | None = None,
    boot: float | None = None,
) -> tuple[ProviderOffer, ...]:
    """Return what the providers of a file sell, by the name of each.

    Where no offer is known, each of them sells ANY_NODES.
    `price` (then there are no fees) and `boot` (seconds) overrule those of all offers.
    Where they are not given, offers of which none has a price cost the lowest of
    `[prices]`, or DEFAULT_PRICE, and nodes take BOOT_S where an offer does not say.
    """
    if not any(offers.values()):
        offers = dict.fromkeys(settings.providers or ("",), (ANY_NODES,))
    known = provider_offers(offers, {}, settings.deadlines, 0.0, settings.prices)
    found = offer_catalog(known, Failures()).offers
    fees = {} if price is None else {"fee": 0.0}
    if price is None and not any(each.offer.price for each in found):
        price = min(settings.prices.values(), default=DEFAULT_PRICE)
    return tuple(
        msgspec.structs.replace(
            each,
            offer=msgspec.structs.replace(
                each.offer,
                price=each.offer.price if price is None else price,
                join_time=(each.offer.join_time or BOOT_S) if boot is None else boot,
                **fees,
            ),
        )
        for each in found
    )


class Site(msgspec.Struct, frozen=True):
    """Own nodes, and how bought ones behave."""

    machine: Machine
    order: Order = Order.EASY
    settings: Settings = NO_FILE
    """`[deadlines]`, `[plan]` and `[[budget]]` of it count."""
    offers: tuple[ProviderOffer, ...] = sold_offers(NO_FILE, {})
    """What may be bought, in the order in which core takes it. A lease ends as if it
    began at time 0. Sizes and leases are no limits."""
    teardown: float = 60.0
    """For how many seconds nodes are paid after that they are given back."""

    @property
    def reserving(self) -> Settings:
        """Return the settings with deadlines by which all is reserved that is paid.

        The replay ends no burst for being late.
        """
        deadlines = self.settings.deadlines
        boot = max((each.offer.join_time for each in self.offers), default=0.0)
        deadlines = msgspec.structs.replace(
            deadlines,
            join=Seconds(max(deadlines.join, boot)),
            reap=Seconds(max(deadlines.reap, self.teardown)),
        )
        return msgspec.structs.replace(self.settings, deadlines=deadlines)

    @property
    def past_times(self) -> Mapping[str, ProviderTimes]:
        """Return what would be known of past bursts: how long they are taken down."""
        known = StageTimes(teardown=(self.teardown,))
        found: dict[str, ProviderTimes] = {}
        for each in self.offers:
            kinds = found.get(each.provider, ProviderTimes()).kinds
            kinds = {**kinds, kind_of(each.offer.name, 1): known}
            found[each.provider] = ProviderTimes(kinds)
        return found
