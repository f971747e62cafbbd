# SPDX-License-Identifier: MIT
"""What all tests share: skips said aloud, and counts that the end of a run prints."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from typing import Any

import pytest

COUNTS: Counter[str] = Counter()
# What marked tests need, and what to say where that is not there.
NEEDS = {
    "flux": "a real Flux (flux on PATH)",
    "kubernetes": "a real API server (-rs says what is missing)",
    "e2e": "real nodes (make e2e)",
}
_MARKED: dict[str, Counter[str]] = {mark: Counter() for mark in NEEDS}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run."""
    missing = {}
    if not shutil.which("flux"):
        missing["flux"] = "no flux on PATH"
    if "KUBELAB" not in os.environ:
        missing["e2e"] = "no real nodes: `make e2e` makes them and runs these"
    for item in items:
        for mark, reason in missing.items():
            if item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Count what ran and what was skipped of each kind."""
    report = (yield).get_result()
    if report.when == "call" or report.skipped:
        outcome = "skipped" if report.skipped else "ran"
        for mark, counts in _MARKED.items():
            if item.get_closest_marker(mark):
                counts[outcome] += 1


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what was tried, and what was not for want of what."""
    for what, count in COUNTS.items():
        terminalreporter.write_line(f"{what}: {count}")
    for mark, counts in _MARKED.items():
        if counts["ran"]:
            terminalreporter.write_line(f"tests marked {mark}: {counts['ran']} ran")
        if counts["skipped"]:
            terminalreporter.write_line(
                f"tests marked {mark}: {counts['skipped']} SKIPPED"
                f" for want of {NEEDS[mark]}"
            )
