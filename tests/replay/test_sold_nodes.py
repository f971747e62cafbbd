# SPDX-License-Identifier: MIT
"""What is bought in a replay, at which price."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from burst.config import Settings
from burst.core.worth.rules import RuleSet
from burst.replay.policies import Asks, FilePolicy
from burst.replay.sold_nodes import SoldNodes, sold_nodes
from burst.replay.trace import Machine, TraceJob
from tests.builders import offer, settings

JOB = TraceJob(10.0, 60.0, 12, 100.0, userid=7)
OFFERS = {
    "gke": (offer("n2", price=2.0, join_time=120.0), offer("c3", price=3.0)),
    "kube": (offer("pool", price=1.0, join_time=30.0),),
}


def site(**tables: Any) -> Settings:
    providers = {"gke": {"type": "fake"}, "kube": {"type": "fake"}}
    found: Settings = settings(providers=providers, **tables)
    return found


def shown(sold: SoldNodes) -> list[tuple[str, float, float]]:
    return [(o.key, o.offer.price, o.offer.join_time) for o in sold.offers]


def test_the_core_takes_the_cheapest_by_the_prices_of_the_site() -> None:
    sold = sold_nodes(site(prices={"kube.pool": 2.5}), OFFERS)
    assert shown(sold) == [
        ("gke/n2", 2.0, 120.0),
        ("kube/pool", 2.5, 30.0),
        ("gke/c3", 3.0, 0.0),
    ]
    assert sold.price == 2.0


def test_what_the_command_says_overrules_all_offers() -> None:
    sold = sold_nodes(site(), OFFERS, price=0.0, boot=9.0)
    assert {each[1:] for each in shown(sold)} == {(0.0, 9.0)}
    assert sold.price == 0.0


@pytest.mark.parametrize(("price", "fee"), [(None, 0.5), (3.0, 0.0)])
def test_a_price_that_the_command_says_has_no_fee(
    price: float | None, fee: float
) -> None:
    sold = sold_nodes(site(), {"gke": (offer("n2", fee=0.5),)}, price=price)
    assert [each.offer.fee for each in sold.offers] == [fee]


@pytest.mark.parametrize(
    ("prices", "offers", "price"),
    [({}, {}, 1.0), ({}, {"gke": (offer("n2"),)}, 1.0), ({"gke.x": 4}, {}, 4.0)],
)
def test_where_no_offer_has_a_price(
    prices: dict[str, float], offers: dict[str, Any], price: float
) -> None:
    sold = sold_nodes(site(prices=prices), offers)
    assert sold.price == price
    assert {each[1] for each in shown(sold)} <= {price}


@pytest.mark.parametrize(
    ("rule", "asks"),
    [
        ({}, Asks(0.0, 0.0, 1.0, 30.0)),
        ({"providers": ["gke"], "worth": 0.2}, Asks(0.2, 0.0, 2.0, 120.0)),
        ({"providers": ["gke"], "max_price": 1.5}, Asks(math.inf)),
        ({"max_price": 1.5, "wait": "5m"}, Asks(0.0, 300.0, 1.0, 30.0)),
    ],
)
def test_a_rule_buys_the_first_offer_that_it_allows(
    rule: dict[str, Any], asks: Asks
) -> None:
    found = site(policy=[rule])
    sold = sold_nodes(found, OFFERS)
    policy = FilePolicy("x", RuleSet(found.rules), sold, 0.0, Machine(9, 4))
    assert policy.asks(JOB, 20.0) == policy.asks(JOB, 30.0)
    assert msgspec.structs.replace(policy.asks(JOB, 20.0), sold=None) == asks


def test_an_offer_that_does_not_say_how_soon_it_is_there_takes_as_long_as_any() -> None:
    sold = sold_nodes(site(), {"gke": OFFERS["gke"][1:]})
    policy = FilePolicy("x", RuleSet(site().rules), sold, 0.0, Machine(9, 4))
    asks = policy.asks(JOB, 20.0)
    assert (asks.price, asks.boot) == (3.0, None)
