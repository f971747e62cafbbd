# SPDX-License-Identifier: MIT
"""The contract of all algorithms as tests: subclass `AlgorithmContract`."""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec
import pytest

from burst.config import convert
from burst.decode import from_plain
from burst_ensemble.algorithm import (
    MEMORY_MOST,
    Algorithm,
    ConfigError,
    JobGroup,
    JobTally,
    MemberDecision,
    MemberView,
    Memory,
    PeerView,
    QueueCounts,
    Spread,
)

NOW = 1_000_000.0


def example_views() -> dict[str, MemberView]:
    """Return members in states that each algorithm must handle, by a description.

    All have jobs `own` and `shared`.
    """
    ran = JobTally(
        finished=12,
        success=9,
        failed=3,
        duration=Spread(count=12, mean=60.0, variance=9.0, min=1.0, max=90.0),
        pending=Spread(count=12, mean=5.0),
        events={"submit": 20, "start": 12, "finish": 12},
    )
    none_left = (
        JobGroup(name="own", nodes=2, count=20, left=0, submitted=20, tally=ran),
        JobGroup(name="shared", nodes=1, count=9, left=0, submitted=9, shared=True),
    )
    left = (
        JobGroup(name="own", nodes=2, count=1000, left=1000),
        JobGroup(name="shared", nodes=1, count=9, left=9, shared=True),
    )
    peers = (PeerView(name="b", price=0.5, room=3, most=8, durations={"shared": 9.0}),)
    common: dict[str, Any] = {
        "name": "a",
        "least": 1,
        "most": 8,
        "started": NOW - 5000,
        "price": 1.0,
        "spent": 2.5,
        "peers": peers,
        "jobs": none_left,
        "tally": ran,
    }
    up: dict[str, Any] = {"nodes": 4, "nodes_paid": 4, "nodes_up": 4}
    sizes = {1: 500, 2: 300, 3: 200}
    return {
        "not made yet": MemberView(
            **{**common, "started": NOW, "jobs": left, "tally": JobTally()}
        ),
        "booting": MemberView(**common, nodes=4, nodes_paid=4),
        "idle": MemberView(**common, **up, nodes_free=4),
        "busy": MemberView(**common, **up, queue=QueueCounts(run=4)),
        "with jobs left": MemberView(**{**common, "jobs": left}, **up, nodes_free=4),
        "with 1000 jobs that wait": MemberView(
            **common,
            **up,
            queue=QueueCounts(run=4, sched=1000),
            waiting=sizes,
            next_jobs=(2, 1, 3, 1, 1, 2, 1, 1, 2, 3, 1),
        ),
        "with a job that is too large": MemberView(
            **common, **up, queue=QueueCounts(sched=1), waiting={99: 1}, next_jobs=(99,)
        ),
        "as large as it can be": MemberView(
            **common, nodes=8, nodes_paid=8, nodes_up=8, queue=QueueCounts(run=8)
        ),
        "as small as it can be": MemberView(
            **common, nodes=1, nodes_paid=3, nodes_up=1, nodes_free=1
        ),
        "without nodes": MemberView(**{**common, "least": 0}),
    }


class AlgorithmContract:
    """Subclass it as `Test…` and set the algorithm and its options.

    class TestMine(AlgorithmContract):
        algorithm = Mine
        options = {"value": 3}      # for jobs called `own` and `shared`
    """

    algorithm: ClassVar[Any]
    options: ClassVar[Mapping[str, Any]] = {}
    prompt: ClassVar[float] = 0.25
    """Seconds within which it must decide, even on a slow and busy machine."""

    def make(self) -> Algorithm:
        """Return a new algorithm."""
        kind = self.algorithm
        made: Algorithm = kind(convert(kind.Options, self.options, "options"))
        return made

    def test_it_refuses_options_that_it_does_not_have(self) -> None:
        kind = self.algorithm
        assert issubclass(kind.Options, msgspec.Struct)
        with pytest.raises(ConfigError):
            convert(kind.Options, {**self.options, "no-such-option": 1}, "options")

    def test_the_same_arguments_give_the_same_decision(self) -> None:
        algorithm = self.make()
        for what, view, memory, now in self._course():
            decision = algorithm.decide(view, memory, now)
            assert algorithm.decide(view, memory, now) == decision, what
            assert self.make().decide(view, memory, now) == decision, (
                f"{what}: a new object decides otherwise: it keeps something"
            )

    def test_it_does_not_change_what_it_is_given(self) -> None:
        algorithm = self.make()
        for what, view, memory, now in self._course():
            given = copy.deepcopy((view, memory))
            algorithm.decide(view, memory, now)
            assert (view, memory) == given, what

    def test_decisions_can_be_used(self) -> None:
        algorithm = self.make()
        for what, view, memory, now in self._course():
            decision = algorithm.decide(view, memory, now)
            assert type(decision) is MemberDecision, what
            # Raises for a field of another type.
            from_plain(msgspec.structs.asdict(decision), MemberDecision)
            groups = {group.name for group in view.jobs}
            assert {*decision.submit, *decision.again} <= groups, what
            if decision.end or decision.nodes not in (None, view.nodes):
                assert decision.why, f"{what}: it does not say why"

    def test_what_it_remembers_is_the_same_after_it_was_written(self) -> None:
        algorithm = self.make()
        for what, view, memory, now in self._course():
            remembered = dict(algorithm.decide(view, memory, now).memory)
            written = json.dumps(remembered, allow_nan=False)
            assert len(written) <= MEMORY_MOST, what
            assert json.loads(written) == remembered, what

    def test_it_counts_time_and_not_how_often_it_is_asked(self) -> None:
        for what, view in example_views().items():
            seldom, often = (self._first_change(view, step) for step in (10.0, 2.0))
            assert abs(seldom - often) <= 10.0, (
                f"{what}: asked every 10 s it acts after {seldom:.0f} s, asked every"
                f" 2 s after {often:.0f} s"
            )

    def test_it_decides_promptly(self) -> None:
        algorithm = self.make()
        for what, view in example_views().items():
            took = math.inf
            # On a busy machine a prompt algorithm may need several attempts.
            for _ in range(5):
                took = min(took, self._seconds(algorithm, view))
                if took <= self.prompt:
                    break
            assert took <= self.prompt, f"{what}: {1000 * took:.1f} ms"

    def _course(self) -> Iterator[tuple[str, MemberView, Memory, float]]:
        """Yield each state without memory, then with the memory of the last call."""
        algorithm = self.make()
        for what, view in example_views().items():
            memory: Memory = {}
            for now in (NOW, NOW + 10, NOW + 45, NOW + 500, NOW + 490):
                yield what, view, memory, now
                found = algorithm.decide(view, memory, now)
                memory = json.loads(json.dumps(dict(found.memory), default=str))

    def _first_change(self, view: MemberView, step: float) -> float:
        """Return after how many seconds it resizes or ends a member that stays so."""
        algorithm, now = self.make(), NOW
        memory: Memory = {}
        while now <= NOW + 300:
            decision = algorithm.decide(view, memory, now)
            if decision.end or decision.nodes not in (None, view.nodes):
                break
            memory = json.loads(json.dumps(dict(decision.memory), default=str))
            now += step
        return now - NOW

    def _seconds(self, algorithm: Algorithm, view: MemberView) -> float:
        begun = time.perf_counter()
        algorithm.decide(view, {}, NOW)
        return time.perf_counter() - begun
