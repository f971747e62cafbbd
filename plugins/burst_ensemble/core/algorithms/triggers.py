# SPDX-License-Identifier: MIT
"""`triggers`: rules of a trigger and an action each, after ensemble-python.

A rule says: when this happens, do that. Events are read from totals, so that none is
lost or counted twice, however late the daemon looks or if it is started again.

The metrics that rules may compare: `count.GROUP.finished`, `.success`, `.failed`;
`mean.GROUP-duration` and `mean.GROUP-pending`, and the same with `variance`, `iqr`,
`mad`, `min`, `max`; `nodes.node_free_count` and the other keys of `nodes`,
`queue.STATE`, `waiting`, `metrics.elapsed`, `metrics.spent`. GROUP `all` is all jobs of
the member.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

import msgspec

from burst.config.convert import Table
from burst_ensemble.algorithm import MemberDecision, MemberView, Memory, OptionProblem
from burst_ensemble.config.source import choices
from burst_ensemble.core.job_rows import JobEvent

_START, _METRIC, _JOB = "start", "metric", "job-"
_ENDS = ("terminate", "end")
_SIZE = "nodes"
"""Key of the memory; those of rules are their numbers."""


class TriggerAction(Table, frozen=True):
    """The action of a rule."""

    name: Literal["submit", "grow", "shrink", "terminate", "end", "custom"]
    """What the rule does. `submit` submits as many jobs as their `count`. `terminate`
    and `end` mean the same."""
    label: str = ""
    """For `submit`: the name of the jobs; for `custom`: a command of `[custom]`."""
    value: Annotated[int, msgspec.Meta(ge=1)] = 1
    """For `grow` and `shrink`: by how many nodes."""
    repetitions: Annotated[int, msgspec.Meta(ge=1)] = 1
    """How often the action is done at most."""
    backoff: Annotated[int, msgspec.Meta(ge=0)] = 0
    """For how many checks the action is not repeated."""


class TriggerRule(Table, frozen=True):
    """A trigger and an action."""

    trigger: str
    """`start`: once; `metric`; or an event of a job: `job-submit`, `job-start`,
    `job-finish`, or `job-exception`, for a job that ended without being completed."""
    action: TriggerAction
    """What the rule does, as below."""
    name: str = ""
    """For `metric`: its name; for `job-`: the name of the jobs, default: any."""
    when: str | float | None = None
    """For `metric`: a comparison such as "> 5" or "<= 0.5"; a number alone: once the
    metric reaches it. Default: once the metric has a value."""


class TriggerOptions(Table, frozen=True):
    """The options of `triggers`."""

    rules: Annotated[tuple[TriggerRule, ...], msgspec.Meta(min_length=1, max_length=50)]
    """Each rule is evaluated at every check, in this order."""


class Triggers:
    """See the module's docstring."""

    Options = TriggerOptions

    def __init__(self, options: TriggerOptions) -> None:
        self._rules = options.rules
        self.never_ends = not any(rule.action.name in _ENDS for rule in options.rules)
        """Whether no rule ends the member."""

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        """Return the decision (`burst_ensemble.algorithm.Algorithm`)."""
        done: list[TriggerAction] = []
        remembered: dict[str, Any] = {}
        values = metrics(view, now)
        for place, rule in enumerate(self._rules):
            before = memory.get(str(place), {})
            happened, seen = _happened(rule, view, values, int(before.get("seen", 0)))
            if rule.action.name == "submit" and view.waits_with_jobs:
                # Its jobs would be dropped: what has happened counts later.
                happened, seen = 0, int(before.get("seen", 0))
            times = _times(rule.action, happened, before, now, view.check)
            done += [rule.action] * times
            if times or seen or before:
                remembered[str(place)] = {
                    "done": before.get("done", 0) + times,
                    "last": now if times else before.get("last", 0.0),
                    "seen": seen,
                }
        size = _size(view, done, memory)
        if size is not None:
            remembered[_SIZE] = [view.nodes, size]
        return _decision(view, done, size, remembered)

    def problems(self, view: MemberView) -> Sequence[OptionProblem]:
        """Return names in the rules that are unknown, and conditions that are wrong."""
        return [
            problem
            for place, rule in enumerate(self._rules)
            for problem in _problems(rule, view, f"rules.{place}")
        ]


