# SPDX-License-Identifier: MIT
"""The part of a job's constraint that keeps it off lent nodes of others (RFC 31).

On an instance with guests, the frobnicator puts it in front of the constraint of each
burstable job, and only the daemon changes it:

    {"and": [{"or": [{"properties": ["^burst"]}, {"ranks": [IDSET]}]}, OWN]}

The job may run on ranks that are never lent, and on the lent ranks IDSET. In the
stopped queue of intake mode `queue`, where no job starts, the part is `{"or":
[{"properties": ["burst"]}]}`. With a constraint other than that of its queue, Flux does
not let the job's user move it (`constraints_match_check` in the job manager's queue.c);
and a scheduler that is shown the job does not deny it.

A user's own constraint is inside OWN, so the outermost such part is never a user's.
"""

from __future__ import annotations

from typing import Any

from burst.model.ranks import format_idset, parse_idset

LENT = "burst"
"""The property in R of all ranks that may be lent."""
_NEVER_LENT = {"properties": [f"^{LENT}"]}
_WAITING = {"or": [{"properties": [LENT]}]}
# The plugin `constraints` puts {"and": [..., QUEUE]} around the result of our plugin.
_DEEPEST = 2


def confine(constraint: Any, ranks: frozenset[int]) -> dict[str, Any]:
    """Return the constraint that lets a job run on own nodes and on these lent ranks.

    A confinement in the given constraint is replaced; all else is kept as it was.
    """
    lent = [{"ranks": [format_idset(ranks)]}] if ranks else []
    return _within({"or": [_NEVER_LENT, *lent]}, constraint)


def confine_waiting(constraint: Any) -> dict[str, Any]:
    """Return the constraint of a job for the queue in which no job starts."""
    return _within(_WAITING, constraint)


def split_confinement(constraint: Any) -> tuple[Any, frozenset[int] | None]:
    """Return a job's own constraint, and the lent ranks on which it may run.

    The ranks are None if the job is not confined. The own constraint is None if the job
    has none besides its confinement.
    """
    return _split(constraint, _DEEPEST)


def _within(part: dict[str, Any], constraint: Any) -> dict[str, Any]:
    own, _ = split_confinement(constraint)
    return {"and": [part, own] if own else [part]}


def _split(constraint: Any, depth: int) -> tuple[Any, frozenset[int] | None]:
    ranks = _ranks(constraint)
    if ranks is not None:
        return None, ranks
    parts = constraint.get("and") if isinstance(constraint, dict) else None
    if not depth or not isinstance(parts, list) or not parts or len(constraint) > 1:
        return constraint, None
    first, ranks = _split(parts[0], depth - 1)
    if ranks is None:
        return constraint, None
    left = [first, *parts[1:]] if first is not None else parts[1:]
    return ({"and": left} if len(left) > 1 else next(iter(left), None)), ranks


def _ranks(part: Any) -> frozenset[int] | None:
    """Return the lent ranks in a part of a constraint; None if it is not a confinement.

    A confinement has exactly the form in which this module writes it.
    """
    if part in (_WAITING, {"or": [_NEVER_LENT]}):
        return frozenset()
    try:
        (text,) = part["or"][1]["ranks"]
        ranks = parse_idset(text)
    except (ValueError, TypeError, LookupError, AttributeError):
        return None
    return ranks if part == {"or": [_NEVER_LENT, {"ranks": [text]}]} else None
