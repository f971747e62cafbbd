# SPDX-License-Identifier: MIT
"""What is tried on a trace: never, at once, a worth, or the rules of a file."""

from __future__ import annotations

import math
from typing import Protocol

import msgspec

from burst.config import PolicyRule
from burst.core.plan.eligible import why_unwanted
from burst.core.plan.offers import ProviderOffer
from burst.core.select.job_policy import narrowed
from burst.core.worth.rules import JobFacts, RuleSet
from burst.model.request import BurstPreferences
from burst.replay.sold_nodes import SoldNodes
from burst.replay.trace import Machine, TraceJob


class Asks(msgspec.Struct, frozen=True):
    """What a policy asks for before it buys nodes for one job."""

    worth: float
    """Hours saved for each node-hour; 0: it must wait; math.inf: never."""
    wait: float = 0.0
    """Seconds for which own nodes are tried first."""
    price: float | None = None
    """Of a node and hour that is bought; None where there is but one price."""
    boot: float | None = None
    """Seconds that it takes to come online; None for as long as any."""
    sold: ProviderOffer | None = None
    """The offer that is bought; None where none is known."""


class Policy(Protocol):
    """A name, and what is asked for each job."""

    @property
    def name(self) -> str:
        """As it is shown."""
        ...

    @property
    def forecasts(self) -> bool:
        """Whether it may ask for a worth, so that run times are to be remembered."""
        ...

    @property
    def by_hours(self) -> bool:
        """Whether what is asked for a job changes with the time."""
        ...

    def asks(self, job: TraceJob, now: float) -> Asks:
        """Return what is asked for a job at that time of the trace."""
        ...


class FixedWorth(msgspec.Struct, frozen=True):
    """The same worth for all jobs."""

    name: str
    worth: float

    @property
    def forecasts(self) -> bool:
        """Whether a forecast is needed: neither for never nor for at once."""
        return 0 < self.worth < math.inf

    @property
    def by_hours(self) -> bool:
        """Never."""
        return False

    def asks(self, job: TraceJob, now: float) -> Asks:  # noqa: ARG002 - of all jobs
        """Return the one worth."""
        return Asks(self.worth)


NEVER = FixedWorth("never", math.inf)
AT_ONCE = FixedWorth("at once", 0.0)


def worth_policy(worth: float) -> FixedWorth:
    """Return the policy of `--worth`."""
    return FixedWorth(f"worth {worth:g}", worth)


class FilePolicy:
    """The rules of a settings file, as the daemon reads them.

    All jobs of the trace count as burstable. Bought is the offer that the daemon would
    take first by `providers` and `max_price` of the rule. Where none is known, there is
    one price, and above `max_price` nothing is bought.
    """

    forecasts = True

    def __init__(
        self,
        name: str,
        rules: RuleSet,
        sold: SoldNodes,
        offset: float,
        machine: Machine,
    ) -> None:
        """`offset`: when the trace starts, in seconds since the epoch."""
        self.name = name
        self._used: set[str] = set()
        self.by_hours = any(terms.hours is not None for _, terms in rules.terms)
        self._rules = rules
        self._sold = sold
        self._first: dict[str, ProviderOffer | None] = {}
        self._offset = offset
        self._machine = machine

    def unused(self) -> list[str]:
        """Return the rules, but for the last, that took no job that was asked about."""
        names = (rule.name for rule, _ in self._rules.terms[:-1])
        return [name for name in names if name not in self._used]

    def asks(self, job: TraceJob, now: float) -> Asks:
        """Return what the rule that fits a job asks for."""
        facts = JobFacts(
            userid=job.userid,
            queue=job.queue,
            bank=job.bank,
            name=job.name,
            nodes=self._machine.nodes_for(job.cores),
            duration=job.limit,
            submitted=self._offset + job.submit,
        )
        rule = self._rules.find(facts, self._offset + now)
        self._used.add(rule.name)
        worth, wait = rule.worth or 0.0, rule.wait or 0.0
        if not self._sold.offers:
            dear = rule.max_price is not None and rule.max_price < self._sold.price
            return Asks(math.inf) if dear else Asks(worth, wait)
        if rule.name not in self._first:
            self._first[rule.name] = self._first_offer(rule)
        first = self._first[rule.name]
        if first is None:
            return Asks(math.inf)
        return Asks(
            worth=worth,
            wait=wait,
            price=first.offer.price,
            boot=first.offer.join_time or None,
            sold=first,
        )

    def _first_offer(self, rule: PolicyRule) -> ProviderOffer | None:
        """Return the offer that the daemon would try first for a job of a rule."""
        wish = narrowed(BurstPreferences(), rule)
        offers = self._sold.offers
        return next((o for o in offers if not why_unwanted(wish, o.terms)), None)
