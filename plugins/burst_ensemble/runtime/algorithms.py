# SPDX-License-Identifier: MIT
"""Find the algorithms that an ensemble names, built in or by entry point group, and
call them, with a limit of ten seconds for each call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import msgspec

from burst import log
from burst.config.convert import KeyProblem, convert
from burst.errors import ConfigError
from burst.extensions import find_point, package_of
from burst_ensemble.algorithm import (
    Algorithm,
    Checked,
    MemberDecision,
    MemberView,
    Memory,
)
from burst_ensemble.config.file import EnsembleFile
from burst_ensemble.config.source import choices, key_path
from burst_ensemble.config.spec import AlgorithmSpec
from burst_ensemble.core.algorithms import BUILT_IN
from burst_ensemble.core.views import fresh_view
from burst_ensemble.core.wishes import AlgorithmFault, Answer

GROUP = "burst.algorithms"

Algorithms = Mapping[str, Mapping[str, Algorithm]]
"""The algorithms by member and by name, in the order in which they are called."""


def load_algorithms(
    file: EnsembleFile, found: Iterable[EntryPoint] | None = None
) -> Algorithms:
    """Return the algorithms of all members, with their options.

    `found` defaults to the installed entry points. Raises ConfigError.
    """
    points = entry_points(group=GROUP) if found is None else found
    plugins = tuple(points)
    made = {}
    for member in file.spec.members:
        view = fresh_view(file.spec, member)
        made[member.name] = {
            algorithm.name: _make(algorithm, _Place(file, view, number), plugins)
            for number, algorithm in enumerate(member.algorithms)
        }
    return made


class _Place(msgspec.Struct, frozen=True):
    """Where the file names an algorithm: the member, and the number in its list."""

    file: EnsembleFile
    view: MemberView
    number: int

    def wrong(self, key: str, problem: str, advice: str = "") -> ConfigError:
        """Return the error for a key of the options; if it is empty, for the name."""
        below = ("options", *key_path(key)) if key else ("name",)
        path = ("algorithm", self.number, *below)
        return self.file.wrong(self.view.name, path, problem, advice)


def _make(
    spec: AlgorithmSpec, place: _Place, plugins: Sequence[EntryPoint]
) -> Algorithm:
    """Import an algorithm, and make it. Raises ConfigError, whatever it does."""
    try:
        kind = _load(spec.name, place, plugins)
        algorithm: Algorithm = kind(_options(kind, spec, place))
        problems = (
            algorithm.problems(place.view) if isinstance(algorithm, Checked) else ()
        )
        wrong = [place.wrong(each.key, each.what, each.advice) for each in problems]
    except (ConfigError, KeyboardInterrupt):
        raise
    except BaseException as error:
        log.failure("algorithm %s cannot be made", spec.name, error=error)
        raise place.wrong(
            "", f"{spec.name} cannot be made: {type(error).__name__}: {error}"
        ) from error
    for each in wrong:
        raise each
    return algorithm


def _options(kind: Any, spec: AlgorithmSpec, place: _Place) -> Any:
    try:
        return convert(kind.Options, spec.options, "")
    except KeyProblem as error:
        raise place.wrong(error.key, error.problem, error.advice) from error


def _load(name: str, place: _Place, plugins: Sequence[EntryPoint]) -> Any:
    point, built_in = find_point(plugins, name), BUILT_IN.get(name)
    if point and built_in:
        raise place.wrong(
            "",
            f"{name} is built in, and package {package_of(point)} has one of that name",
            "uninstall the package, or have its author name it otherwise",
        )
    if built_in:
        return built_in
    if point is None:
        known = sorted({*BUILT_IN, *(each.name for each in plugins)})
        raise place.wrong("", f"there is no algorithm {name!r}", choices(name, known))
    kind = point.load()
    options = getattr(kind, "Options", None)
    has_options = isinstance(options, type) and issubclass(options, msgspec.Struct)
    if not has_options or not callable(getattr(kind, "decide", None)):
        lacks = "method decide" if has_options else "Options, a msgspec.Struct"
        what = f"{point.value} has no {lacks}"
        raise place.wrong("", what, "see burst_ensemble.algorithm")
    return kind


Decide = Callable[[], MemberDecision]
Call = Callable[[str, Decide], tuple[Answer, Callable[[], bool]]]
"""Calls an algorithm; the text names it in the log. Returns its answer, and a function
that tells whether the call goes on all the same."""

LONGEST_S = 10.0
"""Seconds that one answer may take. No tick of the daemon waits for it."""
_FIRST_PAUSE = 60.0
_LONGEST_PAUSE = 3600.0


def call_on_thread(
    name: str, decide: Decide, longest: float = LONGEST_S
) -> tuple[Answer, Callable[[], bool]]:
    """Call an algorithm on a thread of its own: see `Call`.

    A call that takes too long goes on, as Python cannot end a thread.
    """
    answers: SimpleQueue[MemberDecision | BaseException] = SimpleQueue()

    def run() -> None:
        try:
            answers.put(decide())
        except BaseException as error:  # noqa: BLE001 - a plug-in's, whatever it is
            answers.put(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    answer: Answer | BaseException
    try:
        answer = answers.get(timeout=longest)
    except Empty:
        answer = AlgorithmFault(f"it took longer than {longest:g} s")
    if isinstance(answer, BaseException):
        log.failure("%s raised", name, error=answer)
        answer = AlgorithmFault(f"it raised {answer!r}")
    return answer, thread.is_alive


class _Failure(NamedTuple):
    """The last call of an algorithm, which raised or took too long."""

    why: str
    first: float
    """When it failed first since it last answered, in seconds since the epoch."""
    until: float
    """When it is called again: the pause is as long as it has failed already."""
    goes_on: Callable[[], bool]


class AlgorithmCalls:
    """Calls algorithms. Use it from one thread.

    One whose call goes on is not called again for the same member before this call has
    returned.
    """

    def __init__(self, call: Call = call_on_thread) -> None:
        self._call = call
        self._failed: dict[tuple[str, str], _Failure] = {}

    def ask(
        self,
        member: str,
        algorithms: Mapping[str, Algorithm],
        question: tuple[MemberView, Mapping[str, Memory]],
        now: float,
    ) -> dict[str, Answer]:
        """Return the answer of each algorithm of a member by name, in this order.

        `question` is the view of the member, and the memory of each algorithm by name.
        One that has failed is not called for a minute to an hour, in which it has the
        same fault.
        """
        view, memory = question
        found: dict[str, Answer] = {}
        for name, algorithm in algorithms.items():
            key, before = (member, name), self._failed.get((member, name))
            if before is None or _is_over(before, now):
                decide = partial(_decide, algorithm, view, memory.get(name, {}), now)
                answer, goes_on = self._call(f"algorithm {name} of {member}", decide)
                found[name] = answer
                self._failed.pop(key, None)
                if isinstance(answer, AlgorithmFault):
                    self._failed[key] = _failure(answer.why, before, goes_on, now)
            else:
                found[name] = AlgorithmFault(before.why)
        return found


def _decide(
    algorithm: Algorithm, view: MemberView, memory: Memory, now: float
) -> MemberDecision:
    """Call an algorithm with a copy of its memory: what it writes changes no record."""
    # `copy.deepcopy` does not reach as deep as the JSON in which the record is kept.
    its = msgspec.json.decode(msgspec.json.encode(memory))
    return algorithm.decide(view, its, now)


def _is_over(failed: _Failure, now: float) -> bool:
    """Tell whether an algorithm may be called again."""
    # `first` is later than now if the clock was set back.
    return not failed.first <= now < failed.until and not failed.goes_on()


def _failure(
    why: str, before: _Failure | None, goes_on: Callable[[], bool], now: float
) -> _Failure:
    first = min(before.first, now) if before else now
    pause = min(_LONGEST_PAUSE, max(_FIRST_PAUSE, now - first))
    return _Failure(why, first, now + pause, goes_on)
