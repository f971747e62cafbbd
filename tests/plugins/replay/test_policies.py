# SPDX-License-Identifier: MIT
"""What a policy asks for."""

from __future__ import annotations

import math

import pytest
from burst_replay.policies import AT_ONCE, NEVER, Policy, worth_policy
from burst_replay.trace import Machine, TraceJob

from burst.core.worth.rules import RuleSet
from tests.builders import settings

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
def test_a_fixed_worth(policy: Policy, asks: float, forecasts: bool) -> None:
    found = policy.asks(JOB, 20.0)
    assert (found.worth, found.wait, found.preferences.allowed) == (asks, 0.0, ())
    assert policy.forecasts is forecasts
    assert policy.unused() == []


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
    rules = RuleSet(settings(**tables).rules)
    policy = Policy("x", rules, Machine(9, 4), 1e9)

    def asks(**changes: object) -> tuple[float, float, float | None]:
        fields = {name: getattr(JOB, name) for name in JOB.__struct_fields__}
        found = policy.asks(TraceJob(**(fields | changes)), 20.0)
        return found.worth, found.wait, found.preferences.allowed_price

    assert asks() == (0.1, 90.0, None)
    assert asks(userid=8) == (3.0, 0.0, None)
    assert policy.unused() == ["policy-2"]
    assert asks(queue="1") == (0.0, 0.0, 0.5)
    assert asks(cores=13) == (0.1, 0.0, None)
    assert policy.unused() == []
