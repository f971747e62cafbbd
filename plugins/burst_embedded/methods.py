# SPDX-License-Identifier: MIT
"""What the lead does for who is connected: jobs, ranks, streams, the service `burst`.

The names of methods are those that go over the wire.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from burst.errors import LeadError, NoDaemon, ServiceTaken
from burst.log import say
from burst.model.jobid import JobId
from burst.model.lead import LeadIdentity
from burst_embedded.job import Job, Update
from burst_embedded.jobqueue import JobQueue
from burst_embedded.server import ClientStream, Peer, Server
from burst_embedded.wire import PROTOCOL, Ended, Fault, Output, ServiceCall

_NO_DAEMON = NoDaemon(
    "no daemon serves this lead", "start one with `burst daemon -c FILE`"
)
_LOST = LeadError("the lead has lost it; start it again")


class LeadMethods:
    """The methods, and who has which stream. `server` is to be set before it listens.

    Its owner calls `push` once the queue has settled.
    """

    server: Server

    def __init__(self, queue: JobQueue, identity: LeadIdentity) -> None:
        self._queue = queue
        self._identity = identity
        self._number = 0
        self._watchers: dict[Peer, ClientStream] = {}
        self._attached: dict[ClientStream, JobId] = {}
        self._members: dict[int, ClientStream] = {}
        self._holder: tuple[ClientStream, str] | None = None
        self._asked: dict[int, ClientStream] = {}
        self._ask_numbers = itertools.count(1)

    def all(self) -> Sequence[Callable[..., Any]]:
        """Return all that may be called."""
        queue = self._queue
        return (
            *(self.identity, self.submit, self.jobs, self.finish, self.sync),
            *(queue.find, queue.set_urgency, queue.confine, queue.merge_memo),
            *(queue.raise_exception, queue.drain, queue.undrain),
            *(self.watch, self.attach, self.serve, self.request, self.answer),
            *(self.join, self.alive, self.take),
        )

    def push(self) -> None:
        """Send what changed since the last time to clients that watch."""
        if not self._queue.untold:
            return
        self._queue.untold = False
        jobs = self._queue.jobs
        changed = [jobs[key] for key in sorted(self._queue.changed) if key in jobs]
        self._queue.changed.clear()
        self._number += 1
        if self._watchers:
            update = self._update(changed)
            for stream in list(self._watchers.values()):
                self.server.send(stream, update)
        over = {job.id for job in changed if job.is_over}
        for stream, job_id in list(self._attached.items()):
            if job_id in over:
                self._detach(stream)

    def order(self, rank: int, order: Any) -> None:
        """Tell a follower what to do."""
        if rank in self._members:
            self.server.send(self._members[rank], order)

    def take_here(self, piece: Output | Ended) -> None:
        """Take what a task wrote, or its end."""
        if isinstance(piece, Ended):
            self._queue.task_ended(piece, time.time())
        elif self._queue.take_output(piece):
            for stream, job_id in list(self._attached.items()):
                if job_id == piece.job:
                    self.server.send(stream, piece)

    def identity(self) -> LeadIdentity:
        """Return what is fixed while the lead runs."""
        return self._identity

    def submit(self, jobspec: Mapping[str, Any], urgency: int, now: float) -> JobId:
        """Submit a job. Raises JobspecError, LeadError."""
        return self._queue.submit(jobspec, urgency, os.getuid(), now).id

    def jobs(self) -> list[Job]:
        """Return all jobs that are known."""
        return list(self._queue.jobs.values())

    def finish(self, job: JobId, exit_status: int, output: str, now: float) -> bool:
        """End a held job with the result of a run elsewhere; False if it is not held.

        Raises LeadError.
        """
        done = self._queue.finish_held(job, exit_status, now)
        if done:
            self.take_here(Output(job, 0, 1, output.encode()))
        return done

    def sync(self) -> int:
        """Return the number of the last Update, which has all changes so far."""
        self.push()
        return self._number

    def watch(self, stream: ClientStream) -> None:
        """Send an Update with all jobs, then one at each change.

        A peer watches once: this takes the place of an earlier one.
        """
        self._watchers[stream.peer] = stream
        self.server.open(stream, lambda _: self._watchers.pop(stream.peer, None))
        self.server.send(stream, self._update(self.jobs()))

    def attach(self, job: JobId, stream: ClientStream) -> None:
        """Send pieces of the job's output, at last nothing. Raises LeadError."""
        found = self._queue.find(job)
        self._attached[stream] = job
        self.server.open(stream, lambda _: self._attached.pop(stream, None))
        for piece in self._queue.output.get(job, ()):
            self.server.send(stream, piece)
        if found.is_over:
            self._detach(stream)

    def serve(self, pid: int, host: str, since: float, stream: ClientStream) -> None:
        """Have this client serve `burst`: send it nothing, then each ServiceCall.

        Raises ServiceTaken.
        """
        # The process that serves may have ended meanwhile.
        if self._holder and not self.server.reaches(self._holder[0].peer):
            self._lose_holder(self._holder[0])
        if self._holder:
            raise ServiceTaken(
                f"another daemon serves this lead: {self._holder[1]}",
                "stop that one first: one daemon serves a lead",
            )
        began = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since))
        self._holder = stream, f"pid {pid} on {host}, since {began}"
        self.server.open(stream, lambda _: self._lose_holder(stream))
        self.server.send(stream)

    def request(
        self, method: str, payload: dict[str, Any], stream: ClientStream
    ) -> None:
        """Ask the service `burst`; its answer is the answer. Raises NoDaemon."""
        if not self._holder:
            raise _NO_DAEMON
        number = next(self._ask_numbers)
        self._asked[number] = stream
        asked = ServiceCall(number, method, payload, os.getuid())
        self.server.send(self._holder[0], asked)

    def answer(self, number: int, payload: Any, fault: Fault | None) -> None:
        """Answer a ServiceCall; an answer that nobody waits for is dropped."""
        stream = self._asked.pop(number, None)
        if stream and fault:
            self.server.fail(stream, fault.error())
        elif stream:
            self.server.send(stream, payload, last=True)

    def join(
        self, version: str, hostname: str, rank: int, pid: int, stream: ClientStream
    ) -> None:
        """Have a follower join: send it nothing, then orders.

        Checked as Flux checks it: version, rank, and that the lead's list of hosts has
        that host at that rank. Raises LeadError.
        """
        other = self._members.get(rank)
        if other == stream:
            return
        refusal = self._refusal(version, hostname, rank)
        if refusal:
            say("rejecting %s (rank %d): %s", hostname, rank, refusal)
            raise LeadError(refusal)
        if other:
            why = "another broker joined as this rank"
            self.server.fail(other, LeadError(why))
            # Its jobs must have failed before new ones start on its rank.
            self._lose_member(rank, other, f"is lost: {why}")
        self._members[rank] = stream
        self.server.open(stream, lambda how: self._lose_member(rank, stream, how))
        self.server.send(stream)
        say("%s (rank %d) joined, pid %d", hostname, rank, pid)
        self._queue.rank_online(rank)

    def alive(self, peer: Peer) -> None:
        """Raise LeadError unless it has joined."""
        if all(stream.peer != peer for stream in self._members.values()):
            raise _LOST

    def take(self, piece: Output | Ended, peer: Peer) -> None:
        """Take what a follower's task wrote, or its end. Raises LeadError."""
        self.alive(peer)
        self.take_here(piece)

    def _update(self, jobs: Sequence[Job]) -> Update:
        pool = self._queue.pool
        return Update(
            number=self._number,
            online=frozenset(pool.online),
            drained=pool.drained,
            allocated=pool.allocated(),
            free=pool.free_shapes(),
            jobs=tuple(jobs),
        )

    def _detach(self, stream: ClientStream) -> None:
        self._attached.pop(stream, None)
        self.server.send(stream, last=True)

    def _lose_holder(self, stream: ClientStream) -> None:
        if self._holder and self._holder[0] == stream:
            self._holder = None
            waiting, self._asked = self._asked, {}
            for asker in waiting.values():
                self.server.fail(asker, _NO_DAEMON)

    def _lose_member(self, rank: int, stream: ClientStream, how: str) -> None:
        if self._members.get(rank) == stream:
            del self._members[rank]
            say("%s (rank %d) %s", self._identity.hosts[rank], rank, how)
            self._queue.rank_lost(rank, time.time())

    def _refusal(self, version: str, hostname: str, rank: int) -> str:
        """Return why that broker may not join, empty if it may."""
        if version.split(".")[:2] != PROTOCOL.split(".")[:2]:
            return f"client ({version}) version mismatched with server ({PROTOCOL})"
        if rank == 0:
            return "this rank is the lead's own"
        hosts = self._identity.hosts
        expected = hosts[rank] if 0 <= rank < len(hosts) else "nothing"
        if hostname == expected:
            return ""
        return (
            f"{expected} is configured as rank {rank}: mismatched config? Hosts must be"
            " in the lead's order"
        )
