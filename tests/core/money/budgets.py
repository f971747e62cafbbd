# SPDX-License-Identifier: MIT
"""What tests of budgets say often."""

import datetime

from burst.config import BudgetMatch, BudgetSettings
from burst.core.money.budget import Budgets, Commitment
from burst.core.money.ledger import Costs, Entry, Payer, SettledBurst, Share
from burst.core.money.money import UNIT, Money
from burst.core.money.periods import Group, Period
from burst.core.records import Records
from burst.model.burst import BurstId

HOUR = 3600.0
NOON = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC).timestamp()
ANN, BEN = Payer(1, "physics", "gpu"), Payer(2, "maths")


def units(amount):
    return Money(round(amount * UNIT))


def budget(limit, per="month", **match):
    match = {key: (value,) for key, value in match.items()}
    return BudgetSettings(limit=limit, per=per, match=BudgetMatch(**match))


def bought(amount, payers=(ANN,), provider="gke", made=NOON):
    """What reserves so many units: a node at one an hour, for as many hours."""
    times = {"made": made, "until": made + amount * HOUR}
    its = {"provider": provider, "payers": frozenset(payers), **times}
    return Commitment(price=units(1), nodes=1, **its)


def entry(amount, payer=ANN, provider="gke", made=NOON, name="burst-0-aaaaaa"):
    """A live burst for which so many units are reserved."""
    return Entry(
        burst=BurstId(name),
        provider=provider,
        offer="n2",
        nodes=1,
        price=units(1),
        made=made,
        until=made + amount * HOUR,
        reserved=units(amount),
        shares=(Share(payer),),
        at=made,
    )


def settled(amount, payer=ANN, provider="gke"):
    """A day in which so much was settled."""
    return Period(((Group(payer, provider, "n2"), Costs(work=units(amount))),), 1)


def settled_burst(name, made=NOON, **changes):
    """A burst that was settled a minute after it was made."""
    fields = {
        "burst": BurstId(name),
        "provider": "gke",
        "offer": "n2",
        "nodes": 1,
        "price": units(1),
        "made": made,
        "ended": made + 60,
        "reserved": units(9),
        "costs": Costs(),
        "shares": (),
    }
    return SettledBurst(**{**fields, **changes})


def budgets(*each, entries=(), now=NOON, userids=(), unreadable=(), **periods):
    records = Records(
        entries={one.burst: one for one in entries},
        periods={f"2026-11-{int(day[1:]):02}": one for day, one in periods.items()},
        unreadable=dict.fromkeys(unreadable, "spoiled"),
    )
    return Budgets(each, records, dict(userids), now)
