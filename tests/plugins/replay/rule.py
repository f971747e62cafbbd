# SPDX-License-Identifier: MIT
"""Policies and sites of tests."""

from __future__ import annotations

from typing import Any

import msgspec
from burst_replay.policies import Policy
from burst_replay.site import NO_FILE, Site, sold_offers
from burst_replay.trace import Machine

from burst.config import ProviderTable, Seconds
from burst.core.jobs.rules import RuleSet
from burst.model.scheduler import Order
from tests.builders import settings


def rules_of(*tables: dict[str, Any]) -> Policy:
    """Return the policy of such `[[policy]]` tables."""
    named = {name for each in tables for name in each.get("providers", [])}
    providers = {name: {"type": "fake"} for name in named}
    found = settings(policy=list(tables), providers=providers).rules
    return Policy("rule", RuleSet(found))


def site_of(
    machine: Machine,
    order: Order = Order.EASY,
    boot: float = 300.0,
    teardown: float = 60.0,
    provision: float = 900.0,
    **tables: Any,
) -> Site:
    """Return a site with one offer of price 1; idle bursts are not kept by default."""
    tables["deadlines"] = {"idle": "0s", **tables.get("deadlines", {})}
    its = settings(**tables)
    named = {"": ProviderTable(type="fake"), **its.providers}
    providers = {
        name: msgspec.structs.replace(table, provision=Seconds(provision))
        for name, table in named.items()
    }
    return Site(
        machine,
        order,
        settings=msgspec.structs.replace(its, providers=providers),
        offers=sold_offers(NO_FILE, {}, boot=boot),
        teardown=teardown,
    )


def with_offer(site: Site, provider: str, lease_end: float = 0.0, **offer: Any) -> Site:
    """Return the site with an offer more, which is taken after the others."""
    (usual,) = sold_offers(NO_FILE, {})
    more = msgspec.structs.replace(
        usual,
        provider=provider,
        offer=msgspec.structs.replace(usual.offer, **offer),
        lease_end=lease_end,
    )
    return msgspec.structs.replace(site, offers=(*site.offers, more))
