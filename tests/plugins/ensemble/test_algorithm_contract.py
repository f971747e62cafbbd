# SPDX-License-Identifier: MIT
"""The contract of algorithms: ours keep it, and what breaks it fails it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
import pytest
from burst_ensemble.algorithm import MemberDecision, MemberView, Memory
from burst_ensemble.core.algorithms import BUILT_IN
from burst_ensemble.core.algorithms.workload_demand import (
    DemandOptions,
    WorkloadDemand,
)
from burst_ensemble.testing import AlgorithmContract


class TestWorkloadDemand(AlgorithmContract):
    algorithm = BUILT_IN["workload-demand"]


class TestWorkloadDemandTotal(AlgorithmContract):
    algorithm = BUILT_IN["workload-demand"]
    options: ClassVar[Mapping[str, Any]] = {
        "scaleUpStrategy": "total",
        "disableTermination": "yes",
        "order": "descending",
    }


class TestWorkloadDemandRandom(AlgorithmContract):
    algorithm = BUILT_IN["workload-demand"]
    options: ClassVar[Mapping[str, Any]] = {"scaleUpStrategy": "randomJob"}


class TestStop(AlgorithmContract):
    algorithm = BUILT_IN["stop"]
    options: ClassVar[Mapping[str, Any]] = {"successTarget": 9, "mostTime": "1h"}


class TestMoreJobs(AlgorithmContract):
    algorithm = BUILT_IN["more-jobs"]
    options: ClassVar[Mapping[str, Any]] = {"batch": 20, "order": "random"}


class TestTriggers(AlgorithmContract):
    algorithm = BUILT_IN["triggers"]
    options: ClassVar[Mapping[str, Any]] = {
        "rules": [
            {"trigger": "start", "action": {"name": "submit", "label": "own"}},
            {
                "trigger": "metric",
                "name": "mean.own-duration",
                "when": "> 5",
                "action": {"name": "grow", "repetitions": 50, "backoff": 3},
            },
            {
                "trigger": "job-finish",
                "action": {"name": "custom", "label": "x", "repetitions": 3},
            },
        ]
        + [
            {
                "trigger": "metric",
                "name": "queue.run",
                "when": number,
                "action": {"name": "shrink"},
            }
            for number in range(47)
        ]
    }


# -- What breaks the contract. Each is a workload-demand with one thing wrong.


class CountingCalls(WorkloadDemand):
    """Grows after five calls, whatever time has passed."""

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        calls = memory.get("calls", 0) + 1
        if calls > 5:
            return MemberDecision(nodes=view.nodes + 1, why="five calls")
        return MemberDecision(memory={"calls": calls})


class Keeping(WorkloadDemand):
    """Keeps in the object what it saw last."""

    last = 0

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        self.last += 1
        return MemberDecision(nodes=self.last, why="so often")


class ReadingTheClock(WorkloadDemand):
    """Looks at the clock."""

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        return MemberDecision(memory={"since": time.perf_counter()})


class ChangingItsArguments(WorkloadDemand):
    """Writes into the memory that it is given."""

    def decide(self, view: MemberView, memory: Any, now: float) -> MemberDecision:
        memory["seen"] = now
        return MemberDecision(memory=memory)


class RememberingSets(WorkloadDemand):
    """Remembers what JSON does not have."""

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        return MemberDecision(memory={"sizes": (1, 2)})


class RememberingAll(WorkloadDemand):
    """Remembers each job."""

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        return MemberDecision(memory={"jobs": list(range(10_000))})


class Halves(WorkloadDemand):
    """Asks for half a node."""

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        half: Any = view.nodes / 2 + 0.25
        return MemberDecision(nodes=half, why="half")


class Inventing(WorkloadDemand):
    """Submits jobs that the file does not have."""

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        return MemberDecision(submit=("other",))


class Silent(WorkloadDemand):
    """Ends a member and does not say why."""

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        return MemberDecision(end=True)


class Slow(WorkloadDemand):
    """Takes its time."""

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        time.sleep(0.26)
        return MemberDecision()


class Nothing(WorkloadDemand):
    """Returns nothing."""

    def decide(self, view: MemberView, memory: Memory, now: float) -> Any:
        return None


class TakingAll(WorkloadDemand):
    """Has options that are no msgspec.Struct, and takes any."""

    Options: Any = dict

    def __init__(self, options: Any) -> None:
        super().__init__(DemandOptions())


@pytest.mark.parametrize(
    ("mutant", "broken"),
    [
        (CountingCalls, "test_it_counts_time_and_not_how_often_it_is_asked"),
        (Keeping, "test_the_same_arguments_give_the_same_decision"),
        (ReadingTheClock, "test_the_same_arguments_give_the_same_decision"),
        (ChangingItsArguments, "test_it_does_not_change_what_it_is_given"),
        (RememberingSets, "test_what_it_remembers_is_the_same_after_it_was_written"),
        (RememberingAll, "test_what_it_remembers_is_the_same_after_it_was_written"),
        (Halves, "test_decisions_can_be_used"),
        (Inventing, "test_decisions_can_be_used"),
        (Silent, "test_decisions_can_be_used"),
        (Nothing, "test_decisions_can_be_used"),
        (Slow, "test_it_decides_promptly"),
        (TakingAll, "test_it_refuses_options_that_it_does_not_have"),
    ],
)
def test_what_breaks_the_contract_fails_it(mutant: type, broken: str) -> None:
    suite = type("Suite", (AlgorithmContract,), {"algorithm": mutant})()
    with pytest.raises((AssertionError, AttributeError, msgspec.ValidationError)):
        getattr(suite, broken)()


def test_what_is_no_mutant_passes_each_test_by_hand() -> None:
    """So that a mutant does not fail for the way in which it is run."""
    suite = TestWorkloadDemand()
    tests = [name for name in dir(AlgorithmContract) if name.startswith("test_")]
    assert len(tests) == 7
    for name in tests:
        getattr(suite, name)()
