# SPDX-License-Identifier: MIT
"""The queue: states and events of jobs, and which of them starts next.

States and events are those of RFC 21 and Flux's job manager. The order is that of
Flux's schedulers: by priority, then by age, and **the first job, if it cannot start,
blocks all jobs behind it**. A job of urgency 0 is held and blocks no other.
"""

from __future__ import annotations

import bisect
import errno
import math
import os
import time
from collections.abc import Callable
from typing import Any

import msgspec

from burst.errors import LeadError
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState
from burst.model.ranks import format_idset, parse_idset
from burst.model.request import parse_confinement, parse_duration, parse_request
from burst.model.resource_set import ResourceSet
from burst_embedded.job import HIGHEST_URGENCY, Job, parse_command
from burst_embedded.pool import Infeasible, ResourcePool, slots_of
from burst_embedded.wire import Ended, Failed, KillTasks, Output, RunTasks

# FLUIDs count milliseconds in 40 bits. Counted from this time, they last until 2054,
# and a restart of the lead does not repeat them.
_EPOCH = 1_577_836_800.0
_KILLED = 9


class JobQueue:
    """All jobs of the lead, and the resources that they share.

    The owner of this object calls `schedule` after each change, sends the `orders` to
    ranks, sends clients the `news` and the fact that ranks `moved`, and clears all of
    these.
    """

    def __init__(
        self, pool: ResourcePool, clock: Callable[[], float] = time.time
    ) -> None:
        self.pool = pool
        self.jobs: dict[JobId, Job] = {}
        self.orders: list[tuple[int, RunTasks | KillTasks]] = []
        self.news: list[tuple[Job, Event]] = []
        self.moved = False
        self._clock = clock
        self._line: list[tuple[int, JobId]] = []
        self._running: dict[JobId, Job] = {}
        self._last_id = 0

    def submit(self, jobspec: dict[str, Any], urgency: int) -> Job:
        """Add a job of the lead's owner. Raises JobspecError, LeadError."""
        request = parse_request(jobspec)
        order = parse_command(jobspec)
        self.pool.allowed(request)
        job = Job(
            id=self._next_id(),
            submitted=jobspec,
            jobspec=jobspec,
            request=request,
            order=order,
            confined_to=parse_confinement(jobspec),
            duration=parse_duration(jobspec),
            urgency=_checked(urgency),
        )
        self.jobs[job.id] = job
        context = {"userid": os.getuid(), "urgency": urgency, "flags": 0, "version": 1}
        self._post(job, "submit", **context)
        self._post(job, "validate")
        self._post(job, "depend")
        self._line_up(job)
        return job

    def find(self, job: JobId) -> Job:
        """Return a job. Raises LeadError."""
        try:
            return self.jobs[job]
        except KeyError:
            raise Failed(errno.ENOENT, "unknown job") from None

    def set_urgency(self, job: JobId, urgency: int) -> None:
        """Change the urgency of a job; 0 holds it. Raises LeadError."""
        found = self._pending(job)
        _checked(urgency)
        self._step_out(found)
        found.urgency = urgency
        self._post(found, "urgency", userid=os.getuid(), urgency=urgency)
        self._line_up(found)

    def constrain(self, job: JobId, constraint: Any) -> None:
        """Give an active job another constraint; one that has nodes keeps them.

        Only its confinement to lent ranks takes effect; the rest of the constraint is
        taken to be unchanged. Raises LeadError.
        """
        found = self._active(job)
        system = {**found.jobspec["attributes"]["system"], "constraints": constraint}
        attributes = {**found.jobspec["attributes"], "system": system}
        jobspec = {**found.jobspec, "attributes": attributes}
        found.confined_to = parse_confinement(jobspec)
        found.jobspec = jobspec
        update = {"attributes.system.constraints": constraint}
        self._post(found, "jobspec-update", **update)
        if found.state is JobState.SCHED:
            self._step_out(found)
            self._line_up(found)

    def post_memo(self, job: JobId, memo: dict[str, Any]) -> None:
        """Post a memo event for an active job. Raises LeadError."""
        self._post(self._active(job), "memo", **memo)

    def raise_exception(self, job: JobId, kind: str, note: str) -> None:
        """Post an exception of severity 0, which ends the job. Raises LeadError."""
        found = self._active(job)
        self._post(found, "exception", type=kind, severity=0, note=note)
        found.fatal = found.fatal or kind
        if not found.running:
            self._step_out(found)
            self._clean(found)
            return
        found.state = JobState.CLEANUP
        for rank in sorted(set(found.running.values())):
            self.orders.append((rank, KillTasks(job)))

    def finish_held(self, job: JobId, exit_status: int, output: str) -> dict[str, bool]:
        """Give a held job the result of a run elsewhere.

        `done` is False if the job is not held. Raises LeadError.
        """
        found = self._active(job)
        if found.state is not JobState.SCHED or found.priority:
            return {"done": False}
        found.status = exit_status << 8
        self._post(found, "alloc", bypass=True)
        self._post(found, "start")
        found.output.append(Output(job, 0, 1, output.encode()))
        self._post(found, "finish", status=found.status)
        self._clean(found)
        return {"done": True}

    def schedule(self) -> None:
        """Start jobs in order, until the first that cannot start."""
        while self._line:
            job = self.jobs[self._line[0][1]]
            try:
                found = self.pool.allocate(job.request, job.confined_to)
            except Infeasible as error:
                self.raise_exception(job.id, "alloc", str(error))
                continue
            if found is None:
                return
            self._step_out(job)
            self._start(job, found)

    def expire(self) -> None:
        """End jobs that have reached their time limit."""
        now = self._clock()
        late = [job.id for job in self._running.values() if job.deadline <= now]
        for job in late:
            self.raise_exception(job, "timeout", "resource allocation expired")

    def next_deadline(self) -> float:
        """Return when `expire` has a job to end next, or infinity."""
        return min((job.deadline for job in self._running.values()), default=math.inf)

    def take(self, piece: Output | Ended) -> None:
        """Take output or the end of a task of a running job.

        The end of the last task ends the job.
        """
        job = self._running.get(JobId(piece.job))
        if job is None:
            return
        if isinstance(piece, Output):
            job.output.append(piece)
        elif job.running.pop(piece.task, None) is not None:
            job.status = max(job.status, piece.status)
            if not job.running:
                job.state = JobState.CLEANUP
                self._post(job, "finish", status=job.status)
                self._clean(job)

    def rank_online(self, rank: int) -> None:
        """Let jobs start on a rank, unless it is drained."""
        self.pool.online.add(rank)
        self.moved = True

    def rank_lost(self, rank: int) -> None:
        """Let no job start on a rank, and fail the jobs that have tasks there."""
        self.pool.online.discard(rank)
        self.moved = True
        host = self.pool.hosts[rank]
        for job in list(self._running.values()):
            tasks = [task for task, where in job.running.items() if where == rank]
            if not tasks:
                continue
            note = f"node failure on {host} (rank {rank})"
            self.raise_exception(job.id, "exec", note)
            for task in tasks:
                self.take(Ended(job.id, task, _KILLED))

    def drain(self, targets: str, reason: str) -> None:
        """Let no new job start on an idset of ranks.

        A rank that is drained already keeps its reason, if it has one. Raises
        LeadError.
        """
        for rank in self._ranks(targets):
            self.pool.drained[rank] = self.pool.drained.get(rank) or reason
        self.moved = True

    def undrain(self, targets: str) -> None:
        """Let jobs start on an idset of ranks again. Raises LeadError."""
        for rank in self._ranks(targets):
            self.pool.drained.pop(rank, None)
        self.moved = True

    def _line_up(self, job: Job) -> None:
        self._post(job, "priority", priority=job.priority)
        if job.priority:
            bisect.insort(self._line, (-job.priority, job.id))

    def _step_out(self, job: Job) -> None:
        place = (-job.priority, job.id)
        index = bisect.bisect_left(self._line, place)
        if self._line[index : index + 1] == [place]:
            del self._line[index]

    def _start(self, job: Job, allocation: ResourceSet) -> None:
        ranks = sorted(allocation.ranks)
        slots = [
            rank
            for rank, group in zip(ranks, allocation.groups, strict=True)
            for _ in range(slots_of(job.request, group))
        ]
        job.R = allocation
        job.running = dict(enumerate(slots))
        job.state = JobState.RUN
        self._running[job.id] = job
        self._post(job, "alloc")
        self._post(job, "start")
        environment = {
            **job.order.environment,
            "FLUX_JOB_ID": format_f58(job.id),
            "FLUX_JOB_NNODES": str(len(ranks)),
            "FLUX_JOB_SIZE": str(len(slots)),
        }
        for rank in ranks:
            tasks = tuple(task for task, where in job.running.items() if where == rank)
            order = msgspec.structs.replace(
                job.order, job=job.id, tasks=tasks, environment=environment
            )
            self.orders.append((rank, order))

    def _clean(self, job: Job) -> None:
        if self._running.pop(job.id, None) and job.R:
            self.pool.release(job.R)
            self._post(job, "release", ranks="all", final=True)
            self._post(job, "free")
        job.state = JobState.INACTIVE
        self._post(job, "clean")

    def _active(self, job: JobId) -> Job:
        found = self.find(job)
        if found.is_over:
            raise LeadError("job is inactive")
        return found

    def _pending(self, job: JobId) -> Job:
        found = self._active(job)
        if found.state is not JobState.SCHED:
            raise LeadError("it cannot be changed once resources are allocated")
        return found

    def _ranks(self, targets: str) -> frozenset[int]:
        try:
            ranks = parse_idset(targets)
        except ValueError as error:
            raise LeadError(str(error)) from error
        if unknown := ranks - self.pool.hosts.keys():
            raise LeadError(f"no such rank: {format_idset(unknown)}")
        return ranks

    def _post(self, job: Job, name: str, /, **context: Any) -> None:
        event = Event(self._clock(), name, context)
        job.events.append(event)
        self.news.append((job, event))

    def _next_id(self) -> JobId:
        """Return a FLUID (RFC 19) of generator 0 that is larger than all before."""
        earliest = int((self._clock() - _EPOCH) * 1000) << 24
        self._last_id = max(self._last_id + 1, earliest)
        return JobId(self._last_id)


def _checked(urgency: int) -> int:
    if not 0 <= urgency <= HIGHEST_URGENCY:
        raise LeadError("urgency value is out of range")
    return urgency
