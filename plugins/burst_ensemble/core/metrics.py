# SPDX-License-Identifier: MIT
"""The metrics that rules may compare, by their dotted names.

`count.GROUP.finished`, `.success`, `.failed`; `mean.GROUP-duration` and
`mean.GROUP-pending`, and the same with `variance`, `iqr`, `mad`, `min`, `max`;
`nodes.node_free_count` and the other keys of `nodes`, `queue.STATE`, `waiting`,
`metrics.elapsed`, `metrics.spent`. GROUP `all` is all jobs of the member.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from burst_ensemble.algorithm import MemberView

_WHEN = re.compile(r"(<=|>=|==|=|<|>)?\s*(-?\d+(?:\.\d+)?)")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "==": operator.eq,
}

When = tuple[str, float]


def parse_when(text: str | float) -> When:
    """Return the comparison and the number of a text such as "> 5". A number alone
    means ">=": a count may jump over it between two checks. Raises ValueError.
    """
    found = _WHEN.fullmatch(str(text).strip())
    if not found:
        raise ValueError(f'not a comparison: {text!r} (such as 3, "> 5", "<= 0.5")')
    return found[1] or "", float(found[2])


def holds(when: When, value: float) -> bool:
    """Tell whether a comparison holds for a value."""
    sign, number = when
    return _COMPARE[sign](value, number)


def metrics(view: MemberView, now: float) -> dict[str, float | None]:
    """Return all metrics of a member by name; None for one without a value yet."""
    queue = view.queue
    found: dict[str, float | None] = {
        "nodes.node_cores_free": view.cores_free,
        "nodes.node_cores_up": view.cores_up,
        "nodes.node_up_count": view.nodes_up,
        "nodes.node_free_count": view.nodes_free,
        "waiting": sum(view.waiting.values()),
        "metrics.elapsed": now - view.started,
        "metrics.spent": view.spent,
    }
    found |= {f"queue.{each}": getattr(queue, each) for each in queue.__struct_fields__}
    tallies = {group.name: group.tally for group in reversed(view.jobs)}
    for name, tally in {"all": view.tally, **tallies}.items():
        for count in ("finished", "success", "failed"):
            found[f"count.{name}.{count}"] = getattr(tally, count)
        for what, spread in (("duration", tally.duration), ("pending", tally.pending)):
            for kind in ("mean", "variance", "iqr", "mad", "min", "max"):
                value = getattr(spread, kind) if spread.count else None
                found[f"{kind}.{name}-{what}"] = value
    return found
