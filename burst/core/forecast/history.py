# SPDX-License-Identifier: MIT
"""For how long jobs run, by past jobs of the same user, name and size.

The time limit that a user asks for is a bound, and often many times what the job takes;
the last runs of the same user say more (Tsafrir, Etsion, Feitelson, IEEE TPDS 18(6),
2007).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence

import msgspec

RUNS_KEPT = 24
"""How many run times of each kind count; the newest counts most."""
KINDS_KEPT = 10_000
"""How many kinds are kept, so that memory and store are bounded; the kind that was not
seen for longest is forgotten first."""
_DECAY = 0.95
"""The weight of a run relative to the next newer one of its kind."""


class RunTime(msgspec.Struct, frozen=True, gc=False):
    """For how long a job will run from now on, in seconds."""

    shortest: float
    """Less than the shortest run of past jobs like it, and the less the fewer they are;
    0 if none is known."""
    expected: float
    """The mean of past jobs like it; `longest` if none is known."""
    longest: float
    """What its time limit leaves; math.inf without one."""


class JobKind(msgspec.Struct, frozen=True, gc=False):
    """What jobs have in common that probably run equally long."""

    userid: int
    name: str
    cores: int

    @property
    def size(self) -> int:
        """Class of size: 1 for one core, 2 for 2 and 3, 3 for 4 to 7, and so on."""
        return self.cores.bit_length()


class KindRecord(msgspec.Struct, frozen=True, array_like=True):
    """What is stored of one kind: seconds and time limit of each run, 0 for none."""

    userid: int
    name: str
    size: int
    runs: tuple[tuple[float, float], ...]
    """The oldest first."""


class HistoryRecord(msgspec.Struct, frozen=True):
    """What is stored of a history: kinds by when they were last seen."""

    kinds: tuple[KindRecord, ...] = ()


class RunHistory:
    """The last run times of each kind of job.

    A job is compared with past jobs of its user, name and size; if there are none, with
    all jobs of its user (on record with an empty name and size 0). What counts is the
    part of its time limit for which a job ran: users who ask for twice the time mostly
    need more. Without a limit, seconds count.
    """

    def __init__(self, record: HistoryRecord | None = None) -> None:
        self._kinds: OrderedDict[_Key, _Runs] = OrderedDict()
        for kind in (record or HistoryRecord()).kinds:
            runs = [run for run in kind.runs if run[0] >= 0 and run[1] >= 0]
            if runs:
                self._kinds[kind.userid, kind.name, kind.size] = _Runs(runs)

    def add(self, kind: JobKind, seconds: float, limit: float = math.inf) -> None:
        """Record that a job of that kind and time limit ran for so long."""
        run = (max(0.0, seconds), 0.0 if math.isinf(limit) else max(0.0, limit))
        for key in _keys(kind):
            known = self._kinds.get(key)
            if known is None:
                self._kinds[key] = _Runs([run])
            else:
                known.add(run)
                self._kinds.move_to_end(key)
        while len(self._kinds) > KINDS_KEPT:
            self._kinds.popitem(last=False)

    def expect(self, kind: JobKind, limit: float, elapsed: float = 0.0) -> RunTime:
        """Return for how long a job will run that has run for `elapsed` seconds.

        `limit` is its time limit in seconds, math.inf without one. A job that has run
        longer than was expected is compared with past jobs that did so, too; if there
        are none, it is expected to run as long again.
        """
        longest = max(0.0, limit - elapsed)
        keys = _keys(kind)
        for key in keys:
            known = self._kinds.get(key)
            if known is not None:
                shortest, expected = known.expect(limit, elapsed)
                expected = min(expected - elapsed, longest)
                # Other jobs of its user say nothing of the least that it takes.
                like_it = key is keys[0]
                shortest = min(shortest - elapsed, expected) if like_it else 0.0
                return RunTime(shortest, expected, longest)
        return RunTime(0.0, longest, longest)

    def record(self) -> HistoryRecord:
        """Return what is to be stored."""
        return HistoryRecord(
            kinds=tuple(
                KindRecord(*key, tuple(known.runs))
                for key, known in self._kinds.items()
            )
        )


_Key = tuple[int, str, int]
_Run = tuple[float, float]


def _keys(kind: JobKind) -> Sequence[_Key]:
    return (kind.userid, kind.name, kind.size), (kind.userid, "", 0)


class _Runs:
    """The runs of one kind; what they predict is computed only when it is asked for."""

    def __init__(self, runs: Iterable[_Run]) -> None:
        self.runs = deque(runs, maxlen=RUNS_KEPT)
        self._seconds: _Ladder | None = None
        self._parts: _Ladder | None = None

    def add(self, run: _Run) -> None:
        self.runs.append(run)
        self._seconds = self._parts = None

    def expect(self, limit: float, elapsed: float) -> tuple[float, float]:
        """Return the shortest and the expected run time of all, both >= `elapsed`."""
        if 0 < limit < math.inf:
            if self._parts is None:
                self._parts = _Ladder([run / of for run, of in self.runs if of])
            if self._parts.steps:
                shortest, expected = self._parts.expect(elapsed / limit)
                # Rounded, they may be less.
                return max(elapsed, shortest * limit), max(elapsed, expected * limit)
        if self._seconds is None:
            self._seconds = _Ladder([run for run, _ in self.runs])
        return self._seconds.expect(elapsed)


class _Ladder:
    """The run time that is expected at first, and each time that a job runs longer."""

    def __init__(self, runs: Sequence[float]) -> None:
        weighted = [(run, _DECAY**age) for age, run in enumerate(reversed(runs))]
        count = len(runs)
        # Of n + 1 jobs one is shorter than all others, so the shortest of a few past
        # jobs is no bound.
        self._likely = sorted(run * (count - 1) / (count + 1) for run in runs)
        self.steps: list[float] = []
        while weighted:
            weights = sum(weight for _, weight in weighted)
            mean = sum(run * weight for run, weight in weighted) / weights
            # Rounded, it may be below all of them.
            at = max(mean, min(weighted)[0])
            self.steps.append(at)
            weighted = [(run, weight) for run, weight in weighted if run > at]

    def expect(self, elapsed: float) -> tuple[float, float]:
        """Return the least run that a job probably has, and the expected one.

        Both are at least `elapsed`.
        """
        likely = bisect_left(self._likely, elapsed)
        step = bisect_left(self.steps, elapsed)
        return (
            self._likely[likely] if likely < len(self._likely) else elapsed,
            self.steps[step] if step < len(self.steps) else 2 * elapsed,
        )
