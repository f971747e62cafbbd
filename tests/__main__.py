# SPDX-License-Identifier: MIT
"""The tests that need Python alone: `python -m tests [--measured] [OPTION ...]`.

With --measured, as in CI, the coverage gates follow. The rest are pytest's options.
`make e2e` runs the tests that need more (tests/stages.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from tests.stages import PURE, workers

# Branch coverage that must be reached, in percent, and of what.
GATES: tuple[tuple[str, int, list[str]], ...] = (
    (
        "core and model",
        100,
        [
            "--include=burst/core/*,burst/model/*,plugins/burst_ensemble/core/*,"
            "plugins/burst_ensemble_agent/report.py"
        ],
    ),
    ("everything", 90, []),
)
_MEASURED = "--measured"


def main(words: Sequence[str]) -> int:
    """Run; return 0 if all passed and, if it is measured, every gate is reached."""
    measured = _MEASURED in words
    python = [sys.executable, "-m"]
    # Where this is set, each of the hundreds of processes would compile all anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # More than there are processors, as some tests wait for processes; each worker
    # imports and collects all, which takes it ten seconds.
    count = 3 * (os.cpu_count() or 1) // 2 + 1
    tests = [*python, "pytest", "-q", "-m", PURE, *workers(count)]
    # What one waits for is to be seen by who made it slow.
    tests += ["--durations=10", "--durations-min=20"]
    tests += ["--cov", "--cov-report="] if measured else []
    tests += [word for word in words if word != _MEASURED]
    status = subprocess.run(tests, check=False).returncode
    return (_pass_gates() or status) if measured else status


def _pass_gates() -> int:
    """Say what is covered; return 0 if it is enough."""
    status = 0
    verdicts = []
    for what, least, only in GATES:
        report = [sys.executable, "-m", "coverage", "report", f"--fail-under={least}"]
        done = subprocess.run(
            [*report, *only], check=False, capture_output=True, text=True
        )
        lines = done.stdout.strip().splitlines() or [done.stderr.strip()]
        missed = done.returncode != 0
        if missed:
            sys.stdout.write(done.stdout or done.stderr)
        total = next((line.split()[-1] for line in lines if "TOTAL" in line), "?")
        verdict = "MISSED" if missed else "reached"
        verdicts.append(f"coverage of {what}: {total}, gate {least}%: {verdict}")
        status = status or done.returncode
    sys.stdout.write("\n".join([*verdicts, ""]))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
