# SPDX-License-Identifier: MIT
"""A listener to all jobs of a lead that keeps what it is told."""

from __future__ import annotations

from burst.model.active_job import ActiveJob


class Told:
    """How often jobs changed or were lost, and those that ended."""

    def __init__(self) -> None:
        self.changes = 0
        self.over: list[ActiveJob] = []
        self.losses = 0

    def changed(self) -> None:
        self.changes += 1

    def ended(self, job: ActiveJob) -> None:
        self.over.append(job)

    def lost(self) -> None:
        self.losses += 1
