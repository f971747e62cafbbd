# SPDX-License-Identifier: MIT
"""`[[budget]]` and `[prices]` of the settings file."""

from __future__ import annotations

import datetime
import math

import pytest

from burst.config import BudgetMatch, BudgetSettings, effective, load, parse
from burst.errors import ConfigError

GKE = {"gke": {"type": "gke"}}


def test_a_file_has_budgets_and_prices(tmp_path):
    path = tmp_path / "burst.toml"
    path.write_text(
        "[[budget]]\nlimit = 5000\n"
        '[[budget]]\nmatch = { user = "u1001", provider = ["gke"] }\n'
        'per = "week"\nlimit = 99.5\nwarn = 0.5\nuntil = 2026-12-31\n'
        '[prices]\n"gke.n2" = 2.5\ngke.n3 = 3\n'
        '[providers.gke]\ntype = "gke"\n'
    )

    settings = load(path)

    assert settings.budget == (
        BudgetSettings(limit=5000),
        BudgetSettings(
            limit=99.5,
            match=BudgetMatch(user="u1001", provider=("gke",)),
            per="week",
            warn=0.5,
            until=datetime.date(2026, 12, 31),
        ),
    )
    assert settings.prices == {"gke.n2": 2.5, "gke.n3": 3.0}
    assert [str(budget) for budget in settings.budget] == [
        "everything, per month",
        "user u1001, provider gke, per week",
    ]


@pytest.mark.parametrize(
    ("tables", "text"),
    [
        ({"budget": 3}, "x: budget: expected tables; write [[budget]]"),
        ({"budget": [3]}, "x: budget 1: expected a table; write [[budget]]"),
        (
            {"budget": [{}]},
            "x: budget 1: limit is missing; set limit (in the unit of the prices)",
        ),
        (
            {"budget": [{"limit": 1, "math": {}}]},
            "x: budget 1: math: no such key; did you mean match?",
        ),
        (
            {"budget": [{"limit": 1, "match": {"usr": "a"}}]},
            "x: budget 1: match.usr: no such key; did you mean user?",
        ),
        (
            {"budget": [{"limit": 1, "per": "year"}]},
            "x: budget 1: per: unknown value 'year'; it is one of"
            ' "day", "week", "month"',
        ),
        (
            {"budget": [{"limit": -1}]},
            "x: budget 1: limit: -1.0 is out of range; from 0 to 1e12; 0 has nothing"
            " bought that the budget matches, and what is to have no bound needs no"
            " budget",
        ),
        (
            {"budget": [{"limit": 1, "warn": 80}]},
            "x: budget 1: warn: 80.0 is out of range; it is a part of the limit, such"
            " as 0.8; 1 warns at the limit only",
        ),
        (
            {"budget": [{"limit": 1, "match": {"bank": ""}}]},
            "x: budget 1: match.bank: is empty; leave the key out",
        ),
        (
            {"budget": [{"limit": 1, "match": {"user": []}}]},
            "x: budget 1: match.user: is empty; leave the key out",
        ),
        (
            {"budget": [{"limit": 1, "match": {"queue": ["a", ""]}}]},
            "x: budget 1: match.queue: is empty; leave the key out",
        ),
        (
            {"budget": [{"limit": math.nan}]},
            "x: budget 1: limit: nan is out of range; from 0 to 1e12; 0 has nothing"
            " bought that the budget matches, and what is to have no bound needs no"
            " budget",
        ),
        (
            {"budget": [{"limit": 1e13}]},
            "x: budget 1: limit: 10000000000000.0 is out of range; from 0 to 1e12; 0"
            " has nothing bought that the budget matches, and what is to have no bound"
            " needs no budget",
        ),
        (
            {"budget": [{"limit": 1, "until": "yesterday"}]},
            "x: budget 1: until: expected a date such as 2026-12-31",
        ),
        (
            {"budget": [{"limit": 1, "warn": -1}]},
            "x: budget 1: warn: -1.0 is out of range; it is a part of the limit, such"
            " as 0.8; 1 warns at the limit only",
        ),
        (
            {"budget": [{"limit": 1, "match": {"provider": "gce"}}]},
            "x: budget 1: match.provider: there is no provider gce; the settings have"
            " gke",
        ),
        (
            {"budget": [{"limit": 1}, {"limit": 2}]},
            "x: budget 2: is for the same as an earlier one: everything, per month;"
            " the lower limit would hold; remove the other",
        ),
        ({"prices": 3}, "x: prices: expected a table; write [prices]"),
        (
            {"prices": {"n2": 3}},
            'x: prices.n2: names no offer; such as "gke.n2" = 2.5',
        ),
        (
            {"prices": {"gce.n2": 3}},
            "x: prices.gce.n2: there is no provider gce; the settings have gke",
        ),
        (
            {"prices": {"gke.n2": "3"}},
            'x: prices.gke.n2: expected a number; such as "gke.n2" = 2.5',
        ),
        (
            {"prices": {"gke": {"n2": -1}}},
            "x: prices.gke.n2: -1 is out of range; from 0 to 1e12",
        ),
    ],
)
def test_a_wrong_budget_or_price_is_told_where_and_what_would_be_right(tables, text):
    with pytest.raises(ConfigError) as caught:
        parse({**tables, "providers": GKE}, "x")

    assert str(caught.value) == text


def test_effective_budgets_say_where_they_come_from():
    tables = {
        "budget": [{"limit": 10, "match": {"bank": "physics"}}],
        "prices": {"gke.n2": 2.5},
        "providers": GKE,
    }

    listed = {
        key: (value, source)
        for key, value, source in effective(parse(tables, "f"), tables, "f")
    }

    assert listed["budget.1.limit"] == (10.0, "f")
    assert listed["budget.1.match.bank"] == ("physics", "f")
    assert listed["budget.1.per"] == ("month", "default")
    assert listed["prices.gke.n2"] == (2.5, "f")
