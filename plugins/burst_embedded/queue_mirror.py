# SPDX-License-Identifier: MIT
"""All active jobs of the lead, as a client that watches the instance knows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from burst.errors import MALFORMED
from burst.lead import MayBurst, QueueListener
from burst.model.active_job import ActiveJob
from burst.model.job_record import RecordedEvent, RecordEvent
from burst.model.jobid import JobId
from burst.model.lead import JobView
from burst_embedded.calls import ActiveWork


class QueueMirror:
    """What a listener is told of, and which jobs may burst without the attribute."""

    def __init__(
        self,
        listener: QueueListener | None = None,
        may_burst: MayBurst | None = None,
        record: RecordEvent | None = None,
    ) -> None:
        self._record = record
        self._recorded: dict[JobId, int] = {}
        """How many events of each job are recorded."""
        self._listener = listener
        self._may_burst = may_burst
        self._jobs: dict[JobId, ActiveJob] = {}

    @property
    def followed(self) -> bool:
        """Whether there is a listener of the queue."""
        return self._listener is not None

    def jobs(self) -> list[ActiveJob]:
        """Return all active jobs that are known."""
        return list(self._jobs.values())

    def begin(self, work: Iterable[ActiveWork]) -> None:
        """Take the jobs that exist; those of them that ended are no news."""
        active = [each for each in work if not each.over]
        self._jobs = {each.job.id: each.job for each in active}
        self._record_events(active)

    def take(self, work: Iterable[ActiveWork]) -> None:
        """Take in the jobs that changed."""
        if self._listener is None:
            return
        self._record_events(work)
        for each in work:
            if each.over:
                self._jobs.pop(each.job.id, None)
                self._listener.ended(each.job)
            else:
                self._jobs[each.job.id] = each.job
                self._listener.changed()

    def _record_events(self, work: Iterable[ActiveWork]) -> None:
        if self._record is None:
            return
        for each in work:
            number = each.job.id
            for event in each.events[self._recorded.get(number, 0) :]:
                spec = each.jobspec if event.name == "submit" else None
                self._record(
                    RecordedEvent(
                        id=number,
                        timestamp=event.timestamp,
                        name=event.name,
                        context=event.context,
                        jobspec=_without_environment(spec) if spec else msgspec.UNSET,
                    )
                )
            self._recorded[number] = len(each.events)
            if each.over:
                del self._recorded[number]

    def is_wanted(self, job: JobView, work: ActiveWork | None) -> bool:
        """Tell whether the engine is to be shown a job that is not burstable."""
        if self._may_burst is None or work is None:
            return False
        try:
            return self._may_burst(job.userid, work.jobspec)
        except MALFORMED:
            return False


def _without_environment(jobspec: Mapping[str, Any]) -> msgspec.Raw:
    """Return a jobspec as JSON, without the environment, as Flux's journal has it."""
    attributes = jobspec.get("attributes", {})
    system = {**attributes.get("system", {})}
    system.pop("environment", None)
    redacted = {**jobspec, "attributes": {**attributes, "system": system}}
    return msgspec.Raw(msgspec.json.encode(redacted))
