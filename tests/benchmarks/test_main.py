# SPDX-License-Identifier: MIT
"""The summary of all benchmarks leaves nothing out."""

from __future__ import annotations

import importlib

import pytest

from benchmarks.__main__ import (
    NAMES,
    Failed,
    Outcome,
    run_alone,
    summary,
    to_json,
)
from benchmarks.table import Goal, Measure, Result


def test_the_summary_has_each_goal_and_each_benchmark_without_a_result() -> None:
    measures = (
        Measure("time", 0.05, "s", Goal("<", 0.1)),
        Measure("rate", 0.5, "x", Goal(">=", 1)),
        Measure("beside it", 1, "s"),
    )
    outcomes: dict[str, Outcome] = {
        "a": Result(measures=measures),
        "b": Result(skipped="no flux on PATH"),
        "c": Failed("exit status 2"),
    }
    assert summary(outcomes) == [
        "a: time  0.05 s  goal < 0.1: met",
        "a: rate   0.5 x  goal >= 1: MISSED",
        "b                SKIPPED: no flux on PATH",
        "c                FAILED: exit status 2",
    ]


def test_a_benchmark_that_cannot_run_has_failed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    found = run_alone("no_such_benchmark")
    assert isinstance(found, Failed)
    assert to_json(found) == {"failed": "exit status 1; what it said is above"}
    assert "no_such_benchmark" in capfd.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_each_name_is_a_benchmark(name: str) -> None:
    assert callable(importlib.import_module(f"benchmarks.{name}").measure)
