# SPDX-License-Identifier: MIT
"""All tests that this machine can run, then the coverage gates: `python -m tests`."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

from tests.kubelab.build import Unavailable, ensure
from tests.kubernetes.access import GIVEN

# Branch coverage that must be reached, in percent, and of what.
GATES: tuple[tuple[str, int, list[str]], ...] = (
    ("core and model", 100, ["--include=burst/core/*,burst/model/*"]),
    ("everything", 90, []),
)


def main() -> int:
    """Run; return 0 if all passed and every gate is reached."""
    python = [sys.executable, "-m"]
    build()
    # One more than there are processors, as many tests wait for processes. What shares
    # instances stays together.
    workers = ["-n", str((os.cpu_count() or 1) + 1), "--dist=loadgroup"]
    order = ["--no-loadscope-reorder"]  # tests/conftest.py has the longest come first
    coverage = ["--cov", "--cov-report="]
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


def build() -> None:
    """Build the Kubernetes of the tests, if it is not there: minutes, the first time.

    Its progress goes to the terminal, which workers do not have. What cannot be had is
    said with the tests that are skipped for want of it.
    """
    if GIVEN not in os.environ:
        with contextlib.suppress(Unavailable):
            ensure(kwok=True)


if __name__ == "__main__":
    sys.exit(main())
