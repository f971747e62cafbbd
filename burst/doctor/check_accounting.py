# SPDX-License-Identifier: MIT
"""Checks whether limits of flux-accounting work with the intake mode.

Its priority plugin (0.60) counts a waiting job (state SCHED) again at each change of
urgency or queue, and subtracts only one when the job starts; it refuses to move a job
into a queue that its user may not use (`sched_cb`, `run_cb` and `update_queue_cb` in
src/plugins/mf_priority.cpp).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from burst.config import IntakeSettings
from burst.doctor.facts import ReadFailure
from burst.model.accounting import UNLIMITED, AccountingFacts, QueueLimits
from burst.model.banks import Associations
from burst.model.finding import Finding, note, ok, wrong

# How many associations or queues a message names at most.
_NAMED = 3


def check_accounting(
    answer: Associations | ReadFailure | None, intake: IntakeSettings
) -> list[Finding]:
    """Check limits and queues; no findings if flux-accounting does not run."""
    if isinstance(answer, ReadFailure):
        return [
            note(
                f"flux-accounting cannot be asked: {answer.what}",
                answer.advice or "banks are not verified until it answers",
            )
        ]
    if answer is None:
        return []
    facts = answer.facts or AccountingFacts()
    found = [*_check_waiting_limits(facts, intake), *_check_queues(facts, intake)]
    return found or [ok(f"limits of flux-accounting suit mode {intake.mode}")]


def _check_waiting_limits(
    facts: AccountingFacts, intake: IntakeSettings
) -> Iterator[Finding]:
    """Find limits on waiting jobs that are used up by holding or moving jobs."""
    if intake.mode == "scheduler":
        return
    limited = [
        f"max_sched_jobs of {_describe(key)}"
        for key, limits in sorted(facts.associations.items())
        if limits.max_sched_jobs < UNLIMITED
    ]
    limited += [
        f"{field} of queue {queue}"
        for queue, limits in sorted(facts.queues.items())
        for field in QueueLimits.__struct_fields__
        if field.startswith("max_sched_") and getattr(limits, field) < UNLIMITED
    ]
    if limited:
        yield wrong(
            f"in mode {intake.mode}, waiting jobs use up limits of flux-accounting,"
            f" which counts a job again each time it is changed, until users can start"
            f" none: {_first(limited)}",
            'set [intake] mode = "scheduler", or set no max_sched limits',
        )


def _check_queues(facts: AccountingFacts, intake: IntakeSettings) -> Iterator[Finding]:
    """Find associations that may not use the queues into which jobs are moved."""
    if intake.mode != "queue":
        return
    for queue in (intake.queue, intake.ready):
        # The plugin lets all users use a queue that it does not know.
        if queue not in facts.queues:
            continue
        lacking = [
            _describe(key)
            for key, limits in sorted(facts.associations.items())
            if limits.queues is not None and queue not in limits.queues
        ]
        if lacking:
            yield note(
                f"flux-accounting keeps these out of queue {queue}: {_first(lacking)}",
                "users who burst need both queues:"
                f" flux account edit-user NAME --queues=...,{intake.queue},"
                f"{intake.ready}",
            )


def _describe(association: tuple[int, str]) -> str:
    user, bank = association
    return f"UID {user} in bank {bank}"


def _first(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    named = ", ".join(names[:_NAMED])
    return f"{named} and {more} more" if more > 0 else named
