# SPDX-License-Identifier: MIT
"""What a job's memo says of its burst: a word for a column, a sentence for a person.

Both change only when something changed: each memo is an event in the job's log.
"""

from __future__ import annotations

from burst.model.reason import Reason, Verdict

_LONGEST = 300


def memo(verdict: Verdict) -> dict[str, str] | None:
    """Return the memo for a pending job; None for one that needs none."""
    word = verdict.memo_word()
    return None if word is None else {"state": word, "why": _why(verdict)}


def is_progress(before: dict[str, str] | None, after: dict[str, str] | None) -> bool:
    """Tell whether a memo only counts further than the one before."""
    if not before or not after:
        return False
    counting, _, numbers = after["state"].partition(" ")
    return bool(numbers) and before["state"].partition(" ")[0] == counting


def _why(verdict: Verdict) -> str:
    text = verdict.text()
    if verdict.reason is Reason.TURNED_DOWN:
        text += ": " + "; ".join(f"{r.offer} {r.text()}" for r in verdict.refusals)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
