# SPDX-License-Identifier: MIT
"""Shared by the benchmarks: a measure, its goal, and how both are printed."""

from __future__ import annotations

import argparse
import json
import operator
import os
from collections.abc import Callable, Sequence

import msgspec

_COMPARE = {"<": operator.lt, "<=": operator.le, ">=": operator.ge, ">": operator.gt}


class Skipped(Exception):
    """Raised if a benchmark cannot run on this machine; the text says what it lacks."""


class Goal(msgspec.Struct, frozen=True):
    """A comparison that a value has to fulfil."""

    sign: str
    value: float


class Measure(msgspec.Struct, frozen=True):
    """One line of a benchmark: a value, and maybe its goal."""

    what: str
    value: float
    unit: str
    goal: Goal | None = None

    @property
    def met(self) -> bool:
        """Whether the goal is met; True without a goal."""
        return self.goal is None or _COMPARE[self.goal.sign](
            self.value, self.goal.value
        )

    @property
    def verdict(self) -> str:
        """The goal and whether it is met, in words; empty without a goal."""
        if self.goal is None:
            return ""
        word = "met" if self.met else "MISSED"
        return f"goal {self.goal.sign} {self.goal.value:g}: {word}"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one benchmark: measures, or why it was skipped."""

    measures: tuple[Measure, ...] = ()
    skipped: str = ""
    """Why it was skipped; empty if it was not."""
    load: tuple[float, float] = (0.0, 0.0)
    """The machine's load average of one minute, before and after."""


def run(measure: Callable[[], Sequence[Measure]]) -> Result:
    """Run a benchmark and return its result."""
    before = os.getloadavg()[0]
    try:
        measures = tuple(measure())
    except Skipped as error:
        return Result(skipped=str(error))
    return Result(measures=measures, load=(before, os.getloadavg()[0]))


def lines(result: Result) -> list[str]:
    """Return a result for people, one measure a line."""
    if result.skipped:
        return [f"SKIPPED: {result.skipped}"]
    width = max(len(measure.what) for measure in result.measures)
    table = [
        f"{line.what:{width}}  {line.value:10.4g} {line.unit:3} {line.verdict}".rstrip()
        for line in result.measures
    ]
    return [*table, f"load average {result.load[0]:.1f} to {result.load[1]:.1f}"]


def as_builtins(result: Result) -> dict[str, object]:
    """Return a result for JSON; each measure also says whether its goal is met."""
    found: dict[str, object] = msgspec.to_builtins(result)
    found["measures"] = [
        {**msgspec.to_builtins(measure), "met": measure.met}
        for measure in result.measures
    ]
    return found


def main_of(
    doc: str | None,
    measure: Callable[..., Sequence[Measure]],
    **numbers: tuple[int, str],
) -> None:
    """Run a benchmark as a program.

    `numbers` are options by name, with default and help; `measure` gets their values.
    """
    ends = "A missed goal is a finding: the exit status is 0 if it could be measured."
    parser = argparse.ArgumentParser(
        description=doc,
        epilog=ends,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    for name, (default, text) in numbers.items():
        parser.add_argument(
            f"--{name}", type=int, default=default, help=f"{text} ({default})"
        )
    options = vars(parser.parse_args())
    as_json = options.pop("json")
    result = run(lambda: measure(**options))
    print(
        json.dumps(as_builtins(result), indent=2)
        if as_json
        else "\n".join(lines(result))
    )
