# SPDX-License-Identifier: MIT
"""Tells by a jobspec if a rule with `mark` may take a job without the attribute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from burst.config import PolicyRule
from burst.core.worth.rules import JobFacts, RuleSet
from burst.errors import JobspecError
from burst.model.request import (
    parse_attributes,
    parse_bank,
    parse_duration,
    parse_name,
    parse_queue,
)

_OTHERS = PolicyRule(name="others", worth=0.0)


def marking(
    rules: Sequence[PolicyRule], userids: Mapping[str, int]
) -> Callable[[int, Mapping[str, Any]], bool] | None:
    """Return a function that tells whether a rule may mark a user's jobspec.

    None if no rule marks jobs. The function may say yes too often: each tick checks
    hours, the number of nodes, a user's default bank, and rules that come before.
    """
    wide = [
        msgspec.structs.replace(
            rule, match=msgspec.structs.replace(rule.match, hours=None, nodes=None)
        )
        for rule in rules
        if rule.mark
    ]
    if not wide:
        return None
    of_any_bank = [
        msgspec.structs.replace(
            rule, match=msgspec.structs.replace(rule.match, bank=None)
        )
        for rule in wide
    ]
    found = RuleSet([*wide, _OTHERS], userids)
    without_bank = RuleSet([*of_any_bank, _OTHERS], userids)

    def may_burst(userid: int, jobspec: Mapping[str, Any]) -> bool:
        try:
            facts = JobFacts(
                userid=userid,
                queue=parse_queue(jobspec),
                bank=parse_bank(jobspec),
                name=parse_name(jobspec),
                attributes=parse_attributes(jobspec),
                duration=parse_duration(jobspec),
            )
        except JobspecError:
            return False
        return (found if facts.bank else without_bank).find(facts, 0.0).mark

    return may_burst
