# SPDX-License-Identifier: MIT
"""The numbers that rules may ask about, by their dotted names.

`count.GROUP.finished`, `.success`, `.failed`; `mean.GROUP-duration` and
`mean.GROUP-pending`, and the same with `variance`, `iqr`, `mad`, `min`, `max`;
`nodes.node_free_count` and the other keys of `nodes`, `queue.STATE`, `waiting`,
`metrics.elapsed`, `metrics.spent`. GROUP `all` is all jobs of the member.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from burst_ensemble.algorithm import JobTally, MemberView

_COUNTS = ("finished", "success", "failed")
_SPREADS = ("mean", "variance", "iqr", "mad", "min", "max")
_OF_SPREAD = {"duration", "pending"}
_ALL = "all"
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
    """Return comparison and number of "> 5". A number alone is reached or passed: a
    count may jump over it between two checks. Raises ValueError.
    """
    found = _WHEN.fullmatch(str(text).strip())
    if not found:
        raise ValueError(f'not a comparison: {text!r} (such as 3, "> 5", "<= 0.5")')
    return found[1] or "", float(found[2])


def holds(when: When, value: float) -> bool:
    """Whether a comparison holds of a value."""
    sign, number = when
    return _COMPARE[sign](value, number)


def metric_names(view: MemberView) -> list[str]:
    """Return the names of all metrics that a member has."""
    groups = [*(group.name for group in view.jobs), _ALL]
    return [
        *(f"count.{group}.{each}" for group in groups for each in _COUNTS),
        *(
            f"{spread}.{group}-{what}"
            for spread in _SPREADS
            for group in groups
            for what in sorted(_OF_SPREAD)
        ),
        *_plain(view, 0.0),
    ]


def metric(view: MemberView, name: str, now: float) -> float | None:
    """Return the value of a metric, None while there is none, as no job has ended.

    Raises KeyError for a name that is not one of `metric_names`.
    """
    plain = _plain(view, now)
    if name in plain:
        return plain[name]
    kind, _, rest = name.partition(".")
    if kind == "count":
        group, _, which = rest.rpartition(".")
        if which in _COUNTS:
            return float(getattr(_tally(view, group), which))
    group, _, what = rest.rpartition("-")
    if kind not in _SPREADS or what not in _OF_SPREAD:
        raise KeyError(name)
    spread = getattr(_tally(view, group), what)
    return float(getattr(spread, kind)) if spread.count else None


def _tally(view: MemberView, name: str) -> JobTally:
    for group in view.jobs:
        if group.name == name:
            return group.tally
    if name == _ALL:
        return view.tally
    raise KeyError(name)


def _plain(view: MemberView, now: float) -> dict[str, float]:
    queue = view.queue
    return {
        "nodes.node_cores_free": view.cores_free,
        "nodes.node_cores_up": view.cores_up,
        "nodes.node_up_count": view.nodes_up,
        "nodes.node_free_count": view.nodes_free,
        **{
            f"queue.{state}": getattr(queue, state) for state in queue.__struct_fields__
        },
        "waiting": sum(view.waiting.values()),
        "metrics.elapsed": now - view.started,
        "metrics.spent": view.spent,
    }
