# SPDX-License-Identifier: MIT
"""The tests, then the coverage gates: `python -m tests`.

What needs a Kubernetes, or minutes for one test, is skipped and counted here;
`make e2e` runs it.
"""

from __future__ import annotations

import os
import subprocess
import sys

# Branch coverage that must be reached, in percent, and of what.
GATES: tuple[tuple[str, int, list[str]], ...] = (
    ("core and model", 100, ["--include=burst/core/*,burst/model/*"]),
    ("everything", 90, []),
)


def main() -> int:
    """Run; return 0 if all passed and every gate is reached."""
    python = [sys.executable, "-m"]
    # One more than there are processors, as many tests wait for processes. What shares
    # instances stays together.
    workers = ["-n", str((os.cpu_count() or 1) + 1), "--dist=loadgroup"]
    order = ["--no-loadscope-reorder"]  # tests/conftest.py has the longest come first
    coverage = ["--cov", "--cov-report="]
    # Where this is set, each of the hundreds of processes would compile all anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    tests = [*python, "pytest", "-q", *workers, *order, *coverage, *sys.argv[1:]]
    status = subprocess.run(tests, check=False).returncode
    verdicts = []
    for what, least, only in GATES:
        report = [*python, "coverage", "report", f"--fail-under={least}", *only]
        done = subprocess.run(report, check=False, capture_output=True, text=True)
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
    sys.exit(main())
