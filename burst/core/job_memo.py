# SPDX-License-Identifier: MIT
"""The memo about the decision on a job: a word for a column of `flux jobs`, and why.

`burst.runtime.start_teller` writes when the job is expected to start.

Each memo is an event that stays in the job's eventlog. So a memo is written when the
decision changes its meaning, and not each time that its text changes.
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
# The shortest time between memos that differ only in a count of nodes, in seconds.
_COUNTS_EVERY = 2.0
_RELEASED = Reason.RELEASED.about_job.memo
# The shortest time between memos that differ only in the provider's message.
_WORDS_EVERY = 10.0
# A new reason to wait is written at once this many times; after that the shortest time
# between memos is this many seconds, and twice as long each time.
_AT_ONCE = 4
_SLOWER = 60.0
# The shortest time between texts with the same meaning, in seconds.
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
    """How often the lead had dropped the job's memos at that time."""


def memo(decision: Decision, *, guest: bool = False) -> Memo:
    """Return the memo for a pending job; None if it needs none.

    The memo of a guest's job has nothing that only the instance owner may read.
    """
    word = decision.memo_word()
    return None if word is None else {"state": word, "why": _why(decision, guest)}


def meaning(decision: Decision) -> Hashable:
    """Return the meaning of a decision, without the texts of passing refusals.

    Such refusals come and go with other jobs and bursts.
    """
    if not decision.reason.about_job.refused:
        return decision.reason, decision.text()
    return decision.reason, tuple(
        (refusal.offer, "" if refusal.reason.about_offer.passing else refusal.text())
        for refusal in decision.refusals
    )


def memo_not_before(last: LastMemo | None, decision: Decision) -> float:
    """Return the time before which no memo is due, whatever its text.

    -math.inf means at once. This saves making the text: most new decisions have the
    meaning of the last memo. A waiting job whose forecast is missing gets no other memo
    meanwhile.
    """
    if last is None or not _waits(last.memo) or decision.refusals:
        return -math.inf
    if decision.reason is Reason.NOT_FORECAST:
        return math.inf
    same = decision.reason.about_job.refused and last.meaning == meaning(decision)
    return last.at + _REWORDED_EVERY if same else -math.inf


def memo_due_at(last: LastMemo | None, decision: Decision, text: Memo) -> float:
    """Return when the memo should be written; math.inf for never."""
    before = last.memo if last else None
    if last is None or before == text:
        return math.inf if before == text else -math.inf
    if before and text and _counts_on(before, text):
        same = before["state"] == text["state"]
        return last.at + (_WORDS_EVERY if same else _COUNTS_EVERY)
    if before and text and before["state"] == text["state"] == _RELEASED:
        # Which jobs have its nodes may change with each job that ends there.
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
    """Return the record of a job's last memo after this one is written."""
    waits = last.waits if last else 0
    if last and _waits(last.memo) and _waits(text):
        waits += 1
    return LastMemo(
        at=now, memo=text, meaning=meaning(decision), waits=waits, dropped=dropped
    )


def _waits(text: Memo) -> bool:
    """Tell whether a memo only says that the job waits, or there is no memo."""
    return text is None or text["state"] == "waiting"


def _counts_on(before: dict[str, str], after: dict[str, str]) -> bool:
    """Tell whether a memo counts nodes, with the same word as the memo before."""
    counting, _, numbers = after["state"].partition(" ")
    return bool(numbers) and before["state"].partition(" ")[0] == counting


def _why(decision: Decision, guest: bool) -> str:
    if decision.reason is Reason.RELEASED:
        # This is the last memo; it stays while the job runs.
        return f"{_STARTS}{decision.facts.get('ends', '')}"
    text = decision.guests_text() if guest else decision.text()
    if decision.reason is Reason.TURNED_DOWN:
        text += ": " + "; ".join(
            f"{r.offer}: {r.guests_text() if guest else r.text()}"
            for r in decision.refusals
        )
    if guest:
        text = without_jobs(text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
