# SPDX-License-Identifier: MIT
"""How often a job that waits is told of it."""

import math
from typing import Any

from burst.core import job_memo
from burst.model.decision import Decision, OfferRejection
from burst.model.reason import Reason
from tests.builders import T0


def turned_down(reason: Reason, **facts: Any) -> Decision:
    return Decision(Reason.TURNED_DOWN, {}, (OfferRejection("a/nodes", reason, facts),))


def cooled_down(until: float) -> Decision:
    facts = {"why": "had no capacity", "provider": "a"}
    return turned_down(Reason.OFFER_COOLDOWN, until=until, **facts)


FULL, LATER = cooled_down(T0), cooled_down(T0 + 60)
OTHER = turned_down(Reason.NOT_JOINED)


def test_new_words_for_the_same_are_told_later_than_another_reason() -> None:
    told = job_memo.next_last_memo(None, FULL, job_memo.memo(FULL), T0, 0)

    assert job_memo.memo_due_at(told, LATER, job_memo.memo(LATER)) == T0 + 600.0
    assert job_memo.memo_due_at(told, OTHER, job_memo.memo(OTHER)) == T0


def test_no_text_is_made_of_what_a_job_was_told_before() -> None:
    def waits(number: int) -> Decision:
        return Decision(Reason.NOT_WORTH, {"comparison": number})

    told = job_memo.next_last_memo(None, waits(1), job_memo.memo(waits(1)), T0, 0)
    assert job_memo.memo_not_before(told, waits(2)) == T0 + 600.0
    # Another reason is told at once; of refusals the text says whether it is one.
    assert job_memo.memo_not_before(told, Decision(Reason.NO_SLOTS)) == -math.inf
    assert job_memo.memo_not_before(told, FULL) == -math.inf
    assert job_memo.memo_not_before(None, waits(2)) == -math.inf
    helped = Decision(Reason.ASSIGNED, {"burst": "b"})
    given = job_memo.next_last_memo(None, helped, job_memo.memo(helped), T0, 0)
    assert job_memo.memo_not_before(given, waits(1)) == -math.inf


def test_a_job_whose_forecast_is_lost_is_told_nothing_else_meanwhile() -> None:
    lost = Decision(Reason.NOT_FORECAST, {"rule": "r"})
    told = job_memo.next_last_memo(None, FULL, job_memo.memo(FULL), T0, 0)
    assert job_memo.memo_not_before(told, lost) == math.inf
    assert job_memo.memo_not_before(None, lost) == -math.inf


def test_what_stands_in_the_way_of_a_released_job_is_told_once_a_minute():
    facts = {"by": "", "ends": "", "ranks": "2"}
    first = Decision(Reason.NODES_TAKEN, {**facts, "jobs": "job f1"})
    then = Decision(Reason.NODES_TAKEN, {**facts, "jobs": "job f2"})
    told = job_memo.memo(first)
    last = job_memo.next_last_memo(None, first, told, T0, 0)
    assert job_memo.memo_due_at(last, then, job_memo.memo(then)) == T0 + 60.0
