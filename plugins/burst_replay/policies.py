# SPDX-License-Identifier: MIT
"""The policies that are tried on a trace: never, at once, a worth, a file's rules."""

from __future__ import annotations

import math

import msgspec

from burst.config.policy import default_rule
from burst.core.select.job_rules import narrowed
from burst.core.worth.rules import JobFacts, RuleSet
from burst.model.request import BurstPreferences
from burst_replay.trace import TraceJob

_ANY = BurstPreferences()


class Asks(msgspec.Struct, frozen=True):
    """What a policy asks for before it buys nodes for a job."""

    worth: float
    """Hours saved for each node-hour; 0: it must wait; math.inf: never."""
    wait: float = 0.0
    """Seconds for which own nodes are tried first."""
    preferences: BurstPreferences = _ANY
    """The offers and bursts that the job may have, and the rule that says so."""


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
        self._asks: dict[str, Asks] = {}

    def unused(self) -> list[str]:
        """Return the rules, except the last, that no job of `asks` matched."""
        names = [rule.name for rule, _ in self.rules.terms[:-1]]
        return [name for name in names if name not in self._asks]

    def asks(self, job: TraceJob, nodes: int, now: float) -> Asks:
        """Return what the policy asks for a job that needs `nodes` bought nodes.

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
        if rule.name not in self._asks:
            worth, wait = rule.worth or 0.0, rule.wait or 0.0
            self._asks[rule.name] = Asks(worth, wait, narrowed(_ANY, rule))
        return self._asks[rule.name]


def worth_policy(worth: float, name: str = "") -> Policy:
    """Return the policy of `--worth`."""
    rules = RuleSet((default_rule(worth),))
    return Policy(name or f"worth {worth:g}", rules)


NEVER = worth_policy(math.inf, "never")
AT_ONCE = worth_policy(0.0, "at once")
