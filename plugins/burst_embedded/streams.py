# SPDX-License-Identifier: MIT
"""Streams of an embedded lead: the instance as it changes, and the service `burst`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from burst.errors import BurstError, LeadGone, Unreadable
from burst.lead import RequestHandler, ServiceRequest
from burst.log import failure
from burst.model.active_job import ActiveJob
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView, LeadView
from burst.request_threads import RequestThreads, read_payload
from burst_embedded import calls
from burst_embedded.calls import (
    ActiveWork,
    ClientResponse,
    InstanceUpdate,
    ServiceCall,
    ServiceReply,
    WireError,
)
from burst_embedded.client import TIMEOUT_S
from burst_embedded.queue_mirror import QueueMirror
from burst_embedded.stream import ClientStream
from burst_embedded.views import RECENT_S


class InstanceWatcher:
    """The latest view of the lead, kept by a thread. Raises LeadGone.

    Jobs that ended are dropped after `recent` seconds.
    """

    def __init__(
        self,
        uri: str,
        wanted: calls.WatchInstance,
        wake: Callable[[], None],
        recent: float = RECENT_S,
        mirror: QueueMirror | None = None,
    ) -> None:
        self._wake = wake
        self._wanted = wanted
        self._mirror = mirror or QueueMirror()
        self._recent = recent
        self._news = threading.Condition()
        self._jobs: dict[JobId, JobView] = {}
        self._ended: dict[JobId, float] = {}
        self._line = ClientStream(uri, wanted)
        self._mirror.begin(self._take(self._line.first))
        self._line.start(self._hear, self._end)

    def view(self, number: int) -> LeadView:
        """Return the view once it includes the InstanceUpdate of that number."""
        with self._news:
            self._news.wait_for(
                lambda: self._line.gone or self._change.number >= number, TIMEOUT_S
            )
            if self._line.gone:
                raise self._line.gone
            if self._change.number < number:
                raise LeadGone("the lead does not tell what changed")
            self._forget()
            return msgspec.structs.replace(
                self._change.view, read_at=time.time(), jobs=dict(self._jobs)
            )

    def active_jobs(self) -> list[ActiveJob]:
        """Return all active jobs. Raises LeadGone, Unreadable if nobody follows."""
        with self._news:
            if self._line.gone:
                raise self._line.gone
            if not self._mirror.followed:
                why = "all jobs of the lead are not known"
                raise Unreadable(why, "follow_queue makes them known")
            return self._mirror.jobs()

    def shuts_down(self) -> bool:
        """Return whether the lead, which is gone, has said before that it stops.

        That may be on its way to us still, and the end of the connection comes after.
        """
        with self._news:
            self._news.wait_for(lambda: self._line.gone, TIMEOUT_S)
        return self._line.leaves

    def close(self) -> None:
        """Stop listening."""
        self._line.close()

    def _hear(self, said: ClientResponse | ServiceCall) -> None:
        if isinstance(said, ClientResponse):
            with self._news:
                self._mirror.take(self._take(said))
                self._news.notify_all()
            self._wake()

    def _end(self) -> None:
        with self._news:
            self._news.notify_all()
        self._wake()

    def _take(self, answer: ClientResponse) -> tuple[ActiveWork, ...]:
        """Take in the jobs that the engine is shown; return all that changed."""
        change = msgspec.convert(answer.payload, InstanceUpdate)
        self._change = msgspec.structs.replace(change, work=())
        work = {each.job.id: each for each in change.work}
        for job in change.view.jobs.values():
            known = job.burstable or job.id in self._wanted.known
            if not known and not self._mirror.is_wanted(job, work.get(job.id)):
                continue
            self._jobs[job.id] = job
            if job.state is JobState.INACTIVE:
                self._ended.setdefault(job.id, time.monotonic())
        return change.work

    def _forget(self) -> None:
        """Drop jobs that ended a while ago."""
        oldest = time.monotonic() - self._recent
        for job_id in [each for each, ended in self._ended.items() if ended < oldest]:
            del self._jobs[job_id], self._ended[job_id]


class EmbeddedService:
    """The service `burst`: each request is answered on one of a few threads.

    Opening raises ServiceTaken, LeadGone.
    """

    def __init__(
        self, uri: str, handler: RequestHandler, holder: Mapping[str, Any]
    ) -> None:
        self._handler = handler
        self._line = ClientStream(uri, msgspec.convert(holder, calls.RegisterService))
        self._workers = RequestThreads("embedded-service")
        self._line.start(self._hear, lambda: None)

    def close(self) -> None:
        """Stop serving. Requests under way get no answer."""
        self._line.close()
        self._workers.close()

    def _hear(self, said: ClientResponse | ServiceCall) -> None:
        if not isinstance(said, ServiceCall):
            return
        method, userid = said.method, said.userid
        try:
            read_payload(msgspec.json.encode(said.payload))
            # All who reach an embedded lead are its owner.
            self._workers.submit(
                method, userid, owner=True, work=lambda: self._serve(said)
            )
        except BurstError as error:
            self._line.reply(ServiceReply(said.number, None, calls.wire_error(error)))

    def _serve(self, asked: ServiceCall) -> None:
        self._line.reply(ServiceReply(asked.number, *self._answer(asked)))

    def _answer(self, asked: ServiceCall) -> tuple[Any, WireError | None]:
        request = ServiceRequest(asked.method, asked.payload, asked.userid, owner=True)
        try:
            return as_json(self._handler(request)), None
        except BurstError as error:
            return None, calls.wire_error(error)
        except Exception as error:  # noqa: BLE001 - the caller waits for an answer
            failure("answering burst.%s", asked.method)
            return None, WireError(
                "burst", f"internal error: {error!r}", "the daemon's log has more"
            )


def as_json(value: Any) -> Any:
    """Return the value as it would arrive over Flux, which sends JSON."""
    return msgspec.json.decode(msgspec.json.encode(value))
