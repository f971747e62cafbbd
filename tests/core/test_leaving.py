# SPDX-License-Identifier: MIT
"""Which jobs leave the line for own nodes, as a forecast asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from burst.core.records import Records
from burst.core.select.job_policy import policy_for_job
from burst.core.select.leaving import PLACED_WITHIN_S, Leaving, stay_after_all
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import JobView
from burst.model.reason import Reason
from tests.builders import T0, job, offer, settings, view, whole, world

HOUR = 3600.0
FRUGAL: dict[str, Any] = {"plan": {"worth": 0.1}}
# Two nodes for an hour: a burst pays from 12.2 minutes on.
ONE = job(1, whole(2), duration=HOUR)
LATER = T0 + HOUR


def leaving(
    reason: Reason | None,
    one: JobView = ONE,
    left: Mapping[JobId, float] | None = None,
    now: float = T0,
    **tables: Any,
) -> Leaving:
    """Ask about one job, on which the last tick has decided so."""
    offers = tables.pop("offers", (offer(),))
    seen = world(view(one), local=offers)
    policy = policy_for_job(Records(), seen, settings(**(tables or FRUGAL)), now)
    decisions = {} if reason is None else {one.id: Decision(reason, {})}
    return Leaving(policy, {one.id: one}, decisions, left or {}, now)


@pytest.mark.parametrize("reason", [Reason.NOT_WORTH, Reason.NOT_FORECAST])
def test_a_job_that_only_waits_for_its_forecast_leaves_if_a_burst_pays(
    reason: Reason,
) -> None:
    asked = leaving(reason)
    assert not asked.leaves(ONE.id, T0 + 700)
    assert asked.left == {}
    assert asked.leaves(ONE.id, T0 + 800)
    assert asked.left == {ONE.id: T0}
    assert asked.is_judged(ONE.id)


@pytest.mark.parametrize("reason", [Reason.TURNED_DOWN, Reason.RESERVED])
def test_one_that_the_planner_could_not_place_at_once_leaves_for_a_minute(
    reason: Reason,
) -> None:
    left = {ONE.id: T0, JobId(7): T0}
    soon = leaving(reason, left=left, now=T0 + PLACED_WITHIN_S)
    assert soon.leaves(ONE.id, LATER)
    assert not soon.leaves(ONE.id, T0 + PLACED_WITHIN_S)
    # Of jobs that wait no more nothing is remembered.
    assert soon.left == {ONE.id: T0}
    late = leaving(reason, left=left, now=T0 + PLACED_WITHIN_S + 1)
    assert not late.leaves(ONE.id, LATER)
    assert late.left == {}
    # It was refused before a forecast was asked for.
    assert not leaving(reason).leaves(ONE.id, LATER)
    assert soon.is_judged(ONE.id)


def test_what_was_refused_for_a_minute_stays_after_all() -> None:
    turned_down = {ONE.id: Decision(Reason.TURNED_DOWN, {})}
    coming = {ONE.id: Decision(Reason.COMING, {})}
    late = T0 + PLACED_WITHIN_S + 1
    assert stay_after_all({ONE.id: T0}, turned_down, late)
    assert not stay_after_all({ONE.id: T0}, turned_down, T0 + PLACED_WITHIN_S)
    assert not stay_after_all({ONE.id: T0}, coming, late)
    assert not stay_after_all({ONE.id: T0}, {}, late)
    not_worth = {ONE.id: Decision(Reason.NOT_WORTH, {})}
    assert not stay_after_all({ONE.id: T0}, not_worth, late)


@pytest.mark.parametrize("reason", [None, Reason.LOCAL, Reason.OWN_FIRST])
def test_others_stay_and_are_not_judged_by_this_forecast(
    reason: Reason | None,
) -> None:
    asked = leaving(reason, left={ONE.id: T0})
    assert not asked.leaves(ONE.id, LATER)
    assert not asked.is_judged(ONE.id)


def test_a_burst_does_not_pay_where_there_can_be_none_or_no_rule_asks() -> None:
    def pays(one: JobView = ONE, **tables: Any) -> bool:
        return leaving(Reason.NOT_WORTH, one, **tables).leaves(ONE.id, LATER)

    assert pays(**FRUGAL)
    assert not pays(**FRUGAL, offers=())
    assert not pays(plan={"worth": 0})
    assert not pays(policy=[{"worth": 0, "wait": "1m"}])
    unreadable = job(1, None, duration=HOUR)
    assert not pays(unreadable, **FRUGAL)
