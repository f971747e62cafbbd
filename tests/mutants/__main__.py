# SPDX-License-Identifier: MIT
"""How much of what is wrong the tests catch: `python -m tests.mutants --help`."""

from __future__ import annotations

import argparse
import difflib
import json
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.mutants.covering import Copy, Covering
from tests.mutants.sample import Mutant, mutated, room_of, sample

_ROOT = Path(__file__).parents[2]


def judge(copy: Copy, covering: Covering, mutant: Mutant, budget: float) -> Any:
    """Return what became of a mutant, and which test caught it."""
    path = copy.root / mutant.file
    before, changed = path.read_text(), mutated(copy.root, mutant)
    if changed is None:
        return {**mutant._asdict(), "diff": [], "outcome": "absent"}
    lines = difflib.unified_diff(before.splitlines(), changed.splitlines(), n=0)
    diff = [line for line in lines if line[:2] not in ("--", "++", "@@")]
    verdict = {**mutant._asdict(), "diff": diff}
    batches = covering.batches(mutant, budget)
    if not batches:
        real = mutant.file.startswith("burst/flux/") and not shutil.which("flux")
        return {**verdict, "outcome": "needs Flux" if real else "no test"}
    for tests in batches:
        try:
            path.write_text(changed)
            failed = copy.failed(tests)
        finally:
            path.write_text(before)
        # What names no test is an import that fails, or tests that are not there.
        if failed and "::" not in failed and (always := copy.failed(tests)):
            raise RuntimeError(f"fails without a change: {always}: {tests}")
        if failed:
            return {**verdict, "outcome": "caught", "by": failed}
    return {**verdict, "outcome": "survived", "ran": sum(map(len, batches))}


def table(verdicts: list[Any]) -> tuple[str, float]:
    """Return the share that is caught in each room and in all, which comes last."""
    lines, share = [], 0.0
    for room in (*sorted({room_of(v["file"]) for v in verdicts}), ""):
        counts = Counter(
            v["outcome"] for v in verdicts if room in ("", room_of(v["file"]))
        )
        judged = counts.total() - counts["needs Flux"] - counts["absent"]
        share = 100 * counts["caught"] / judged if judged else 100.0
        told = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        lines.append(f"{room or 'all':29} {share:5.1f} % of {judged:3} caught: {told}")
    return "\n".join(lines), share


def _words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.mutants", description=__doc__)
    parser.add_argument("tests", nargs="*", default=["tests"], help="all if none")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", type=Path, help="what was not caught in this JSON")
    parser.add_argument("--tree", type=Path, default=_ROOT, help="whose code and tests")
    parser.add_argument("--kept", type=Path, help="measured there before, or now")
    parser.add_argument("--budget", type=float, default=30, help="seconds of tests")
    parser.add_argument("--json", type=Path, help="write all verdicts there")
    parser.add_argument("--least", type=float, default=0, help="percent to be caught")
    return parser.parse_args()


def main() -> int:
    """Choose, run, print; return 0 if the share is reached."""
    words = _words()
    with tempfile.TemporaryDirectory(prefix="mutants") as root:
        copy = Copy(words.tree.resolve(), Path(root, "tree"))
        kept = (words.kept or Path(root, "kept")).absolute()
        if not kept.exists():
            kept.mkdir()
            copy.measure(kept, words.tests)
        covering = Covering(kept)
        if words.again:
            read = json.loads(words.again.read_text())
            left = [verdict for verdict in read if verdict["outcome"] != "caught"]
            mutants = [Mutant(*map(v.get, Mutant._fields)) for v in left]
        else:
            mutants = sample(copy.root, words.count, words.seed)
        verdicts = []
        for mutant in mutants:
            verdicts.append(judge(copy, covering, mutant, words.budget))
            sys.stderr.write("." if verdicts[-1]["outcome"] == "caught" else "S")
            sys.stderr.flush()
        named = {v["by"] for v in verdicts if "::" in v.get("by", "")}
        if named and (failed := copy.failed(sorted(named))):
            raise RuntimeError(f"fails without a change: {failed}")
    for verdict in verdicts:
        if verdict["outcome"] != "caught":
            head = f"\n{verdict['outcome']}: {verdict['file']}:{verdict['line']}"
            sys.stdout.write("\n".join([head, *verdict["diff"], ""]))
    told, share = table(verdicts)
    sys.stdout.write(f"\n{told}\n")
    if words.json:
        words.json.write_text(json.dumps(verdicts, indent=1))
    return int(share < words.least)


if __name__ == "__main__":
    sys.exit(main())
