# SPDX-License-Identifier: MIT
"""`[[budget]]` and `[prices]` of the settings file."""

from __future__ import annotations

import datetime
import tomllib

import pytest

from burst.config import BudgetMatch, BudgetSettings, load, parse
from burst.errors import ConfigError

GKE = {"gke": {"type": "gke"}}


def test_a_file_has_budgets_and_prices(tmp_path):
    path = tmp_path / "burst.toml"
    path.write_text(
        "[[budget]]\nlimit = 5000\n"
        '[[budget]]\nmatch = { user = "u1001", provider = ["gke"] }\n'
        'per = "week"\nlimit = 99.5\nuntil = 2026-12-31\n'
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
            until=datetime.date(2026, 12, 31),
        ),
    )
    assert settings.prices == {"gke.n2": 2.5, "gke.n3": 3.0}
    assert [str(budget) for budget in settings.budget] == [
        "everything, per month",
        "user u1001, provider gke, per week",
    ]


LIMITS = (
    "is out of range; from 0 to 1e12; with 0, nothing that the budget matches is"
    " bought; for no limit, remove the budget"
)
EMPTY = "is empty; leave the key out"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("math = {}", "no such key; did you mean match?"),
        ("match.usr = 'a'", "no such key; did you mean user?"),
        (
            "per = 'year'",
            'unknown value \'year\'; it is one of "day", "week", "month"',
        ),
        ("limit = -1", f"-1.0 {LIMITS}"),
        ("limit = nan", f"nan {LIMITS}"),
        ("limit = 1e13", f"10000000000000.0 {LIMITS}"),
        (
            "warn = 0.5",
            "is gone; remove it: the log and burst status warn at 80 % of the limit",
        ),
        ("match.bank = ''", EMPTY),
        ("match.user = []", EMPTY),
        ("match.queue = ['a', '']", EMPTY),
        ("until = 'yesterday'", "expected a date such as 2026-12-31"),
        (
            "match.provider = 'gce'",
            "there is no provider gce; the settings have gke",
        ),
    ],
)
def test_a_wrong_budget_is_told_where_and_what_would_be_right(text, told):
    key = text.partition(" = ")[0]
    budget = {"limit": 1, **tomllib.loads(text)}
    with pytest.raises(ConfigError) as caught:
        parse({"budget": [budget], "providers": GKE}, "x")

    assert str(caught.value) == f"x: budget 1: {key}: {told}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("budget = 3", "budget: expected tables; write [[budget]]"),
        ("budget = [3]", "budget 1: expected a table; write [[budget]]"),
        (
            "budget = [{}]",
            "budget 1: limit is missing; set limit (in the unit of the prices)",
        ),
        (
            "budget = [{limit = 1}, {limit = 2}]",
            "budget 2: matches the same as an earlier one: everything, per month; the"
            " lower limit would apply; remove the other",
        ),
        ("prices = 3", "prices: expected a table; write [prices]"),
        ("prices.n2 = 3", 'prices.n2: names no offer; such as "gke.n2" = 2.5'),
        (
            "prices.gce.n2 = 3",
            "prices.gce.n2: there is no provider gce; the settings have gke",
        ),
        (
            "prices.gke.n2 = '3'",
            'prices.gke.n2: expected a number; such as "gke.n2" = 2.5',
        ),
        (
            'prices."gke.n2" = 3\nprices.gke.n2 = 4',
            "prices.gke.n2: is there twice; remove one, quoted or not",
        ),
        ("prices.gke.n2 = -1", "prices.gke.n2: -1 is out of range; from 0 to 1e12"),
    ],
)
def test_wrong_budgets_and_prices_are_told_where(text, told):
    with pytest.raises(ConfigError) as caught:
        parse({**tomllib.loads(text), "providers": GKE}, "x")

    assert str(caught.value) == f"x: {told}"
