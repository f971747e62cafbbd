# SPDX-License-Identifier: MIT
"""Finds the rule of `[[policy]]` that decides on a job: the first that it fits."""

from __future__ import annotations

import datetime
import fnmatch
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from burst.config import PolicyMatch, PolicyRule
from burst.config.intervals import (
    DAY_MINUTES,
    WEEK_MINUTES,
    Interval,
    parse_durations,
    parse_hours,
    parse_nodes,
)
from burst.config.policy import as_tuple
from burst.errors import JobspecError
from burst.model.request import (
    parse_attributes,
    parse_bank,
    parse_duration,
    parse_name,
    parse_queue,
)

_NONE: Mapping[str, str] = MappingProxyType({})
_NO_IDS: Mapping[str, int] = MappingProxyType({})
NOT_SET = ("", "0", "false")
"""Values with which an attribute counts as not set."""


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a job that rules may compare."""

    userid: int | None = None
    user: str = ""
    """Name of its user; empty if only the number is known."""
    queue: str = ""
    bank: str = ""
    name: str = ""
    attributes: Mapping[str, str] = _NONE
    """By dotted name below `attributes.system`, as `parse_attributes` returns them."""
    nodes: int = 1
    """How many nodes it needs."""
    duration: float = 0.0
    """Its time limit in seconds, 0 for none."""


_Test = Callable[[JobFacts], bool]


class MatchTerms(msgspec.Struct, frozen=True, kw_only=True):
    """A PolicyMatch, ready to be compared; None where every job fits."""

    queues: frozenset[str] | None
    banks: frozenset[str] | None
    nodes: Interval | None
    duration: Interval | None
    userids: frozenset[int] | None
    """Users by number, including those whose name is known on this host."""
    users: frozenset[str] | None
    """Users by name; None exactly where `userids` is."""
    attributes: frozenset[tuple[str, str | None]] | None
    """Dotted names, each with the value that is asked for, None for any that is set."""
    names: tuple[str, ...] | None
    """Patterns of names of jobs."""
    hours: int | None
    """Minutes of the week as bits (`burst.config.intervals`)."""


class RuleSet:
    """Rules in their order, ready to be compared with many jobs."""

    def __init__(
        self,
        rules: Sequence[PolicyRule],
        userids: Mapping[str, int] = _NO_IDS,
    ) -> None:
        """`rules` end with one for all jobs, as those of `Settings.rules` do.

        `userids` are the numbers of users that rules name.
        """
        self.userids = userids
        self.terms = [(rule, read_match(rule.match, userids)) for rule in rules]
        """Each rule, and what it compares."""
        allowed = [terms for _, terms in self.terms]
        self._tests = [_tests(terms) for terms in allowed]
        self.by_hours = any(terms.hours is not None for terms in allowed)
        """Whether some rule has hours, so that `find` depends on the time."""
        self.leaves_all = len(rules) == 1 and not rules[0].worth
        """Whether each job that must wait bursts, as there is only the default rule."""
        self._open_at = -math.inf
        self._open = (1 << len(rules)) - 1

    def open_at(self, now: float) -> int:
        """Return the rules that are within their hours at that time, as bits."""
        if self.by_hours and now != self._open_at:
            self._open_at, self._open = now, self._open_in(minute_of_week(now))
        return self._open

    def next_change(self, now: float) -> float:
        """Return when other rules will be within their hours; math.inf for never."""
        if self.by_hours:
            open_now = self.open_at(now)
            # Each minute is looked at, as clocks are set forward and back.
            for minute in range(1, WEEK_MINUTES + 1):
                at = now - now % 60 + 60 * minute
                if self._open_in(minute_of_week(at)) != open_now:
                    return at
        return math.inf

    def _open_in(self, minute: int) -> int:
        return _bits(
            terms.hours is None or bool(terms.hours >> minute & 1)
            for _, terms in self.terms
        )

    def find(self, job: JobFacts, now: float) -> PolicyRule:
        """Return the first rule that a job fits at that time: it decides on the job."""
        open_now = self.open_at(now)
        for place, (rule, _) in enumerate(self.terms):
            if open_now >> place & 1 and all(test(job) for test in self._tests[place]):
                return rule
        raise AssertionError("the last rule matches all jobs")


def _bits(values: Iterable[bool]) -> int:
    return sum(1 << place for place, value in enumerate(values) if value)


def read_match(match: PolicyMatch, userids: Mapping[str, int] = _NO_IDS) -> MatchTerms:
    """Return what a match compares. It was checked when the settings were read."""
    users = None if match.user is None else as_tuple(match.user)
    names = frozenset(str(user) for user in users or () if not _is_number(user))
    numbers = {int(user) for user in users or () if _is_number(user)}
    hours = None
    if match.hours is not None:
        hours = 0
        for text in as_tuple(match.hours):
            hours |= parse_hours(text)
    return MatchTerms(
        queues=_words(match.queue),
        banks=_words(match.bank),
        nodes=None if match.nodes is None else parse_nodes(match.nodes),
        duration=None if match.duration is None else parse_durations(match.duration),
        userids=None
        if users is None
        else frozenset(numbers.union(userids[n] for n in names if n in userids)),
        users=None if users is None else names,
        attributes=None
        if match.attribute is None
        else frozenset(_attribute(text) for text in as_tuple(match.attribute)),
        names=None if match.name is None else as_tuple(match.name),
        hours=hours,
    )


def _is_number(user: str | int) -> bool:
    return isinstance(user, int) or user.isdecimal()


def _words(value: str | tuple[str, ...] | None) -> frozenset[str] | None:
    return None if value is None else frozenset(as_tuple(value))


def _attribute(text: str) -> tuple[str, str | None]:
    key, equals, value = text.partition("=")
    return key, value if equals else None


def _tests(terms: MatchTerms) -> list[_Test]:
    """Return what tells whether a job has what a match asks, except the hours."""
    queues, banks, users, ids = terms.queues, terms.banks, terms.users, terms.userids
    tests: list[_Test] = []
    if queues is not None:
        tests.append(lambda job: job.queue in queues)
    if banks is not None:
        tests.append(lambda job: job.bank in banks)
    if terms.nodes is not None:
        least, most = terms.nodes
        tests.append(lambda job: least <= job.nodes <= most)
    if terms.duration is not None:
        low, high = terms.duration
        tests.append(lambda job: low <= (job.duration or math.inf) <= high)
    if ids is not None and users is not None:
        tests.append(lambda job: job.userid in ids or job.user in users)
    if terms.attributes is not None:
        tests.append(_attribute_test(terms.attributes))
    if terms.names is not None:
        patterns = "|".join(fnmatch.translate(name) for name in terms.names)
        named = re.compile(patterns).match
        tests.append(lambda job: named(job.name) is not None)
    return tests


def _attribute_test(asked: frozenset[tuple[str, str | None]]) -> _Test:
    def has_one(job: JobFacts) -> bool:
        return any(
            job.attributes.get(key, "") not in NOT_SET
            if value is None
            else job.attributes.get(key) == value
            for key, value in asked
        )

    return has_one


def minute_of_week(now: float) -> int:
    """Return the minutes since Monday 0:00, by the clocks of this host's time zone."""
    local = datetime.datetime.fromtimestamp(now, datetime.UTC).astimezone()
    return local.weekday() * DAY_MINUTES + local.hour * 60 + local.minute


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