def _times(
    action: TriggerAction,
    happened: int,
    before: Mapping[str, Any],
    now: float,
    check: float,
) -> int:
    """Return how many times an action is done now."""
    done = int(before.get("done", 0))
    if action.backoff:
        happened = min(happened, 1)
        if done and 0 <= now - float(before.get("last", 0.0)) < action.backoff * check:
            happened = 0
    return max(0, min(happened, action.repetitions - done))


def _happened(
    rule: TriggerRule, view: MemberView, values: Mapping[str, float | None], seen: int
) -> tuple[int, int]:
    """Return how often the trigger has fired since the last check, and how many of its
    events were seen in total.
    """
    if rule.trigger == _START:
        return 1 - seen, 1
    if rule.trigger == _METRIC:
        value = values[rule.name]
        if value is None:
            return 0, 0
        return int(rule.when is None or holds(parse_when(rule.when), value)), 0
    event = rule.trigger.removeprefix(_JOB)
    tallies = [g.tally for g in view.jobs if g.name == rule.name]
    total = (tallies[0] if tallies else view.tally).events.get(event, 0)
    return total - min(seen, total), total


def _size(
    view: MemberView, done: Sequence[TriggerAction], memory: Memory
) -> int | None:
    """Return the size that the rules have led to; None if the member has it.

    It is remembered with the size that the member had, as a window may not allow it
    yet. A limit that forbids it, and any later change of the size, override it.
    """
    had, nodes = memory.get(_SIZE, (view.nodes, view.nodes))
    if view.limited or had != view.nodes:
        nodes = view.nodes
    for action in done:
        if action.name in ("grow", "shrink"):
            nodes += action.value if action.name == "grow" else -action.value
    nodes = max(view.least, min(view.most, nodes))
    return None if nodes == view.nodes else nodes


def _decision(
    view: MemberView, done: Sequence[TriggerAction], nodes: int | None, memory: Memory
) -> MemberDecision:
    counts = {group.name: max(1, group.count) for group in view.jobs}
    jobs: list[str] = []
    for action in done:
        if action.name == "submit":
            jobs += [action.label] * counts.get(action.label, 1)
    names = [f"{action.name} {action.label}".strip() for action in done]
    why = "" if nodes is None else "rules triggered earlier"
    if done:
        why = f"rules triggered: {', '.join(dict.fromkeys(names))}"
    return MemberDecision(
        nodes=nodes,
        again=tuple(jobs),
        end=any(action.name in _ENDS for action in done),
        custom=tuple(action.label for action in done if action.name == "custom"),
        memory=memory,
        why=why,
    )


def _problems(rule: TriggerRule, view: MemberView, at: str) -> Iterator[OptionProblem]:
    groups = [group.name for group in view.jobs]
    if rule.trigger == _METRIC:
        yield from _unknown(f"{at}.name", "metric", rule.name, list(metrics(view, 0.0)))
        try:
            parse_when(0 if rule.when is None else rule.when)
        except ValueError as error:
            yield OptionProblem(f"{at}.when", str(error))
    else:
        triggers = [
            _START,
            _METRIC,
            *(f"{_JOB}{event}" for event in get_args(JobEvent)),
        ]
        yield from _unknown(f"{at}.trigger", "trigger", rule.trigger, triggers)
        if rule.when is not None:
            yield OptionProblem(f"{at}.when", "only a metric has a when")
        if rule.name:
            yield from _unknown(f"{at}.name", "jobs", rule.name, groups)
    if rule.action.name == "submit":
        yield from _unknown(f"{at}.action.label", "jobs", rule.action.label, groups)
    elif rule.action.name == "custom":
        label = rule.action.label
        yield from _unknown(f"{at}.action.label", "command", label, view.commands)


def _unknown(
    key: str, kind: str, name: str, known: Sequence[str]
) -> Iterator[OptionProblem]:
    if name not in known:
        problem = f"there is no {kind} {name!r}" if name else "is missing"
        yield OptionProblem(key, problem, choices(name, known))


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
