# SPDX-License-Identifier: MIT
"""`[[policy]]`: the rules that decide when a job bursts, in the order of the file.

The first rule that matches a job decides when it bursts. A job that no rule matches has
the rule `default`, whose worth is `[plan] worth`.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from burst.config.convert import Seconds, Table, convert
from burst.config.intervals import parse_durations, parse_hours, parse_nodes
from burst.errors import ConfigError

DEFAULT_RULE = "default"
"""The name of the rule for all jobs that no rule of the file matches."""

Words = str | tuple[str, ...]
Users = str | int | tuple[str | int, ...]

MOST_WORTH = 1e6
"""The highest worth of a burst that a rule may ask for."""
_NEVER_EMPTY = ("user", "attribute", "name")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")


class PolicyMatch(Table, frozen=True):
    """`match`: the jobs that a rule is for. A job must match every key that is given.

    A key may be a list: then one of its values must match.
    """

    queue: Words | None = None
    """Queue of the job; "" for jobs of an instance without named queues."""
    nodes: str | int | None = None
    """How many nodes the job needs: 4, "1-8", "<4", "<=4", ">8", ">=8"."""
    user: Users | None = None
    """Who submitted the job, by name or by user id."""
    hours: Words | None = None
    """The time of the decision, in the time zone of the daemon's host: "Mo-Fr 8-18",
    "Sa,Su", "22-6". Hours that end before they begin end on the next day."""
    attribute: Words | None = None
    """An attribute under `attributes.system`, by its dotted name, that is neither
    false, 0 nor empty: "project"; or one with this value: "project=alpha"."""
    name: Words | None = None
    """The job's name, as a shell pattern: "train-*"."""
    duration: str | None = None
    """The job's time limit: "<2h", "<=2h", ">8h", ">=8h", "1h-8h". A job without a time
    limit is longer than any."""
    bank: Words | None = None
    """The bank that the job names (`attributes.system.bank`)."""


class PolicyRule(Table, frozen=True):
    """`[[policy]]`: what is decided about the jobs that the rule matches."""

    name: str = ""
    """The rule's name in `burst explain` and `burst cost`; default: `policy-N`, where N
    is its place in the file, from 1."""
    match: PolicyMatch = PolicyMatch()
    """The jobs that the rule is for; default: all."""
    worth: float | None = None
    """Make a burst if it saves at least this many hours for each node-hour that it
    buys; 0: for every job that must wait. Default: `[plan] worth`."""
    providers: tuple[str, ...] = ()
    """Use bursts of these providers only; default: of any."""
    max_price: float | None = None
    """The highest price per node-hour; default: any price."""
    wait: Seconds | None = None
    """Try own nodes for at least this long before a burst is made. Default: if own
    nodes are free, as long as the job's user says, or else 1m."""
    requeue: bool = False
    """Whether these jobs are run again, at most twice, if they lose a node of a burst
    and their user has not decided it (`--setattr=burst.requeue=...`). Off by default,
    as a job that is run again repeats what it did before it ended."""
    mark: bool = False
    """Whether these jobs may burst without `--setattr=burstable`. Off by default, as
    users know whether their jobs can run elsewhere."""

    retired: ClassVar[Mapping[str, str]] = {
        "race": "remove it: one burst is made, of the first available offer",
        "over_budget": "remove it: what would exceed a budget waits, and shows why",
    }


def parse_policy(
    tables: object, worth: float, providers: Sequence[str], where: str
) -> tuple[PolicyRule, ...]:
    """Return the rules of `[[policy]]`, each with a name and a worth.

    `providers` are the providers of the file; empty if the file has only rules, to try
    them out. Raises ConfigError.
    """
    if not isinstance(tables, Sequence) or isinstance(tables, str):
        raise ConfigError(f"{where}: policy: expected tables [[policy]]")
    rules: list[PolicyRule] = []
    for number, table in enumerate(tables, 1):
        at = f"{where}: policy {number}"
        if not isinstance(table, Mapping):
            raise ConfigError(f"{at}: expected a table", "write [[policy]]")
        rule = _named(convert(PolicyRule, table, at), number, rules, at)
        _check_match(rule.match, at)
        _check_rule(rule, providers, at)
        found = worth if rule.worth is None else rule.worth
        rules.append(msgspec.structs.replace(rule, worth=found))
    return tuple(rules)


def default_rule(worth: float) -> PolicyRule:
    """Return the rule for jobs that no rule of the file matches."""
    return PolicyRule(name=DEFAULT_RULE, worth=worth)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return the values of a key that may be one value or a list."""
    return value if isinstance(value, tuple) else (value,)


def _named(
    rule: PolicyRule, number: int, before: Sequence[PolicyRule], at: str
) -> PolicyRule:
    name = rule.name or f"policy-{number}"
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{at}: name: {name!r} is not a name for a rule",
            "use at most 63 letters, digits, _, - and .",
        )
    if name == DEFAULT_RULE or any(rule.name == name for rule in before):
        raise ConfigError(
            f"{at}: name: there is a rule {name} already", "give it another name"
        )
    return msgspec.structs.replace(rule, name=name)


def _check_match(match: PolicyMatch, at: str) -> None:
    """Raise ConfigError for a key that cannot be read, or that no job could match."""
    for key in match.__struct_fields__:
        value = getattr(match, key)
        if value == ():
            raise ConfigError(
                f"{at}: match.{key}: an empty list matches no job",
                f"name a {key}, or leave the key out to match all",
            )
        if key in _NEVER_EMPTY and "" in as_tuple(value):
            raise ConfigError(f"{at}: match.{key}: is empty", "leave the key out")
    readers = {"nodes": parse_nodes, "duration": parse_durations, "hours": parse_hours}
    for key, read in readers.items():
        value = getattr(match, key)
        for each in () if value is None else as_tuple(value):
            try:
                read(each)
            except ValueError as error:
                raise ConfigError(f"{at}: match.{key}: {error}") from None


def _check_rule(rule: PolicyRule, providers: Sequence[str], at: str) -> None:
    if rule.worth is not None and not 0 <= rule.worth <= MOST_WORTH:
        raise ConfigError(
            f"{at}: worth: {rule.worth} is out of range", f"from 0 to {MOST_WORTH:.0f}"
        )
    if rule.max_price is not None and not 0 <= rule.max_price < math.inf:
        raise ConfigError(
            f"{at}: max_price: {rule.max_price} is out of range", "at least 0"
        )
    if rule.wait is not None and math.isinf(rule.wait):
        raise ConfigError(
            f"{at}: wait: inf never ends", 'give a time that does, such as "5m"'
        )
    for name in rule.providers:
        if providers and name not in providers:
            close = difflib.get_close_matches(name, providers, 1)
            raise ConfigError(
                f"{at}: providers: there is no provider {name}",
                f"did you mean {close[0]}?"
                if close
                else f"the file has {', '.join(providers)}",
            )
