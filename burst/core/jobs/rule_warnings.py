# SPDX-License-Identifier: MIT
"""Rules that are allowed and yet may not be what their author meant.

None of these is an error: a site may have a rule for a queue that it makes tomorrow.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterator, Mapping

from burst.config import Settings
from burst.config.intervals import WHOLE_WEEK, Interval
from burst.config.policy import as_tuple
from burst.core.jobs.rules import NOT_SET, MatchTerms, RuleSet

_ALL_NUMBERS: Interval = (float("-inf"), float("inf"))
_WILD = frozenset("*?[")


def find_rule_warnings(
    settings: Settings,
    userids: Mapping[str, int] | None = None,
    queues: Collection[str] | None = None,
) -> Iterator[str]:
    """Yield a sentence about each such rule, with what to do.

    `userids` are the numbers of the users that rules name, `queues` the named queues of
    the lead; None if they are not known.
    """
    terms = RuleSet(settings.rules, userids or {}).terms
    for place, (rule, its) in enumerate(terms[:-1]):
        about = f"policy {rule.name}"
        earlier = next((r.name for r, other in terms[:place] if covers(other, its)), "")
        if earlier:
            yield (
                f"{about} takes no job, as {earlier} before it takes all of them: put"
                f" it before {earlier}, or remove it"
            )
        if userids is not None:
            for user in sorted((its.users or frozenset()).difference(userids)):
                yield f"{about} is for user {user}, whom this host does not know"
        if queues is not None:
            for queue in sorted((its.queues or frozenset()).difference(queues, {""})):
                there = ", ".join(sorted(queues)) or "none"
                yield f"{about} is for queue {queue}; the lead's queues are: {there}"
        if rule.mark and not settings.intake.any_job:
            yield (
                f"{about} marks jobs, but [intake] any_job is false: the frobnicator"
                " of burst setup keeps jobs without the attribute off lent nodes; set"
                " any_job = true and run burst setup again"
            )
    if settings.intake.mode == "queue" and any(rule.worth for rule, _ in terms):
        yield (
            "in [intake] mode queue, worth changes nothing for jobs in queue"
            f" {settings.intake.queue}: they can run on lent nodes only; choose mode"
            " hold or scheduler"
        )


def named_users(settings: Settings) -> set[str]:
    """Return the users that rules and budgets name, but for those given by number."""
    found = [rule.match.user for rule in settings.policy if rule.match.user is not None]
    found += [budget.match.user for budget in settings.budget]
    users = (str(user) for value in found for user in as_tuple(value))
    return {user for user in users if not user.isdecimal()}


def covers(earlier: MatchTerms, later: MatchTerms) -> bool:
    """Tell whether the earlier match takes every job that the later one would take.

    It may say no although it does, as patterns of names are not analysed.
    """
    return (
        _holds_all(earlier.queues, later.queues)
        and _holds_all(earlier.banks, later.banks)
        and _holds_all(earlier.userids, later.userids)
        and _holds_all(earlier.users, later.users)
        and _spans(earlier.nodes, later.nodes)
        and _spans(earlier.duration, later.duration)
        and _names_all(earlier.names, later.names)
        and _has_attributes(earlier, later)
        and not _hours(later) & ~_hours(earlier)
    )


def _holds_all(
    earlier: frozenset[str] | frozenset[int] | None,
    later: frozenset[str] | frozenset[int] | None,
) -> bool:
    return earlier is None or (later is not None and earlier >= later)


def _spans(earlier: Interval | None, later: Interval | None) -> bool:
    low, high = earlier or _ALL_NUMBERS
    least, most = later or _ALL_NUMBERS
    return low <= least and most <= high


def _hours(terms: MatchTerms) -> int:
    return WHOLE_WEEK if terms.hours is None else terms.hours


def _names_all(earlier: tuple[str, ...] | None, later: tuple[str, ...] | None) -> bool:
    """Tell whether each of the later patterns is one of the earlier, or fits one."""
    if earlier is None or "*" in earlier:
        return True
    return later is not None and all(
        name in earlier
        or (
            not _WILD.intersection(name)
            and any(fnmatch.fnmatchcase(name, pattern) for pattern in earlier)
        )
        for name in later
    )


def _has_attributes(earlier: MatchTerms, later: MatchTerms) -> bool:
    if earlier.attributes is None:
        return True
    asked = earlier.attributes
    return later.attributes is not None and all(
        (key, value) in asked
        or (value is not None and value not in NOT_SET and (key, None) in asked)
        for key, value in later.attributes
    )
