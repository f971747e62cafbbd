# SPDX-License-Identifier: MIT
"""What a policy asks for."""

from __future__ import annotations

import math

import pytest

from burst.config.file import parse
from burst.core.worth.rules import RuleSet
from burst.replay.policies import AT_ONCE, NEVER, Asks, FilePolicy, worth_policy
from burst.replay.sold_nodes import SoldNodes
from burst.replay.trace import Machine, TraceJob

JOB = TraceJob(10.0, 60.0, 12, 100.0, userid=7, name="5", queue="2")


@pytest.mark.parametrize(
    ("policy", "asks", "forecasts"),
    [
        (NEVER, math.inf, False),
        (AT_ONCE, 0.0, False),
        (worth_policy(0.0), 0.0, False),
        (worth_policy(0.25), 0.25, True),
    ],
)
def test_a_fixed_worth(policy: object, asks: float, forecasts: bool) -> None:
    assert policy.asks(JOB, 20.0) == Asks(asks)  # type: ignore[attr-defined]
    assert policy.forecasts is forecasts  # type: ignore[attr-defined]


def test_the_rules_of_a_file() -> None:
    tables = {
        "plan": {"worth": 0.1},
        "policy": [
            {"match": {"user": 8}, "worth": 3.0},
            {"match": {"queue": "1"}, "max_price": 0.5, "worth": 0.0},
            {
                "match": {"nodes": "3", "duration": "<2m", "name": "5"},
                "wait": "90s",
            },
        ],
    }
    rules = RuleSet(parse(tables, "x").rules)
    policy = FilePolicy("x", rules, SoldNodes(1.0), 1e9, Machine(9, 4))

    def asks(**changes: object) -> Asks:
        fields = {name: getattr(JOB, name) for name in JOB.__struct_fields__}
        return policy.asks(TraceJob(**(fields | changes)), 20.0)

    assert asks() == Asks(0.1, 90.0)
    assert asks(userid=8) == Asks(3.0)
    assert asks(queue="1") == Asks(math.inf)  # a node costs 1
    assert asks(cores=13) == Asks(0.1)
