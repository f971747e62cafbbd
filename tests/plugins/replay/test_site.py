# SPDX-License-Identifier: MIT
"""What is bought in a replay, at which price."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from burst_replay.policies import Policy
from burst_replay.simulator import ReplayOutcome, replay
from burst_replay.site import Site, sold_offers
from burst_replay.trace import Machine, Trace, TraceJob

from burst.config import Settings
from burst.core.jobs.rules import RuleSet
from burst.core.plan.offers import ProviderOffer
from tests.builders import offer, settings

OFFERS = {
    "gke": (offer("n2", price=2.0, join_time=120.0), offer("c3", price=3.0)),
    "kube": (offer("pool", price=1.0, join_time=30.0),),
}


def site(**tables: Any) -> Settings:
    providers = {"gke": {"type": "fake"}, "kube": {"type": "fake"}}
    found: Settings = settings(providers=providers, **tables)
    return found


def shown(sold: Sequence[ProviderOffer]) -> list[tuple[str, float, float]]:
    return [(o.key, o.offer.price, o.offer.join_time) for o in sold]


def test_the_core_takes_the_cheapest_by_the_prices_of_the_site() -> None:
    sold = sold_offers(site(prices={"kube.pool": 2.5}), OFFERS)
    assert shown(sold) == [
        ("gke/n2", 2.0, 120.0),
        ("kube/pool", 2.5, 30.0),
        ("gke/c3", 3.0, 300.0),
    ]


def test_what_the_command_says_overrules_all_offers_and_their_fees() -> None:
    sold = sold_offers(site(), OFFERS, price=0.0, boot=9.0)
    assert {each[1:] for each in shown(sold)} == {(0.0, 9.0)}
    for price, fee in ((None, 0.5), (3.0, 0.0)):
        (each,) = sold_offers(site(), {"gke": (offer("n2", fee=0.5),)}, price=price)
        assert each.offer.fee == fee


@pytest.mark.parametrize(
    ("prices", "offers", "price"),
    [({}, {}, 1.0), ({}, {"gke": (offer("n2"),)}, 1.0), ({"gke.x": 4}, {}, 4.0)],
)
def test_where_no_offer_has_a_price(
    prices: dict[str, float], offers: dict[str, Any], price: float
) -> None:
    sold = sold_offers(site(prices=prices), offers)
    assert {each[1:] for each in shown(sold)} == {(price, 300.0)}


def test_offers_that_are_not_known_are_those_with_prices() -> None:
    prices = {"gke.n2": 4.0, "gke.c3.spot": 2.0, "kube.pool": 3.0}
    assert shown(sold_offers(site(prices=prices), {})) == [
        ("gke/c3.spot", 2.0, 300.0),
        ("kube/pool", 3.0, 300.0),
        ("gke/n2", 4.0, 300.0),
    ]
    known = {"gke": (offer("n2", price=5.0),)}
    assert [key for key, *_ in shown(sold_offers(site(), known))] == ["gke/n2"]


def test_where_no_offer_is_known_each_provider_has_one() -> None:
    sold = sold_offers(site(), {}, boot=0.0)
    assert shown(sold) == [("gke/", 1.0, 0.0), ("kube/", 1.0, 0.0)]


def bought(job: TraceJob, rule: dict[str, Any]) -> ReplayOutcome:
    """Replay a job on a machine that is too small for it."""
    found = site(policy=[rule])
    sells = Site(Machine(1, 1), offers=sold_offers(found, OFFERS))
    return replay(Trace("test", (job,)), sells, Policy("x", RuleSet(found.rules)))


@pytest.mark.parametrize(
    ("rule", "money", "wait"),
    [
        ({}, 1.0, 30.0),
        ({"providers": ["gke"]}, 2.0, 120.0),
        ({"providers": ["gke"], "max_price": 1.5}, 0.0, math.inf),
        ({"max_price": 1.5, "wait": "5m"}, 1.0, 30.0),
    ],
)
def test_a_rule_buys_the_first_offer_that_it_allows(
    rule: dict[str, Any], money: float, wait: float
) -> None:
    """For an hour; boot and tear-down are paid, too."""
    outcome = bought(TraceJob(0.0, 3600.0, 2, 3600.0), rule)
    assert outcome.waits == [wait]
    assert outcome.costs.work == 2e6 * money


@pytest.mark.parametrize(
    "match",
    [
        *({"user": 7}, {"queue": "gpu"}, {"bank": "bio"}, {"name": "app-*"}),
        *({"duration": ">30m"}, {"nodes": "2"}, {"attribute": "project=x"}),
    ],
)
def test_a_rule_is_for_the_jobs_that_it_matches(match: dict[str, Any]) -> None:
    rule = {"match": match, "max_price": 0}
    mine = TraceJob(0.0, 3600.0, 2, 3600.0, 7, "app-1", "gpu", "bio")
    mine = msgspec.structs.replace(mine, attributes={"project": "x"})
    assert bought(mine, rule).waits == [math.inf]
    assert bought(TraceJob(0.0, 60.0, 3, 60.0), rule).waits == [30.0]


@pytest.mark.parametrize(("duration", "wait"), [("<2h", 30.0), (">2h", math.inf)])
def test_a_job_without_a_time_limit_is_longer_than_any(
    duration: str, wait: float
) -> None:
    job = TraceJob(0.0, 3600.0, 2, 3600.0, limited=False)
    rule = {"match": {"duration": duration}, "max_price": 0}
    assert bought(job, rule).waits == [wait]
