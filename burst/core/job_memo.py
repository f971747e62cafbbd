# SPDX-License-Identifier: MIT
"""What a job's memo says of its burst: a word for a column, a sentence for a person.

Each memo is an event in the job's log, for ever. So a job is told when what is said of
it means something else, and not each time that the words change.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import msgspec

from burst.model.decision import Decision
from burst.model.reason import Reason

_LONGEST = 300
# Progress alone is told at most this often, in seconds.
_COUNTS_EVERY = 2.0
# Where only the provider's words on a burst that comes are others, at most this often.
_WORDS_EVERY = 10.0
# What only waits is told at once that it waits for something else, so many times; after
# that at most this often, and half as often each time. In seconds.
_AT_ONCE = 4
_SLOWER = 60.0
# New words for the same are told at most this often, in seconds.
_REWORDED_EVERY = 600.0

Memo = dict[str, str] | None


class LastMemo(msgspec.Struct, frozen=True, kw_only=True):
    """What a job was told last."""

    at: float
    memo: Memo
    meaning: Hashable
    turns: int = 0
    """How often it was told of another reason to wait."""
    dropped: int = 0
    """How often the lead had dropped the job's memos before."""


def memo(verdict: Decision) -> Memo:
    """Return the memo for a pending job; None for one that needs none."""
    word = verdict.memo_word()
    return None if word is None else {"state": word, "why": _why(verdict)}


def meaning(verdict: Decision) -> Hashable:
    """Return what a verdict says, without what others change by coming and going."""
    if not verdict.reason.about_job.refused:
        return verdict.reason, verdict.text()
    return verdict.reason, tuple(
        (refusal.offer, "" if refusal.reason.about_offer.passing else refusal.text())
        for refusal in verdict.refusals
    )


def memo_due_at(told: LastMemo | None, verdict: Decision, text: Memo) -> float:
    """Return from when on a job is to be told this; math.inf for never."""
    before = told.memo if told else None
    if told is None or before == text:
        return math.inf if before == text else -math.inf
    if before and text and _counts_on(before, text):
        same = before["state"] == text["state"]
        return told.at + (_WORDS_EVERY if same else _COUNTS_EVERY)
    if not (_waits(before) and _waits(text)):
        return -math.inf
    slower = _SLOWER * 2.0 ** min(told.turns - _AT_ONCE, 20)
    pause = slower if told.turns >= _AT_ONCE else 0.0
    if told.meaning == meaning(verdict):
        pause = max(pause, _REWORDED_EVERY)
    return told.at + pause


def next_last_memo(
    told: LastMemo | None, verdict: Decision, text: Memo, now: float, dropped: int
) -> LastMemo:
    """Return what a job was told last, once it is told this."""
    turns = told.turns if told else 0
    if told and _waits(told.memo) and _waits(text):
        turns += 1
    return LastMemo(
        at=now, memo=text, meaning=meaning(verdict), turns=turns, dropped=dropped
    )


def _waits(text: Memo) -> bool:
    """Tell whether a memo says of a job no more than that it waits, or nothing."""
    return text is None or text["state"] == "waiting"


def _counts_on(before: dict[str, str], after: dict[str, str]) -> bool:
    """Tell whether a memo only counts further than the one before."""
    counting, _, numbers = after["state"].partition(" ")
    return bool(numbers) and before["state"].partition(" ")[0] == counting


def _why(verdict: Decision) -> str:
    text = verdict.text()
    if verdict.reason is Reason.TURNED_DOWN:
        text += ": " + "; ".join(f"{r.offer} {r.text()}" for r in verdict.refusals)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
