# SPDX-License-Identifier: MIT
"""The lead's side of the clients' socket: calls, streams, and the service `burst`.

The socket is in a directory that only the instance owner can enter, so everyone who
can connect is the owner.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import zmq

from burst.errors import BurstError, LeadError, NoDaemon, ServiceTaken
from burst.log import failure, say
from burst.model.jobid import JobId
from burst.model.lead import JobState, LeadIdentity
from burst.model.request import parse_name
from burst_embedded import calls
from burst_embedded.calls import (
    ClientRequest,
    ClientResponse,
    InstanceUpdate,
    ServiceCall,
    ServiceReply,
    WireError,
)
from burst_embedded.job import EmbeddedJob
from burst_embedded.jobqueue import JobQueue
from burst_embedded.views import active_work, job_info, lead_view
from burst_embedded.wire import (
    GOODBYE_S,
    Goodbye,
    Heartbeat,
    Leave,
    Output,
    serving_socket,
)

_NO_DAEMON = NoDaemon(
    "no daemon serves this lead", "start one with `burst daemon -c FILE`"
)
_Client = bytes
_Stream = tuple[_Client, int]
"""A client, and the number of the call that opened the stream."""


class Control:
    """All clients of the lead. `receive` is to be called when `socket` is readable."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        path: Path,
        queue: JobQueue,
        identity: LeadIdentity,
    ) -> None:
        self._queue = queue
        self._identity = identity
        self._number = 0
        self._watchers: dict[_Stream, calls.WatchInstance] = {}
        self._attached: dict[_Stream, JobId] = {}
        self._holder: tuple[_Client, calls.RegisterService] | None = None
        self._asked: dict[int, _Stream] = {}
        self._ask_numbers = itertools.count(1)
        self.socket = serving_socket(context)
        self.socket.setsockopt(zmq.SNDHWM, 0)
        self.socket.bind(f"ipc://{path}")
        self._answers: dict[type, Callable[[Any], Any]] = {
            calls.Identify: lambda _: self._identity,
            calls.Submit: self._submit,
            calls.SetUrgencies: self._urge,
            calls.SetConfinement: self._confine,
            calls.MergeMemos: self._note,
            calls.RaiseException: self._throw,
            calls.FinishJob: self._finish,
            calls.DrainCall: lambda body: queue.drain(body.ranks, body.reason),
            calls.UndrainCall: lambda body: queue.undrain(body.ranks),
            calls.ListJobs: self._list,
            calls.FindJobs: self._find,
            calls.Lookup: lambda body: self._queue.find(body.job).jobspec,
            calls.Sync: self._sync,
        }
        self._openings: dict[type, Callable[[_Stream, Any], None]] = {
            calls.WatchInstance: self._watch,
            calls.Attach: self._attach,
            calls.RegisterService: self._register,
            calls.RequestService: self._request,
        }

    def receive(self) -> None:
        """Carry out the requests that have arrived."""
        while self.socket.poll(0):
            client, *_, frame = self.socket.recv_multipart()
            try:
                said = calls.decode_from_client(frame)
            except (msgspec.MsgspecError, RecursionError) as error:
                say("a client said what cannot be understood: %s", error)
                continue
            if isinstance(said, ServiceReply):
                self._reply(client, said)
            elif isinstance(said, ClientRequest):
                self._call((client, said.number), said)

    def push(self) -> None:
        """Send what changed since the last time to clients that watch."""
        if not self._queue.untold:
            return
        self._queue.untold = False
        changed = [
            self._queue.jobs[job_id]
            for job_id in sorted(self._queue.changed)
            if job_id in self._queue.jobs
        ]
        self._queue.changed.clear()
        self._number += 1
        for stream, wanted in list(self._watchers.items()):
            self._tell_change(stream, wanted, changed)
        ended = {job.id: job for job in changed if job.state is JobState.INACTIVE}
        for stream, job_id in list(self._attached.items()):
            if job_id in ended:
                self._close_attached(stream, ended[job_id])

    def output(self, piece: Output) -> None:
        """Pass a piece of output on to those who are attached to its job."""
        for stream, job_id in list(self._attached.items()):
            if job_id == piece.job:
                self._send(stream[0], ClientResponse(stream[1], piece, last=False))

    def beat(self) -> None:
        """Send heartbeats; sending to a client that is gone fails and removes it."""
        waiting = {client for client, _ in [*self._watchers, *self._attached]}
        if self._holder:
            waiting.add(self._holder[0])
        for client in waiting:
            self._send(client, Heartbeat())

    def close(self) -> None:
        """Tell clients that watch that the lead stops, wait a short time, and close.

        ZeroMQ drops what a client has not read yet when the connection ends.
        """
        leave = Leave("the lead is stopping", stopping=True)
        told = {client for client, _ in self._watchers}
        waiting = {client for client in told if self._send(client, leave)}
        deadline = time.monotonic() + GOODBYE_S
        while waiting and time.monotonic() < deadline:
            self.socket.poll(100)
            waiting -= set(self._receive_goodbyes())
        self.socket.close()

    def _receive_goodbyes(self) -> Iterator[_Client]:
        """Yield the clients that have read that the lead stops."""
        while self.socket.poll(0):
            client, *_, frame = self.socket.recv_multipart()
            with suppress(msgspec.MsgspecError, RecursionError):
                if isinstance(calls.decode_from_client(frame), Goodbye):
                    yield client

    def _call(self, stream: _Stream, call: ClientRequest) -> None:
        client, number = stream
        kind = type(call.body)
        try:
            if kind in self._openings:
                self._openings[kind](stream, call.body)
                return
            answer = ClientResponse(number, self._answers[kind](call.body))
        except BurstError as error:
            answer = ClientResponse(number, fault=calls.wire_error(error))
        except Exception as error:  # noqa: BLE001 - one odd call must not end the lead
            failure("answering %s", kind.__name__)
            fault = WireError(
                "lead", f"internal error: {error!r}", "the lead's log has more"
            )
            answer = ClientResponse(number, fault=fault)
        self._send(client, answer)

    def _send(self, client: _Client, message: calls.ToClient) -> bool:
        """Send, or remove a client that is gone."""
        try:
            frame = msgspec.msgpack.encode(message)
            self.socket.send_multipart([client, frame], zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise
            self._forget(client)
            return False
        return True

    def _forget(self, client: _Client) -> None:
        for streams in (self._watchers, self._attached):
            for stream in [each for each in streams if each[0] == client]:
                streams.pop(stream)
        if self._holder and client == self._holder[0]:
            self._holder = None
            waiting, self._asked = self._asked, {}
            fault = calls.wire_error(_NO_DAEMON)
            for asker, number in waiting.values():
                self._send(asker, ClientResponse(number, fault=fault))

    def _submit(self, body: calls.Submit) -> JobId:
        return self._queue.submit(
            body.jobspec, body.urgency, os.getuid(), time.time()
        ).id

    def _urge(self, body: calls.SetUrgencies) -> dict[JobId, str]:
        return _failures(body.urgencies, self._queue.set_urgency)

    def _confine(self, body: calls.SetConfinement) -> dict[JobId, str]:
        return _failures(body.lent, self._queue.confine)

    def _note(self, body: calls.MergeMemos) -> dict[JobId, str]:
        return _failures(body.memos, self._queue.merge_memo)

    def _throw(self, body: calls.RaiseException) -> None:
        self._queue.raise_exception(body.job, body.kind, body.note, time.time())

    def _finish(self, body: calls.FinishJob) -> bool:
        done = self._queue.finish_held(body.job, body.exit_status, time.time())
        piece = Output(body.job, 0, 1, body.output.encode())
        if done and self._queue.take_output(piece):
            self.output(piece)
        return done

    def _list(self, body: calls.ListJobs) -> list[calls.JobInfo]:
        wanted = body.jobs or tuple(self._queue.jobs)
        return [job_info(self._queue.find(job_id)) for job_id in wanted]

    def _find(self, body: calls.FindJobs) -> dict[str, JobId]:
        named = ((parse_name(job.jobspec), job.id) for job in self._queue.jobs.values())
        return {name: job_id for name, job_id in named if name in body.names}

    def _sync(self, _: calls.Sync) -> int:
        self.push()
        return self._number

    def _watch(self, stream: _Stream, body: calls.WatchInstance) -> None:
        self._watchers[stream] = body
        self._tell_change(stream, body, list(self._queue.jobs.values()))

    def _tell_change(
        self, stream: _Stream, wanted: calls.WatchInstance, jobs: list[EmbeddedJob]
    ) -> None:
        view = lead_view(self._queue.pool, jobs, wanted, time.time())
        work = tuple(map(active_work, jobs)) if wanted.whole else ()
        change = InstanceUpdate(self._number, view, work)
        self._send(stream[0], ClientResponse(stream[1], change, last=False))

    def _attach(self, stream: _Stream, body: calls.Attach) -> None:
        job = self._queue.find(body.job)
        self._attached[stream] = job.id
        for piece in job.output:
            self._send(stream[0], ClientResponse(stream[1], piece, last=False))
        if job.state is JobState.INACTIVE:
            self._close_attached(stream, job)

    def _close_attached(self, stream: _Stream, job: EmbeddedJob) -> None:
        self._attached.pop(stream, None)
        self._send(stream[0], ClientResponse(stream[1], job_info(job)))

    def _register(self, stream: _Stream, body: calls.RegisterService) -> None:
        # The process that serves may have ended meanwhile.
        if self._holder and self._send(self._holder[0], Heartbeat()):
            raise _taken(self._holder[1])
        self._holder = (stream[0], body)
        self._send(stream[0], ClientResponse(stream[1]))

    def _request(self, stream: _Stream, body: calls.RequestService) -> None:
        if not self._holder:
            raise _NO_DAEMON
        number = next(self._ask_numbers)
        self._asked[number] = stream
        asked = ServiceCall(number, body.method, dict(body.payload), os.getuid())
        self._send(self._holder[0], asked)

    def _reply(self, client: _Client, reply: ServiceReply) -> None:
        stream = self._asked.pop(reply.number, None)
        if stream and self._holder and client == self._holder[0]:
            answer = ClientResponse(stream[1], reply.payload, fault=reply.fault)
            self._send(stream[0], answer)


def _taken(holder: calls.RegisterService) -> ServiceTaken:
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(holder.since))
    return ServiceTaken(
        f"another daemon serves this lead: pid {holder.pid} on {holder.host},"
        f" since {since}",
        "stop that one first: one daemon serves a lead",
    )


def _failures(
    orders: Mapping[JobId, Any], order: Callable[[JobId, Any, float], None]
) -> dict[JobId, str]:
    """Carry out each order; return the errors of those that fail."""
    failures = {}
    for job_id, value in orders.items():
        try:
            order(job_id, value, time.time())
        except LeadError as error:
            failures[job_id] = str(error)
    return failures
