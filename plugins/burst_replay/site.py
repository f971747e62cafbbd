# SPDX-License-Identifier: MIT
"""The site of a replay: its own nodes, the offers that may be bought, and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from burst.config import BudgetSettings, DeadlineSettings, Seconds, Settings
from burst.core.plan.catalog import Failures, offer_catalog
from burst.core.plan.offers import ProviderOffer, provider_offers
from burst.core.plan.online_times import ProviderTimes, StageTimes, kind_of
from burst.model.scheduler import Order
from burst.model.shape import Shape
from burst.provider import Offer
from burst_replay.trace import MOST_CORES, Machine

DEFAULT_PRICE = 1.0
"""Price of a node for an hour if neither the command nor a file sets one: money then
counts node-hours."""
BOOT_S = 300.0
"""Seconds until nodes are online if neither the command nor an offer says."""
ANY_NODES = Offer(name="", shape=Shape(1), max_nodes=MOST_CORES)
"""The offer of a provider whose offers are not known: any number of nodes."""
NO_FILE = Settings(deadlines=DeadlineSettings(idle=Seconds(0)))
"""The settings if no file names providers: idle bursts are not kept."""


def sold_offers(
    settings: Settings,
    offers: Mapping[str, Sequence[Offer]],
    price: float | None = None,
    boot: float | None = None,
) -> tuple[ProviderOffer, ...]:
    """Return the offers of a file's providers; `offers` has those known, by provider.

    A provider whose offers are not known sells those that `[prices]` names. If nothing
    is sold, each provider sells ANY_NODES. `price` (then there are no fees) and `boot`
    (seconds) replace those of all offers. Without `price`, if no offer has a price,
    each costs DEFAULT_PRICE. Without `boot`, nodes take BOOT_S if an offer does not
    say.
    """
    enabled = [name for name, table in settings.providers.items() if table.enabled]
    sold = {
        name: offers[name] if name in offers else _priced(name, settings.prices)
        for name in enabled
    }
    if not any(sold.values()):
        sold = dict.fromkeys(enabled or ("",), (ANY_NODES,))
    known = provider_offers(sold, {}, settings, 0.0)
    found = offer_catalog(known, Failures()).offers
    fees = {} if price is None else {"fee": 0.0}
    if price is None and not any(each.offer.price for each in found):
        price = DEFAULT_PRICE
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


def _priced(provider: str, prices: Mapping[str, float]) -> Sequence[Offer]:
    """Return the offers of a provider that `[prices]` names, of any number of nodes."""
    return [
        msgspec.structs.replace(ANY_NODES, name=key.removeprefix(f"{provider}."))
        for key in prices
        if key.startswith(f"{provider}.")
    ]


class Site(msgspec.Struct, frozen=True):
    """The own nodes of a site, and how bought nodes behave."""

    machine: Machine
    order: Order = Order.EASY
    settings: Settings = NO_FILE
    """The settings. Only `[deadlines]`, `[plan]` and `[[budget]]` are used."""
    offers: tuple[ProviderOffer, ...] = sold_offers(NO_FILE, {})
    """The offers that may be bought, in the order of core. `lease_end` counts from the
    beginning of a lease. Sizes of offers and ends of leases do not limit jobs."""
    teardown: float = 60.0
    """Seconds for which nodes are paid after they are given back."""

    def with_budget(self, budget: tuple[BudgetSettings, ...]) -> Site:
        """Return the site with these budgets in place of its own."""
        settings = msgspec.structs.replace(self.settings, budget=budget)
        return msgspec.structs.replace(self, settings=settings)

    @property
    def reserving(self) -> Settings:
        """The settings with deadlines long enough to reserve all money that is paid.

        The replay never ends a burst because it is late.
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
        """The times of past bursts that would be known: how long a tear-down takes."""
        known = StageTimes(teardown=(self.teardown,))
        found: dict[str, ProviderTimes] = {}
        for each in self.offers:
            kinds = found.get(each.provider, ProviderTimes()).kinds
            kinds = {**kinds, kind_of(each.offer.name, 1): known}
            found[each.provider] = ProviderTimes(kinds)
        return found


class SiteOptions(msgspec.Struct, frozen=True):
    """The options of the command, times in seconds; None for the file's value."""

    base: Site
    """What no file changes: own nodes, their scheduler, and the tear-down."""
    boot: float | None
    idle: float | None
    price: float | None

    def site(self, settings: Settings, offers: Mapping[str, Sequence[Offer]]) -> Site:
        """Return the site by the options and, where they are not set, the settings."""
        deadlines = settings.deadlines
        if self.idle is not None:
            idle = Seconds(self.idle)
            deadlines = msgspec.structs.replace(deadlines, idle=idle)
        return msgspec.structs.replace(
            self.base,
            settings=msgspec.structs.replace(settings, deadlines=deadlines),
            offers=sold_offers(settings, offers, self.price, self.boot),
        )
