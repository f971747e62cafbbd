# SPDX-License-Identifier: MIT
"""Sums of what was settled and reserved, whichever way they are asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.core.money.cost_report import DIMENSIONS, CostReport
from burst.core.money.ledger import OTHERS, Costs, Payer, Share
from burst.core.money.money import Money
from burst.core.money.periods import Period, day_of, groups_of
from burst.core.records import Records
from burst.model.jobid import JobId, format_f58
from tests.builders import but
from tests.core.money.budgets import ANN, BEN, NOON, entry, settled_burst, units

DAY = 86400.0


def burst(number, made=NOON, shares=((ANN, 1),), **costs):
    costs = costs or {"work": units(3), "idle": units(1)}
    paid = tuple(Share(payer, JobId(job), 1.0) for payer, job in shares)
    name = f"burst-0-{number:06}"
    return settled_burst(name, made, costs=Costs(**costs), shares=paid)


def records(*settled, entries=()):
    periods: dict[str, Period] = {}
    for each in settled:
        day = day_of(each.made)
        periods[day] = periods.get(day, Period()).plus(groups_of(each), 1)
    return Records(
        settled={each.burst: each for each in settled},
        periods=periods,
        entries={each.burst: each for each in entries},
    )


def named(rows):
    return {row["name"]: row["settled"] + row["reserved"] for row in rows}


def test_months_tell_what_was_wasted_and_what_is_reserved():
    known = records(burst(1), burst(2, NOON - 30 * DAY), entries=[entry(5)])
    october, november = CostReport(known).months()
    assert october["month"] == "2026-10"
    assert november == {
        "month": "2026-11",
        "settled": 4.0,
        "work": 3.0,
        "wasted": 1.0,
        "idle": 1.0,
        "boot": 0.0,
        "teardown": 0.0,
        "never_joined": 0.0,
        "reserved": 5.0,
    }
    assert CostReport(known, "2026-11-01").months() == [november]
    assert CostReport(known, "2026-11-23").months() == []
    assert CostReport(known, "2026-11-23").rows("job") == []


def test_a_month_that_was_merged_counts_from_any_of_its_days():
    known = but(Records(), periods={"2026-10": Period(tuple(groups_of(burst(1))), 1)})
    late = CostReport(known, "2026-10-31")
    assert late.months()[0]["settled"] == 4.0
    assert late.begins == "2026-10-01"
    for since in ("", "2026-09-30", "2026-11-01"):
        assert CostReport(known, since).begins == since
    assert CostReport(known, "2026-11-01").months() == []


@pytest.mark.parametrize(
    ("by", "sums"),
    [
        ("user", {"1": 7.0, "2": 2.0, "others": 4.0}),
        ("bank", {"physics": 7.0, "maths": 2.0, "others": 4.0}),
        ("queue", {"gpu": 7.0, "-": 2.0, "others": 4.0}),
        ("rule", {"-": 9.0, "others": 4.0}),
        ("job", {format_f58(JobId(8)): 2.0, format_f58(JobId(9)): 6.0, "-": 5.0}),
    ],
)
def test_a_row_for_each(by, sums):
    known = records(
        burst(1, shares=((ANN, 8), (BEN, 9))),
        burst(2, shares=((OTHERS, 9),)),
        entries=[entry(5)],
    )
    assert named(CostReport(known).rows(by)) == sums


def test_the_dearest_comes_first():
    known = records(burst(1), entries=[entry(5, BEN, "kube")])
    names = [row["name"] for row in CostReport(known).rows("provider")]
    assert names == ["kube", "gke"]


def test_the_last_price_of_each_offer_is_told_with_its_source():
    new = but(burst(2), price=units(2.5), priced_by="site", reclaimed=True)
    old = burst(1, NOON - DAY), burst(3, NOON - DAY)
    known = records(*old, new, entries=[entry(1, provider="kube")])
    gke, kube = CostReport(known).prices()
    assert (gke["offer"], gke["price"], gke["from"]) == ("gke/n2", 2.5, "site")
    assert (gke["fee"], gke["ended"], gke["reclaimed"]) == (0.0, 3, 1)
    assert (kube["offer"], kube["price"], kube["from"]) == ("kube/n2", 1.0, "offer")
    assert (kube["fee"], kube["ended"], kube["reclaimed"]) == (0.0, 0, 0)
    assert CostReport(known, "2026-11-23").prices() == []


def test_a_user_sees_his_own_part():
    known = records(burst(1, shares=((ANN, 8), (BEN, 9))), entries=[entry(5)])
    report = CostReport(known, userid=2)
    assert named(report.rows("user")) == {"2": 2.0}
    assert named(CostReport(known, "2026-11-23", 2).rows("user")) == {}
    assert named(report.rows("job")) == {format_f58(JobId(9)): 2.0}
    assert [m["settled"] + m["reserved"] for m in report.months()] == [2.0]


PAYERS = st.builds(
    Payer,
    userid=st.none() | st.integers(-1, 3),
    bank=st.sampled_from(["", "physics"]),
    rule=st.sampled_from(["", "default"]),
)
MONEY = st.integers(0, 10**9).map(Money)
BURSTS = st.lists(
    st.builds(
        burst,
        number=st.integers(0, 10**6),
        made=st.floats(NOON - 35 * DAY, NOON),
        shares=st.lists(st.tuples(PAYERS, st.integers(1, 5)), min_size=1, max_size=4),
        work=MONEY,
        boot=MONEY,
        never_joined=MONEY,
    ),
    max_size=6,
    unique_by=lambda each: each.burst,
)


@given(BURSTS)
def test_every_way_of_asking_has_the_same_sum(bursts):
    known = records(*bursts)
    total = sum(each.costs.total for each in bursts)
    report = CostReport(known)
    for rows in (report.months(), *map(report.rows, DIMENSIONS)):
        found = sum(round(row["settled"] * 1_000_000) for row in rows)
        assert found == total
        wasted = sum(round((row["settled"] - row["work"]) * 1e6) for row in rows)
        assert wasted == sum(round(row["wasted"] * 1e6) for row in rows)
