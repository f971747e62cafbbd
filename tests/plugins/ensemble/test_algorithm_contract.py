# SPDX-License-Identifier: MIT
"""The contract of algorithms: ours keep it, and what breaks it fails it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from burst_ensemble.algorithm import MemberDecision, MemberView, Memory
from burst_ensemble.core.algorithms import BUILT_IN
from burst_ensemble.core.algorithms.workload_demand import DemandOptions, WorkloadDemand
from burst_ensemble.testing import AlgorithmContract


def suite(algorithm: str | type, **options: Any) -> type[AlgorithmContract]:
    """The contract for an algorithm, or a built-in one, with these options."""
    kind = BUILT_IN[algorithm] if isinstance(algorithm, str) else algorithm
    found = {"algorithm": kind, "options": options}
    return type("Suite", (AlgorithmContract,), found)


TestWorkloadDemand = suite("workload-demand")
TestWorkloadDemandTotal = suite(
    "workload-demand",
    scaleUpStrategy="total",
    disableTermination="yes",
    order="descending",
)
TestWorkloadDemandRandom = suite("workload-demand", scaleUpStrategy="randomJob")
TestStop = suite("stop", successTarget=9, mostTime="1h")
TestMoreJobs = suite("more-jobs", batch=20, order="random")
TestTriggers = suite(
    "triggers",
    rules=[
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
        *(
            {
                "trigger": "metric",
                "name": "queue.run",
                "when": number,
                "action": {"name": "shrink"},
            }
            for number in range(47)
        ),
    ],
)


# -- What breaks the contract. Each is a workload-demand with one thing wrong.


def deciding(decide: Callable[..., Any]) -> type[WorkloadDemand]:
    """An algorithm that decides by a function of view, memory and now."""

    class Wrong(WorkloadDemand):
        def decide(self, view: MemberView, memory: Memory, now: float) -> Any:
            return decide(view, memory, now)

    return Wrong


def counting_calls(view: MemberView, memory: Memory, _: float) -> MemberDecision:
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


class TakingAll(WorkloadDemand):
    """Has options that are no msgspec.Struct, and takes any."""

    Options: Any = dict

    def __init__(self, options: Any) -> None:
        super().__init__(DemandOptions())


WRONG: list[tuple[type, str]] = [
    (deciding(counting_calls), "it_counts_time_and_not_how_often_it_is_asked"),
    (Keeping, "the_same_arguments_give_the_same_decision"),
    (
        deciding(lambda *_: MemberDecision(memory={"since": time.perf_counter()})),
        "the_same_arguments_give_the_same_decision",
    ),
    (
        deciding(lambda _, memory, now: memory.update(seen=now)),
        "it_does_not_change_what_it_is_given",
    ),
    # JSON has no tuples; and it is too much.
    *(
        (
            deciding(lambda *_, found=found: MemberDecision(memory={"jobs": found})),
            "what_it_remembers_is_the_same_after_it_was_written",
        )
        for found in ((1, 2), list(range(10_000)))
    ),
    # Half a node, a job that the file does not have, an end without a reason.
    *(
        (deciding(lambda *_, found=found: found), "decisions_can_be_used")
        for found in (
            MemberDecision(nodes=1.5, why="half"),  # type: ignore[arg-type]
            MemberDecision(submit=("other",)),
            MemberDecision(end=True),
            None,
        )
    ),
    (deciding(lambda *_: time.sleep(0.26)), "it_decides_promptly"),
    (TakingAll, "it_refuses_options_that_it_does_not_have"),
]


@pytest.mark.parametrize(("mutant", "broken"), WRONG)
def test_what_breaks_the_contract_fails_it(mutant: type, broken: str) -> None:
    with pytest.raises((AssertionError, AttributeError, msgspec.ValidationError)):
        getattr(suite(mutant)(), f"test_{broken}")()


@pytest.mark.parametrize(
    "right", [WorkloadDemand, deciding(lambda *_: MemberDecision())]
)
def test_what_is_no_mutant_passes_each_test_by_hand(right: type) -> None:
    """So that a mutant does not fail for the way in which it is run."""
    tests = [name for name in dir(AlgorithmContract) if name.startswith("test_")]
    assert len(tests) == 7
    for name in tests:
        getattr(suite(right)(), name)()
