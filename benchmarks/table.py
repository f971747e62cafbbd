# SPDX-License-Identifier: MIT
"""What the benchmarks share: a measure, its goal, and how both are printed."""

from __future__ import annotations

import argparse
import json
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

_COMPARE = {"<": operator.lt, "<=": operator.le, ">=": operator.ge, ">": operator.gt}


class Goal(msgspec.Struct, frozen=True):
    """What a value is to be compared with."""

    sign: str
    value: float


class Measure(msgspec.Struct, frozen=True):
    """One line of a benchmark."""

    what: str
    value: float
    unit: str
    goal: Goal | None = None

    @property
    def met(self) -> bool:
        """Whether the goal is met; without one it is."""
        return self.goal is None or _COMPARE[self.goal.sign](
            self.value, self.goal.value
        )


def print_measures(measures: Sequence[Measure], *, as_json: bool) -> None:
    """Print all lines, for people or as one JSON array."""
    if as_json:
        rows: list[dict[str, Any]] = [
            {**msgspec.to_builtins(measure), "met": measure.met} for measure in measures
        ]
        print(json.dumps(rows, indent=2))
        return
    width = max(len(measure.what) for measure in measures)
    for measure in measures:
        goal = ""
        if measure.goal:
            met = "met" if measure.met else "MISSED"
            goal = f"   goal {measure.goal.sign} {measure.goal.value:g}: {met}"
        print(f"{measure.what:{width}}  {measure.value:10.4g} {measure.unit:3}{goal}")


def main_of(doc: str | None, measure: Callable[[], Sequence[Measure]]) -> None:
    """Run a benchmark as a program; status 1 if a goal is missed."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    options = parser.parse_args()
    measures = measure()
    print_measures(measures, as_json=options.json)
    sys.exit(not all(line.met for line in measures))
