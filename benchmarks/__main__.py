# SPDX-License-Identifier: MIT
"""Run every benchmark in turn, then print a table of goals and verdicts.

python -m benchmarks [--json]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence

import msgspec

from benchmarks.table import Result, as_builtins, lines

NAMES = (
    "plan",
    "waiting",
    "forecast",
    "judging",
    "intake",
    "latency",
    "path",
    "idle",
    "fluxion",
    "week",
    "minicluster",
    "many_bursts",
    "lammps",
    "replay",
    "ensemble",
    "start",
)
_ENDS = """\
A missed goal is a finding: the exit status is 1 only if a benchmark failed to run.
Without flux on PATH, benchmarks that need a real Flux are reported as skipped.
"""


class Failed(msgspec.Struct, frozen=True):
    """A benchmark that failed to run."""

    why: str


Outcome = Result | Failed


def main(arguments: list[str]) -> int:
    """Run all benchmarks; return 1 if any of them failed to run."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog=_ENDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args(arguments).json
    outcomes: dict[str, Outcome] = {}
    for name in NAMES:
        if not as_json:
            print(f"{name} ...", flush=True)
        outcomes[name] = run_alone(name)
        if not as_json:
            print("\n".join(f"  {line}" for line in tell(outcomes[name])), flush=True)
    if as_json:
        print(json.dumps({n: to_json(o) for n, o in outcomes.items()}, indent=2))
    else:
        print("\n".join(["", *summary(outcomes)]))
    return int(any(isinstance(found, Failed) for found in outcomes.values()))


def run_alone(name: str) -> Outcome:
    """Run a benchmark in a process of its own, so that it does not slow later ones."""
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        return Failed(f"exit status {done.returncode}; what it said is above")
    return msgspec.json.decode(done.stdout, type=Result)


def tell(outcome: Outcome) -> list[str]:
    """Return an outcome as lines for people."""
    if isinstance(outcome, Failed):
        return [f"FAILED: {outcome.why}"]
    return lines(outcome)


def to_json(outcome: Outcome) -> dict[str, object]:
    """Return an outcome for JSON."""
    if isinstance(outcome, Failed):
        return {"failed": outcome.why}
    return as_builtins(outcome)


def summary(outcomes: Mapping[str, Outcome]) -> Sequence[str]:
    """Return a line for each goal, and for each benchmark without a result."""
    rows: list[tuple[str, str, str]] = []
    for name, outcome in outcomes.items():
        if isinstance(outcome, Failed) or outcome.skipped:
            rows.append((name, "", tell(outcome)[0]))
            continue
        for line in outcome.measures:
            if line.goal:
                value = f"{line.value:.4g} {line.unit}"
                rows.append((f"{name}: {line.what}", value, line.verdict))
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return [f"{w:{widths[0]}}  {v:>{widths[1]}}  {end}" for w, v, end in rows]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
