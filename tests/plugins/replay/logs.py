# SPDX-License-Identifier: MIT
"""Reads lines as a log of one format."""

from __future__ import annotations

from collections.abc import Iterable

from burst_replay.collected_jobs import CollectedJobs
from burst_replay.read_trace import Reader
from burst_replay.trace import Trace


def read_with(reader: Reader, lines: Iterable[str]) -> Trace:
    """Return the jobs that a reader finds."""
    found = CollectedJobs("x")
    reader(found, lines)
    return found.trace()
