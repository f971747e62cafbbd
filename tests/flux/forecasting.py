# SPDX-License-Identifier: MIT
"""A daemon in this process that forecasts starts on a real Flux."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, contextmanager
from typing import Any

from burst.config import parse
from burst.core.plan.estimate import StartEstimate
from burst.lead import ServiceRequest
from burst.model.jobid import JobId
from burst.runtime.session import Session
from burst.wakeup import WakeUp
from tests.flux_instance import FluxInstance


class Daemon:
    """A daemon's session that ticks on a thread, and what it told first of each job."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.told: dict[JobId, StartEstimate] = {}
        self._going = True
        self._thread = threading.Thread(target=self._tick)
        self._thread.start()

    def _tick(self) -> None:
        while self._going:
            self.session.tick(0.5)
            starts = self.session.engine.snapshot.world.forecasts or {}
            for job, start in starts.items():
                self.told.setdefault(job, start)

    def stop(self) -> None:
        self._going = False
        self.session.wake()
        self._thread.join()
        self.session.close()

    def ask(self, method: str, **payload: str) -> dict[str, Any]:
        request = ServiceRequest(method, dict(payload), 0, owner=True)
        return self.session.api.answer(request)


@contextmanager
def daemon(instance: FluxInstance, tables: Mapping[str, Any]) -> Iterator[Daemon]:
    with closing(instance.lead()) as lead:
        settings = parse(tables, "test")
        session = Session(lead, settings, WakeUp(), Future)
        session.start()
        found = Daemon(session)
        try:
            yield found
        finally:
            found.stop()
