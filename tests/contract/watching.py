# SPDX-License-Identifier: MIT
"""Waiting for a lead to show something: by its wake-ups, with a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from burst.lead import Lead
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView, LeadView
from tests.support.waiting import HANG_S

# What no wake-up tells of (the end of an allocation) is looked at this often.
_LOOK_S = 0.2


class Watch:
    """A lead that is listened to."""

    def __init__(self, lead: Lead, known: Collection[JobId] = frozenset()) -> None:
        self.lead = lead
        self._woken = threading.Event()
        lead.listen(self._woken.set, lambda: known)

    def until(self, holds: Callable[[LeadView], bool], what: str) -> LeadView:
        """Return the first picture for which it holds; fail at the deadline."""
        deadline = time.monotonic() + HANG_S
        while True:
            self._woken.clear()
            view = self.lead.observe()
            if holds(view):
                return view
            assert time.monotonic() < deadline, f"not seen: {what}; last: {view}"
            self._woken.wait(_LOOK_S)

    def job(self, job: JobId, holds: Callable[[JobView], bool], what: str) -> JobView:
        """Return the job once it holds for it; fail at the deadline."""

        def seen(view: LeadView) -> bool:
            return job in view.jobs and holds(view.jobs[job])

        return self.until(seen, f"job {job} {what}").jobs[job]

    def state(self, job: JobId, state: JobState) -> JobView:
        """Return the job once it is in that state."""
        return self.job(job, lambda view: view.state is state, f"in {state}")

    def online(self, *ranks: int) -> LeadView:
        """Return the picture once these ranks are online."""
        return self.until(lambda view: set(ranks) <= view.online, f"{ranks} online")

    def settle(self) -> None:
        """Return once no wake-up came for a while: what happened before is told of."""
        while self._woken.wait(3 * _LOOK_S):
            self._woken.clear()

    @contextmanager
    def woken_by(self, what: str) -> Iterator[None]:
        """Fail unless what happens inside the block wakes the engine."""
        self.settle()
        yield
        assert self._woken.wait(HANG_S), f"not woken by {what}"
