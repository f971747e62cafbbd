# SPDX-License-Identifier: MIT
"""What a job's memo says of its burst: a word for a column, a sentence for a person.

Both change only when something changed: each memo is an event in the job's log.
"""

from __future__ import annotations

from burst.model.reason import Reason, Verdict

_LONGEST = 300

# Reasons that need no memo: nothing of ours concerns the job.
_SILENT = {Reason.LOCAL, Reason.NOT_READY, Reason.USER_HOLD}
_WORDS = {
    Reason.PROPOSED: "requested",
    Reason.ASSIGNED: "assigned",
    Reason.RELEASED: "released",
    Reason.STUCK: "released",
    Reason.TOO_LARGE: "impossible",
    Reason.NEVER_FITS: "impossible",
    Reason.EXCLUDED: "impossible",
    Reason.OVER_LIMIT: "impossible",
    Reason.UNMOVABLE: "impossible",
    Reason.UNREADABLE: "unreadable",
}


def memo(verdict: Verdict) -> dict[str, str] | None:
    """Return the memo for a pending job; None for one that needs none."""
    if verdict.reason in _SILENT:
        return None
    if verdict.reason is Reason.COMING:
        facts = verdict.facts
        word = f"{facts['state']} {facts['online']}/{facts['nodes']}"
    elif verdict.reason is Reason.ELSEWHERE:
        word = f"isolated {verdict.facts['state']}"
    elif verdict.reason in {Reason.RAN, Reason.FELL}:
        word = str(verdict.facts["word"])
    else:
        word = _WORDS.get(verdict.reason, "waiting")
    return {"state": word, "why": _why(verdict)}


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
