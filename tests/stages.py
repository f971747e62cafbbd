# SPDX-License-Identifier: MIT
"""Which tests run where: `make test` has what is pure, a stage of `make e2e` the rest.

A stage is a mark. A test with several marks is in the stage that needs most: one marked
flux and kind is in the stage kind.
"""

from __future__ import annotations

import re
from pathlib import Path

# Those that need most come first.
STAGES = (
    "kind",
    "nodes",
    "kubernetes",
    "month",
    "site",
    "multiuser",
    "slurm",
    "flux",
    "machine",
    "programs",
)

PURE = " and ".join(f"not {mark}" for mark in STAGES)
"""Of pytest's -m: the tests that need Python alone."""


def of_stage(stage: str) -> str:
    """Return what pytest's -m takes to choose the tests of a stage."""
    more = STAGES[: STAGES.index(stage)]
    return " and ".join([stage, *(f"not {mark}" for mark in more)])


def files_of(stage: str) -> list[str]:
    """Return the files that have its tests: each names its mark (tests/conftest.py).

    Each worker collects what it is given: all the others take it ten seconds.
    """
    names = re.compile(rf"\bmark\.{stage}\b")
    paths = sorted(Path("tests").rglob("test_*.py"))
    return [str(path) for path in paths if names.search(path.read_text())]


def workers(count: int) -> list[str]:
    """Return pytest-xdist's options: tests that share a world stay in one worker."""
    # tests/conftest.py has the longest come first.
    return ["-n", str(count), "--dist=loadgroup", "--no-loadscope-reorder"]
