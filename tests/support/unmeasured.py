# SPDX-License-Identifier: MIT
"""Processes whose coverage is not measured."""

from __future__ import annotations

from collections.abc import Sequence

_STARTS_COVERAGE = ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")


def unmeasured(argv: Sequence[str]) -> list[str]:
    """Return a command that runs this one without coverage, in the same process.

    For a process that the test interrupts so that an exception is raised, as Ctrl-C
    does. Where that comes while coverage holds the lock of its data, the lock is never
    released, and the process waits for it forever (coverage 7.17, `lock_data` in
    collector.py; coveragepy issue 1892).
    """
    without = [word for name in _STARTS_COVERAGE for word in ("-u", name)]
    return ["env", *without, *argv]
