# SPDX-License-Identifier: MIT
"""Goals are judged, and results are told, as they are."""

from __future__ import annotations

import json
import sys

import msgspec
import pytest

from benchmarks.table import (
    Goal,
    Measure,
    Result,
    Skipped,
    as_builtins,
    lines,
    main_of,
    run,
)

MET = Measure("plan", 0.05, "s", Goal("<", 0.1))
MISSED = Measure("longer name", 2.0, "x", Goal("<=", 1.15))
PLAIN = Measure("rate", 3.0, "x")


@pytest.mark.parametrize(
    ("sign", "value", "met"),
    [
        ("<", 0.9, True),
        ("<", 1.0, False),
        ("<=", 1.0, True),
        ("<=", 1.1, False),
        (">=", 1.0, True),
        (">=", 0.9, False),
        (">", 1.1, True),
        (">", 1.0, False),
    ],
)
def test_a_goal_is_compared_as_its_sign_says(
    sign: str, value: float, met: bool
) -> None:
    assert Measure("m", value, "s", Goal(sign, 1.0)).met is met


def test_a_measure_without_a_goal_is_met_and_says_nothing() -> None:
    assert PLAIN.met
    assert PLAIN.verdict == ""


def test_lines_are_aligned_and_end_with_the_verdict() -> None:
    assert lines(Result(measures=(MET, MISSED, PLAIN), load=(0.5, 1.25))) == [
        "plan               0.05 s   goal < 0.1: met",
        "longer name           2 x   goal <= 1.15: MISSED",
        "rate                  3 x",
        "load average 0.5 to 1.2",
    ]


def test_what_is_lacking_is_said_instead() -> None:
    def measure() -> list[Measure]:
        raise Skipped("no flux on PATH")

    assert lines(run(measure)) == ["SKIPPED: no flux on PATH"]


def test_a_result_survives_json_and_says_which_goals_are_met() -> None:
    result = Result(measures=(MET, MISSED, PLAIN), load=(0.5, 1.25))
    text = json.dumps(as_builtins(result))
    assert [row["met"] for row in json.loads(text)["measures"]] == [True, False, True]
    assert msgspec.json.decode(text, type=Result) == result


def test_options_reach_the_measurement_and_a_missed_goal_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(jobs: int) -> list[Measure]:
        return [msgspec.structs.replace(MISSED, value=jobs)]

    monkeypatch.setattr(sys, "argv", ["x.py", "--jobs", "7", "--json"])
    main_of("doc", measure, jobs=(5, "how many"))
    (row,) = json.loads(capsys.readouterr().out)["measures"]
    assert (row["value"], row["met"]) == (7, False)
