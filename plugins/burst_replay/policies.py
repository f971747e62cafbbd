# SPDX-License-Identifier: MIT
"""The policies that are tried on a trace: never, at once, a worth, a file's rules."""

from __future__ import annotations

import math

from burst.config import PolicyRule
from burst.config.policy import default_rule
from burst.core.jobs.rules import JobFacts, RuleSet
from burst_replay.trace import TraceJob


class Policy:
    """A name, and rules like the daemon's. All jobs of a trace may burst."""

    def __init__(self, name: str, rules: RuleSet) -> None:
        self.name = name
        self.rules = rules
        worths = {rule.worth or 0.0 for rule, _ in rules.terms}
        self.buys = worths != {math.inf}
        """Whether it may buy nodes."""
        self.forecasts = any(0 < worth < math.inf for worth in worths)
        """Whether it may ask for a worth, so that a history of run times is needed."""
        self._used: set[str] = set()

    def unused(self) -> list[str]:
        """Return the rules, except the last, that `rule` never returned."""
        names = [rule.name for rule, _ in self.rules.terms[:-1]]
        return [name for name in names if name not in self._used]

    def rule(self, job: TraceJob, nodes: int, now: float) -> PolicyRule:
        """Return the rule for a job that needs `nodes` bought nodes.

        `now` is in seconds since the epoch.
        """
        facts = JobFacts(
            userid=job.userid,
            queue=job.queue,
            bank=job.bank,
            name=job.name,
            attributes=job.attributes,
            nodes=nodes,
            duration=job.limit if job.limited else 0.0,
        )
        rule = self.rules.find(facts, now)
        self._used.add(rule.name)
        return rule


def worth_policy(worth: float, name: str = "") -> Policy:
    """Return the policy of `--worth`."""
    rules = RuleSet((default_rule(worth),))
    return Policy(name or f"worth {worth:g}", rules)


NEVER = worth_policy(math.inf, "never")
AT_ONCE = worth_policy(0.0, "at once")
