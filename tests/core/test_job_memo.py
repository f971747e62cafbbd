# SPDX-License-Identifier: MIT
"""How often a job that waits is told of it."""

from __future__ import annotations

from burst.core import job_memo
from burst.model.decision import Decision, OfferRejection
from burst.model.reason import Reason
from tests.builders import T0

FULL = Decision(
    Reason.TURNED_DOWN,
    {},
    (
        OfferRejection(
            "a/nodes", Reason.OFFER_COOLDOWN, {"why": "had no capacity", "until": T0}
        ),
    ),
)
LATER = Decision(
    Reason.TURNED_DOWN,
    {},
    (
        OfferRejection(
            "a/nodes",
            Reason.OFFER_COOLDOWN,
            {"why": "had no capacity", "until": T0 + 60},
        ),
    ),
)
OTHER = Decision(
    Reason.TURNED_DOWN, {}, (OfferRejection("a/nodes", Reason.NOT_JOINED),)
)


def test_new_words_for_the_same_are_told_later_than_another_reason() -> None:
    told = job_memo.next_last_memo(None, FULL, job_memo.memo(FULL), T0, 0)

    assert job_memo.memo_due_at(told, LATER, job_memo.memo(LATER)) == T0 + 600.0
    assert job_memo.memo_due_at(told, OTHER, job_memo.memo(OTHER)) == T0
