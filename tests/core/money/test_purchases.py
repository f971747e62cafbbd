# SPDX-License-Identifier: MIT
"""What a plan counts against the budgets for one demand."""

import pytest

from burst.core import lifecycle
from burst.core.plan.demands import Demand
from burst.core.plan.offers import provider_offers
from burst.core.plan.purchases import Purchases
from burst.core.records import Records
from burst.model.burst import BurstId, Isolated
from burst.model.jobid import JobId
from tests.builders import T0, but, offer, settings, whole
from tests.core.money.budgets import NOON, budget, entry
from tests.core.money.money_sim import DEADLINES, PROVISION
from tests.lifecycles import LEASE

SETTINGS = settings(
    deadlines=DEADLINES,
    providers={"local": {"type": "fake", "provision": PROVISION}},
)
ONE = JobId(1)
NOTHING = Records()


def purchases(*budgets, records=NOTHING, now=T0):
    return Purchases(records, but(SETTINGS, budget=budgets), {}, lambda _: None, now)


def candidate():
    offers = {"local": (offer(price=3600.0),)}
    found = provider_offers(offers, {}, SETTINGS, T0)["local"]
    assert found
    return found[0]


def demand(job=ONE, **fields):
    return Demand(job=job, userid=1, request=whole(1), **fields)


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        (demand(duration=7.0), 5 * 60 + 7),
        (demand(), 5 * 60 + 3600),
        (demand(None), 4 * 60),
        (demand(None, isolated=Isolated(kind="service")), 4 * 60),
        (demand(isolated=Isolated(kind="job", duration=9.0)), 5 * 60 + 9),
    ],
)
def test_a_node_is_bought_for_as_long_as_the_burst_may_live(asked, seconds):
    bought = purchases(budget(1e6)).buy(candidate(), asked, 1)
    assert bought is not None
    assert bought.until == T0 + seconds
    assert bought.amount == seconds * 1_000_000


def test_without_budgets_nothing_is_counted():
    found = purchases()
    assert found.buy(candidate(), demand(), 1) is None
    assert found.refuse(candidate(), demand(), 1) is None
    assert found.key(demand()) == ()
    assert found.refuse_use(demand(), BurstId("burst-0-aaaaaa"), "a/b") is None
    found.use(demand(), BurstId("burst-0-aaaaaa"))


@pytest.mark.parametrize(("limit", "may"), [(4.0, False), (5.0, True)])
def test_a_burst_grows_within_the_budgets_for_as_long_as_it_is_reserved_for(limit, may):
    """Two hours are reserved; another node is two more, and both come a bit later."""
    reserved = entry(2, provider="local")
    live = {reserved.burst: lifecycle.begin(LEASE, {}, NOON)}
    records = Records(bursts=live, entries={reserved.burst: reserved})
    found = purchases(budget(limit), records=records, now=NOON)
    assert found.grow(reserved.burst, 1) is may
