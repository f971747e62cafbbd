# SPDX-License-Identifier: MIT
"""What a job's memo says of the decision: a word for a column of `flux jobs`, and why.

When the job is expected to start is written by `burst.runtime.start_teller`.

Each memo is an event in the job's eventlog, for ever. So a memo is written when the
decision has another meaning, and not each time that its text changes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import msgspec

from burst.model.backoff import backoff
from burst.model.decision import Decision
from burst.model.jobid import without_jobs
from burst.model.reason import Reason

_LONGEST = 300
# A memo that only counts nodes further is written at most this often, in seconds.
_COUNTS_EVERY = 2.0
_RELEASED = Reason.RELEASED.about_job.memo
# One of which only the provider's message changed, at most this often.
_WORDS_EVERY = 10.0
# A job that waits for something else is told at once, so many times; after that at most
# this often, and half as often each time. In seconds.
_AT_ONCE = 4
_SLOWER = 60.0
# A new text of the same meaning is written at most this often, in seconds.
_REWORDED_EVERY = 600.0

_STARTS = "its nodes were online, and it was released for Flux to start it there"

Memo = dict[str, str] | None


class LastMemo(msgspec.Struct, frozen=True, kw_only=True):
    """The last memo of a job."""

    at: float
    memo: Memo
    meaning: Hashable
    waits: int = 0
    """How often its memo gave another reason to wait."""
    dropped: int = 0
    """How often the lead had dropped the job's memos by then."""


def memo(decision: Decision, *, guest: bool = False) -> Memo:
    """Return the memo for a pending job; None for one that needs none.

    That of a guest's job has nothing that only the instance owner is to read.
    """
    word = decision.memo_word()
    return None if word is None else {"state": word, "why": _why(decision, guest)}


def meaning(decision: Decision) -> Hashable:
    """Return what a decision means, without reasons that other jobs come and go by."""
    if not decision.reason.about_job.refused:
        return decision.reason, decision.text()
    return decision.reason, tuple(
        (refusal.offer, "" if refusal.reason.about_offer.passing else refusal.text())
        for refusal in decision.refusals
    )


def memo_not_before(last: LastMemo | None, decision: Decision) -> float:
    """Return before when no memo is due, whatever its text; -math.inf for at once.

    It spares making the text: most new decisions mean what the job was told before. One
    that waits and whose forecast is lost is told nothing else meanwhile.
    """
    if last is None or not _waits(last.memo) or decision.refusals:
        return -math.inf
    if decision.reason is Reason.NOT_FORECAST:
        return math.inf
    same = decision.reason.about_job.refused and last.meaning == meaning(decision)
    return last.at + _REWORDED_EVERY if same else -math.inf


def memo_due_at(last: LastMemo | None, decision: Decision, text: Memo) -> float:
    """Return when the memo is to be written; math.inf for never."""
    before = last.memo if last else None
    if last is None or before == text:
        return math.inf if before == text else -math.inf
    if before and text and _counts_on(before, text):
        same = before["state"] == text["state"]
        return last.at + (_WORDS_EVERY if same else _COUNTS_EVERY)
    if before and text and before["state"] == text["state"] == _RELEASED:
        # What has its nodes may change with each job that ends there.
        return last.at + _SLOWER
    if not (_waits(before) and _waits(text)):
        return -math.inf
    more = last.waits - _AT_ONCE + 1
    pause = backoff(_SLOWER, more) if more > 0 else 0.0
    if last.meaning == meaning(decision):
        pause = max(pause, _REWORDED_EVERY)
    return last.at + pause


def next_last_memo(
    last: LastMemo | None, decision: Decision, text: Memo, now: float, dropped: int
) -> LastMemo:
    """Return the last memo of a job, once this one is written."""
    waits = last.waits if last else 0
    if last and _waits(last.memo) and _waits(text):
        waits += 1
    return LastMemo(
        at=now, memo=text, meaning=meaning(decision), waits=waits, dropped=dropped
    )


def _waits(text: Memo) -> bool:
    """Tell whether a memo says only that the job waits, or there is none."""
    return text is None or text["state"] == "waiting"


def _counts_on(before: dict[str, str], after: dict[str, str]) -> bool:
    """Tell whether a memo differs from the one before in its count of nodes only."""
    counting, _, numbers = after["state"].partition(" ")
    return bool(numbers) and before["state"].partition(" ")[0] == counting


def _why(decision: Decision, guest: bool) -> str:
    if decision.reason is Reason.RELEASED:
        # It is the last memo, which stays as the job runs.
        return f"{_STARTS}{decision.facts.get('ends', '')}"
    text = decision.guests_text() if guest else decision.text()
    if decision.reason is Reason.TURNED_DOWN:
        text += ": " + "; ".join(
            f"{r.offer} {r.guests_text() if guest else r.text()}"
            for r in decision.refusals
        )
    if guest:
        text = without_jobs(text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
