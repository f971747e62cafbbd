# SPDX-License-Identifier: MIT
"""Which jobs a forecast assumes to burst, and which ticks judge by it."""

from typing import Any

import pytest

from burst.core.jobs.burst_worth import assumed_to_burst, is_judged, worth_for_job
from burst.core.records import Records
from burst.model.decision import Decision
from burst.model.lead import JobView
from burst.model.reason import Reason
from tests.builders import T0, job, offer, settings, view, whole, world

HOUR = 3600.0
FRUGAL: dict[str, Any] = {"plan": {"worth": 0.1}}
# Two nodes for an hour: a burst pays from 12.2 minutes on.
ONE = job(1, whole(2), duration=HOUR)
LATER = T0 + HOUR


def bursts(
    reason: Reason | None, at: float = LATER, one: JobView = ONE, **tables: Any
) -> bool:
    """Ask about one job, on which the last tick has decided so."""
    offers = tables.pop("offers", (offer(),))
    seen = world(view(one), local=offers)
    worth = worth_for_job(Records(), seen, settings(**(tables or FRUGAL)), T0)
    decisions = {} if reason is None else {one.id: Decision(reason, {})}
    return assumed_to_burst(worth, {one.id: one}, decisions)(one.id, at)


@pytest.mark.parametrize("reason", [Reason.NOT_WORTH, Reason.NOT_FORECAST])
def test_a_job_that_only_waits_for_its_forecast_bursts_if_that_pays(reason):
    assert not bursts(reason, T0 + 700)
    assert bursts(reason, T0 + 800)
    assert is_judged(Decision(reason, {}))


@pytest.mark.parametrize("reason", [Reason.TURNED_DOWN, Reason.RESERVED])
def test_one_for_which_there_are_no_nodes_stays_and_is_judged_by_its_place(reason):
    assert not bursts(reason)
    assert is_judged(Decision(reason, {}))


@pytest.mark.parametrize("reason", [None, Reason.LOCAL, Reason.OWN_FIRST])
def test_others_stay_and_are_not_judged_by_this_forecast(reason):
    assert not bursts(reason)
    assert not is_judged(Decision(reason, {}) if reason else None)


def test_a_burst_does_not_pay_where_there_can_be_none_or_no_rule_asks() -> None:
    def pays(one: JobView = ONE, **tables: Any) -> bool:
        return bursts(Reason.NOT_WORTH, one=one, **tables)

    assert pays(**FRUGAL)
    assert not pays(**FRUGAL, offers=())
    assert not pays(plan={"worth": 0})
    assert not pays(policy=[{"worth": 0, "wait": "1m"}])
    unreadable = job(1, None, duration=HOUR)
    assert not pays(unreadable, **FRUGAL)
