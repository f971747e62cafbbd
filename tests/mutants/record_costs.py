# SPDX-License-Identifier: MIT
"""A plugin of pytest: writes what each test costs, in the process that runs it."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

_NEVER = {"kubernetes", "e2e", "nodes", "kind", "minutes", "month", "multiuser", "site"}
_NEVER |= {"programs", "prometheus", "chromium"}
# Of a test on a real Flux that holds the lead itself; others start a daemon.
_HOLDS_LEAD = re.compile(r"FluxLead|: Lead\b|burst\.flux")
_OUTCOMES: list[str] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what `tests/mutants/covering.py` says."""
    real = os.environ["MUTANTS_TESTS"] == "flux"
    kept = []
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        held = not real or _HOLDS_LEAD.search(item.path.read_text())
        if held and not marks & _NEVER and ("flux" in marks) == real:
            kept.append(item)
    items[:] = kept


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember how setup, call and teardown went."""
    _OUTCOMES.append(report.outcome)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Measure, and write a line."""
    _OUTCOMES.clear()
    started, before = time.monotonic(), os.times()
    yield
    wall, after = time.monotonic() - started, os.times()
    processor = sum(after[:4]) - sum(before[:4])
    passed = set(_OUTCOMES) == {"passed"}
    line = [item.nodeid, passed, round(processor, 3), round(wall, 3)]
    with open(os.environ["MUTANTS_COSTS"], "a") as file:
        file.write(json.dumps(line) + "\n")
