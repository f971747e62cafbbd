# SPDX-License-Identifier: MIT
"""How much of what is wrong the tests catch: `python -m tests.mutants --help`."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tests.mutants.covering import Covering
from tests.mutants.overlay import Overlay
from tests.mutants.sample import ROOMS, Mutant, mutated, sample

_ROOT = Path(__file__).parents[2]
# What runs first, in processor seconds and files: most mutants are caught here.
_FIRST = (3.0, 6)
# Of a test that waits for what never comes, and of a loop without an end.
_HANGS, _LOOPS = 60.0, 30.0


class Trial:
    """Runs mutants of one tree against its own tests."""

    def __init__(self, tree: Path, covering: Covering, budget: float) -> None:
        self.tree = tree
        self.covering = covering
        self._budget = budget

    def judge(self, overlay: Overlay, mutant: Mutant) -> dict[str, Any]:
        """Return what became of a mutant, and which test caught it."""
        verdict: dict[str, Any] = {**mutant._asdict(), "ran": 0, "processor": 0.0}
        found = mutated(self.tree, mutant)
        if found is None:
            return {**verdict, "outcome": "absent"}
        text, place = found
        before = (self.tree / mutant.file).read_text()
        changes = difflib.unified_diff(before.split("\n"), text.split("\n"), n=0)
        diff = [line for line in changes if line[:2] not in ("--", "++", "@@")]
        verdict |= {"line": place.start[0], "diff": diff}
        batches = self._batches(self.covering.tests(mutant.file, place))
        if not batches[0]:
            real = mutant.file.startswith("burst/flux/") and not shutil.which("flux")
            return {**verdict, "outcome": "not run here" if real else "no test"}
        for batch in filter(None, batches):
            answer = overlay.run(self._job(batch, stop=True), mutant.file, text)
            verdict["ran"] += answer["ran"]
            verdict["processor"] += answer["processor"]
            if answer["failed"]:
                return {**verdict, "outcome": "caught", "by": answer["failed"][0]}
        return {**verdict, "outcome": "survived"}

    def _batches(self, tests: list[str]) -> tuple[list[str], list[str]]:
        first: list[str] = []
        rest: list[str] = []
        files: set[str] = set()
        spent = 0.0
        for test in tests:
            if (cost := self.covering.costs.get(test)) is None:
                continue
            if spent + cost.processor > self._budget:
                continue
            spent += cost.processor
            files.add(test.partition("::")[0])
            few = spent <= _FIRST[0] and len(files) <= _FIRST[1]
            (first if few or not first else rest).append(test)
        return first, rest

    def _job(self, tests: list[str], *, stop: bool) -> dict[str, Any]:
        costs = [c for c in map(self.covering.costs.get, tests) if c]
        wall = sum(cost.wall for cost in costs)
        # Seconds of the processor do not depend on what else the machine does.
        processor = sum(cost.processor for cost in costs)
        return {
            "tests": tests,
            "stop": stop,
            "each": max(_HANGS, 10 * max(cost.wall for cost in costs)),
            "seconds": max(2 * _HANGS, 10 * wall),
            "processor": int(_LOOPS + 10 * processor),
        }

    def unreliable(self, overlay: Overlay, tests: set[str]) -> set[str]:
        """Return which tests fail when nothing is changed."""
        known = sorted(tests & self.covering.costs.keys())
        return {*(overlay.run(self._job(known, stop=False))["failed"] if known else ())}


def run(trial: Trial, mutants: list[Mutant], workers: int) -> list[dict[str, Any]]:
    """Judge all; a catch by a test that fails without any change does not count."""
    verdicts: dict[Mutant, dict[str, Any]] = {}
    overlays: SimpleQueue[Overlay] = SimpleQueue()

    def judge(mutant: Mutant) -> None:
        overlay = overlays.get()
        verdicts[mutant] = trial.judge(overlay, mutant)
        overlays.put(overlay)
        sys.stderr.write("." if verdicts[mutant]["outcome"] == "caught" else "S")
        sys.stderr.flush()

    with contextlib.ExitStack() as stack, ThreadPoolExecutor(workers) as pool:
        for number in range(workers):
            root = stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants"))
            overlays.put(Overlay(trial.tree, Path(root, str(number))))
        overlay = overlays.get()
        if why := trial.unreliable(overlay, set(list(trial.covering.costs)[:9])):
            raise RuntimeError(f"without a change: {sorted(why)}")
        overlays.put(overlay)
        todo = mutants
        while todo:
            list(pool.map(judge, todo))
            named = {verdicts[mutant].get("by", "") for mutant in todo}
            overlay = overlays.get()
            lost = trial.unreliable(overlay, named)
            overlays.put(overlay)
            for test in lost:
                sys.stderr.write(f"\nfails without a change: {test}\n")
                trial.covering.costs.pop(test, None)
            todo = [mutant for mutant in todo if verdicts[mutant].get("by") in lost]
        while not overlays.empty():
            overlays.get().close()
    return [verdicts[mutant] for mutant in mutants]


def _table(verdicts: list[dict[str, Any]]) -> tuple[str, float]:
    lines, share = [], 0.0
    for room in (*ROOMS, ""):
        ours = [v["outcome"] for v in verdicts if v["file"].startswith(room)]
        counts = Counter(ours)
        judged = sum(counts[name] for name in ("caught", "survived", "no test"))
        share = 100 * counts["caught"] / judged if judged else 100.0
        told = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        lines.append(f"{room or 'all':12} {share:5.1f} % of {judged:3} caught: {told}")
    return "\n".join(lines), share


def _words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tree", type=Path, default=_ROOT, help="whose code and tests")
    parser.add_argument("--only", default="", help="of FILE:FUNCTION that contain this")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--budget", type=float, default=30, help="seconds of tests")
    parser.add_argument("--json", type=Path, help="write all verdicts there")
    parser.add_argument("--against", type=Path, help="say what was caught there alone")
    parser.add_argument("--least", type=float, default=0, help="percent to be caught")
    return parser.parse_args()


def main() -> int:
    """Choose, run, print; return 0 if the share is reached."""
    words = _words()
    tree = words.tree.resolve()
    mutants = [
        mutant
        for mutant in sample(_ROOT, words.count, words.seed)
        if words.only in f"{mutant.file}:{mutant.function}"
    ]
    covering = Covering(tree, _ROOT / ".mutants", words.workers)
    verdicts = run(Trial(tree, covering, words.budget), mutants, words.workers)
    known = {}
    if words.against:
        known = {
            tuple(v[f] for f in Mutant._fields): v
            for v in json.loads(words.against.read_text())
        }
    sys.stdout.write("\n")
    for verdict in verdicts:
        if verdict["outcome"] not in ("caught", "absent"):
            then = known.get(tuple(verdict[f] for f in Mutant._fields), {})
            lost = "LOST " if then.get("outcome") == "caught" else ""
            head = "{outcome}: {file}:{line} {function} {operator}, {ran} tests ran"
            sys.stdout.write(
                "\n".join([lost + head.format_map(verdict), *verdict["diff"], ""])
            )
    table, share = _table(verdicts)
    used = os.times()
    sys.stdout.write(f"{table}\nprocessor seconds: {sum(used[:4]):.0f}\n")
    if words.json:
        words.json.write_text(json.dumps(verdicts, indent=1))
    return int(share < words.least)


if __name__ == "__main__":
    sys.exit(main())
