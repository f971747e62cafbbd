# SPDX-License-Identifier: MIT
"""What all tests share: counts that the end of the run prints."""

from collections import Counter

COUNTS: Counter[str] = Counter()


def pytest_terminal_summary(terminalreporter):
    for what, count in COUNTS.items():
        terminalreporter.write_line(f"{what}: {count}")
