# SPDX-License-Identifier: MIT
"""The methods that clients of the lead can call, by the topics of Flux's services.

Each takes the keys of Flux's request, and its answer has what `burst.flux` reads of
Flux's answer. Topics `embedded.…` are for data that Flux has in its KVS, or that needs
several requests in Flux.
"""

from __future__ import annotations

import base64
import errno
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from burst.errors import LeadError
from burst.log import say
from burst.model.event import Event
from burst.model.jobid import JobId
from burst.model.lead import LeadIdentity
from burst.model.request import parse_name
from burst_embedded.job import Job
from burst_embedded.jobqueue import JobQueue
from burst_embedded.server import Caller, Server
from burst_embedded.wire import PROTOCOL, Failed, Output, is_same_protocol

JOURNAL = "job-manager.events-journal"
RANKS = "resource.journal"
STATE = "state-machine.monitor"
JOIN = "overlay.join"
_CONSTRAINTS = "attributes.system.constraints"
# Numbers of states and results in RFC 43 and libjob/job.h. Only two states are used: of
# jobs that have ended, and of all others.
_ACTIVE, _INACTIVE = 1, 64
_RESULTS = {"completed": 1, "failed": 2, "canceled": 4, "timeout": 8}


class LeadMethods:
    """The methods. The owner of this object calls `push` when the queue has settled."""

    def __init__(self, queue: JobQueue, identity: LeadIdentity, server: Server) -> None:
        self._queue = queue
        self._identity = identity
        self._server = server
        self._state = "run"
        self._asked_state: set[Caller] = set()

    def table(self) -> dict[str, Callable[..., Any]]:
        """Return the methods by topic."""
        queue = self._queue
        return {
            "embedded.finish": queue.finish_held,
            "embedded.output": self.output,
            "embedded.identity": lambda: self._identity,
            "embedded.ranks": queue.pool.view,
            "embedded.take": queue.take,
            "job-info.lookup": self.look_up,
            "job-ingest.submit": self.submit,
            "job-list.list": self.list_jobs,
            "job-list.list-id": self.list_job,
            "job-manager.getattr": self.read_attributes,
            "job-manager.memo": queue.post_memo,
            "job-manager.ping": lambda: None,
            "job-manager.post-event.post": self.post_event,
            "job-manager.raise": queue.raise_exception,
            "job-manager.urgency": queue.set_urgency,
            "resource.drain": queue.drain,
            "resource.undrain": queue.undrain,
            "state-machine.get": self.state,
            JOIN: self.join,
            JOURNAL: self.follow_jobs,
            f"{JOURNAL}-cancel": self.cancel,
            RANKS: self.follow_ranks,
            STATE: self.follow_state,
        }

    def push(self) -> None:
        """Send the changes since the last call to the clients that follow them."""
        news, self._queue.news = self._queue.news, []
        for job, event in news:
            for caller, allow in self._server.streams(JOURNAL):
                self._server.send(caller, _entry(job, [event], allow))
        if self._queue.moved:
            self._queue.moved = False
            for caller, _ in self._server.streams(RANKS):
                self._server.send(caller)

    def order(self, rank: int, order: Any) -> None:
        """Send an order to the follower of a rank, if there is one."""
        if member := self._member(rank):
            self._server.send(member, order)

    def enter(self, state: str) -> None:
        """End the streams of followers, and tell other clients that the state changes.

        `state` has the name of the state in Flux's brokers.
        """
        for caller, _ in self._server.streams(JOIN):
            self._server.fail(caller)
        self._state = state
        self._asked_state.clear()
        for caller, _ in self._server.streams(STATE):
            self._server.send(caller)

    def all_know(self) -> bool:
        """Return whether all clients that follow the state have asked for it since."""
        return all(
            any(asked.peer == caller.peer for asked in self._asked_state)
            for caller, _ in self._server.streams(STATE)
        )

    def submit(self, jobspec: dict[str, Any], urgency: int) -> dict[str, JobId]:
        """Submit a job. Raises JobspecError, LeadError."""
        return {"id": self._queue.submit(jobspec, urgency).id}

    def look_up(self, job: JobId, keys: Sequence[str]) -> dict[str, Any]:
        """Return the values of these keys of a job, the jobspec as it is now and as an
        object. Raises Failed if the job lacks one.
        """
        found = self._queue.find(job)
        signed = base64.b64encode(msgspec.json.encode(found.submitted)).decode()
        values = {
            "eventlog": "".join(f"{event.line()}\n" for event in found.events),
            "jobspec": _without_environment(found.jobspec),
            "J": f"none.{signed}.none",
        }
        return _present(values, keys)

    def list_jobs(self, constraint: Mapping[str, Sequence[str]]) -> Any:
        """Return the jobs with one of the names in the constraint."""
        names = constraint["name"]
        listed = map(_listed, self._queue.jobs.values())
        return {"jobs": [job for job in listed if job["name"] in names]}

    def list_job(self, job: JobId) -> dict[str, Any]:
        """Return one job. Raises Failed."""
        return {"job": _listed(self._queue.find(job))}

    def read_attributes(self, job: JobId, attrs: Sequence[str]) -> dict[str, Any]:
        """Return these attributes of a job. Raises Failed if the job lacks one."""
        found = self._queue.find(job)
        values = {
            "eventlog": found.events,
            "jobspec": _without_environment(found.jobspec),
            "R": found.R,
        }
        return _present(values, attrs)

    def post_event(self, job: JobId, name: str, context: dict[str, Any]) -> None:
        """Change the constraint of a job. Raises LeadError."""
        if name != "jobspec-update" or set(context) != {_CONSTRAINTS}:
            raise LeadError("only constraints can be updated")
        self._queue.constrain(job, context[_CONSTRAINTS])

    def follow_jobs(self, allow: dict[str, int], caller: Caller) -> None:
        """Send all active jobs, then an entry of id -1, then each event in `allow`."""
        self._server.open(caller, JOURNAL, allow)
        for job in self._queue.jobs.values():
            if not job.is_over:
                self._server.send(caller, _entry(job, job.events, allow))
        self._server.send(caller, {"id": -1, "events": []})

    def cancel(self, matchtag: int, caller: Caller) -> None:
        """End a stream of the caller."""
        self._server.fail(Caller(caller.peer, matchtag))

    def follow_ranks(self, caller: Caller) -> None:
        """Send a response now, and one at each change of a rank."""
        self._server.open(caller, RANKS)
        self._server.send(caller)

    def follow_state(self, caller: Caller) -> None:
        """Send a response now, and one when the lead begins to stop."""
        self._server.open(caller, STATE)
        self._server.send(caller)

    def state(self, caller: Caller) -> None:
        """Return the name of the state that the lead is in."""
        self._asked_state.add(caller)
        self._server.send(caller, {"state": self._state})

    def output(self, job: JobId) -> dict[str, list[Output]]:
        """Return the output of the job's tasks so far. Raises Failed."""
        return {"pieces": self._queue.find(job).output}

    def join(
        self, version: str, hostname: str, rank: int, pid: int, caller: Caller
    ) -> None:
        """Let a follower join: send an answer now, and orders later.

        The checks are those of Flux: the version, the rank, and that the lead's list of
        hosts has this host at this rank. Raises LeadError.
        """
        refusal = self._refusal(version, hostname, rank)
        if refusal:
            say("rejecting %s (rank %d): %s", hostname, rank, refusal)
            raise LeadError(refusal)
        other = self._member(rank)
        if other and other.peer == caller.peer:
            return
        if other:
            why = "another broker joined as this rank"
            self._server.fail(other, LeadError(why))
            # Jobs of the other must have failed before new ones start on the rank.
            self._lose_member(rank, f"is lost: {why}")
        self._server.open(caller, JOIN, rank, lambda how: self._lose_member(rank, how))
        self._server.send(caller)
        say("%s (rank %d) joined, pid %d", hostname, rank, pid)
        self._queue.rank_online(rank)

    def _member(self, rank: int) -> Caller | None:
        joined = self._server.streams(JOIN)
        return next((caller for caller, whose in joined if whose == rank), None)

    def _lose_member(self, rank: int, how: str) -> None:
        say("%s (rank %d) %s", self._identity.hosts[rank], rank, how)
        self._queue.rank_lost(rank)

    def _refusal(self, version: str, hostname: str, rank: int) -> str:
        """Return why a broker may not join; empty if it may."""
        if not is_same_protocol(version):
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


def _present(values: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    if any(values.get(key) is None for key in keys):
        raise Failed(errno.ENOENT, f"the job lacks one of {', '.join(keys)}")
    return {key: values[key] for key in keys}


def _entry(job: Job, events: Sequence[Event], allow: Mapping[str, int]) -> Any:
    """Return an entry of the journal with those of a job's events that are allowed."""
    entry: dict[str, Any] = {"id": job.id}
    entry["events"] = [event for event in events if event.name in allow]
    names = {event.name for event in events}
    if "submit" in names:
        entry["jobspec"] = _without_environment(job.submitted)
    if "alloc" in names and job.R:
        entry["R"] = job.R
    return entry


def _without_environment(jobspec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a jobspec without environment: in Flux only the signed copy has it."""
    system = {**jobspec["attributes"]["system"]}
    system.pop("environment", None)
    attributes = {**jobspec["attributes"], "system": system}
    return {**jobspec, "attributes": attributes}


def _listed(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "name": parse_name(job.jobspec),
        "state": _INACTIVE if job.is_over else _ACTIVE,
        "result": _RESULTS.get(job.result, 0),
        "t_run": job.time_of("start"),
        "t_cleanup": job.time_of("finish"),
        "t_inactive": job.time_of("clean"),
    }
