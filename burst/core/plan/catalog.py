# SPDX-License-Identifier: MIT
"""The offers as a tick sees them."""

from __future__ import annotations

from burst.config import Settings
from burst.core.plan.offers import (
    OfferCatalog,
    offer_catalog,
    provider_offers,
)
from burst.core.plan.trials import coming_bursts, running_trials
from burst.core.records import RecordsView
from burst.core.world import World


def read_catalog(
    records: RecordsView, world: World, settings: Settings, now: float
) -> OfferCatalog:
    """Return which offers can be taken now, and why the others cannot."""
    offered = {name: view.offers for name, view in world.providers.items()}
    return offer_catalog(
        provider_offers(
            offered, world.places, settings.deadlines, now, settings.prices
        ),
        records.health,
        now,
        running_trials(records.health, coming_bursts(records.live), now),
    )
