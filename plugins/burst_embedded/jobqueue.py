# SPDX-License-Identifier: MIT
"""The queue: states and events of jobs, and which of them starts next. Pure.

States and events are those of RFC 21 as Flux's job manager has them. The order is that
of Flux's schedulers: by priority, then by age, and **the first job, if it cannot start,
blocks all behind it**. A job of urgency 0 is held and blocks none.
"""

from __future__ import annotations

import bisect
import math
from collections import deque
from collections.abc import Mapping, Set
from typing import Any

from burst.errors import LeadError
from burst.model.confinement import confine
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState
from burst.model.ranks import format_idset
from burst.model.repeat import lost_node
from burst.model.request import (
    parse_confinement,
    parse_duration,
    parse_request,
)
from burst_embedded.job import HIGHEST_URGENCY, Job, merge
from burst_embedded.jobspec import parse_command
from burst_embedded.pool import Allocation, Infeasible, ResourcePool, summary
from burst_embedded.wire import Ended, KillTasks, Output, RunTasks

HISTORY = 1000
"""Jobs that ended and are still known; the oldest are forgotten first."""
# FLUIDs count milliseconds in 40 bits. Counted from here, they last until 2054 and do
# not come again after a restart of the lead.
_EPOCH = 1_577_836_800.0
_KILLED = 9


class JobQueue:
    """All jobs of the lead, and the resources they share.

    Its owner sends the `orders` to ranks, calls `schedule` while it is `unsettled`,
    sends clients the jobs in `changed` while any job or rank is `untold`, and clears
    these.
    """

    def __init__(self, pool: ResourcePool) -> None:
        self.pool = pool
        self.jobs: dict[JobId, Job] = {}
        self.orders: list[tuple[int, RunTasks | KillTasks]] = []
        self.output: dict[JobId, list[Output]] = {}
        self.changed: set[JobId] = set()
        self.unsettled = False
        self.untold = False
        self._line: list[tuple[int, JobId]] = []
        self._running: dict[JobId, Job] = {}
        self._ended: deque[JobId] = deque()
        self._last_id = 0

    def submit(
        self, jobspec: Mapping[str, Any], urgency: int, userid: int, now: float
    ) -> Job:
        """Add a job. Raises JobspecError, LeadError."""
        request = parse_request(jobspec)
        confined_to = parse_confinement(jobspec)
        parse_command(jobspec)
        self.pool.allowed(request)
        job = Job(
            id=self._next_id(now),
            userid=userid,
            jobspec=jobspec,
            request=request,
            confined_to=confined_to,
            duration=parse_duration(jobspec),
            urgency=_checked(urgency),
            t_submit=now,
        )
        self.jobs[job.id] = job
        self._post(
            job, now, "submit", userid=userid, urgency=urgency, flags=0, version=1
        )
        self._post(job, now, "validate")
        self._post(job, now, "depend")
        self._line_up(job, now)
        return job

    def find(self, job_id: JobId) -> Job:
        """Return a job. Raises LeadError."""
        try:
            return self.jobs[job_id]
        except KeyError:
            raise LeadError("unknown job") from None

    def set_urgency(self, job_id: JobId, urgency: int, now: float) -> None:
        """Change what it is sorted by; 0 holds it. Raises LeadError."""
        job = self._active(job_id)
        if job.allocation:
            raise LeadError("urgency cannot be changed once resources are allocated")
        _checked(urgency)
        self._step_out(job)
        job.urgency = urgency
        self._post(job, now, "urgency", userid=job.userid, urgency=urgency)
        self._line_up(job, now)

    def confine(self, job_id: JobId, ranks: Set[int], now: float) -> None:
        """Let it run on own nodes and these lent ranks only. Raises LeadError."""
        job = self._active(job_id)
        if job.allocation:
            raise LeadError("a job that has resources cannot be confined")
        self._check_ranks(ranks)
        self._step_out(job)
        system = job.jobspec["attributes"]["system"]
        constraint = confine(system.get("constraints"), frozenset(ranks))
        system = {**system, "constraints": constraint}
        attributes = {**job.jobspec["attributes"], "system": system}
        job.jobspec = {**job.jobspec, "attributes": attributes}
        job.confined_to = frozenset(ranks)
        update = {"attributes.system.constraints": constraint}
        self._post(job, now, "jobspec-update", **update)
        self._line_up(job, now)

    def merge_memo(self, job_id: JobId, memo: Mapping[str, Any], now: float) -> None:
        """Merge deeply; None deletes a key. Raises LeadError."""
        job = self._active(job_id)
        merge(job.memo, memo)
        self._post(job, now, "memo", **memo)

    def raise_exception(self, job_id: JobId, kind: str, note: str, now: float) -> None:
        """Post an exception of severity 0, which ends the job. Raises LeadError."""
        job = self._active(job_id)
        self._post(job, now, "exception", type=kind, severity=0, note=note)
        if not job.fatal:
            job.fatal, job.lost_node = kind, lost_node(kind, note)
        if not job.running:
            self._step_out(job)
            self._clean(job, now)
            return
        job.state = JobState.CLEANUP
        for rank in sorted(set(job.running.values())):
            self.orders.append((rank, KillTasks(job.id)))

    def finish_held(self, job_id: JobId, exit_status: int, now: float) -> bool:
        """Give a held job the result of a run elsewhere; False if it is not held.

        Raises LeadError.
        """
        job = self._active(job_id)
        if job.state is not JobState.SCHED or job.priority:
            return False
        job.t_start = job.t_finish = now
        job.status = exit_status << 8
        self._post(job, now, "alloc", bypass=True)
        self._post(job, now, "start")
        self._post(job, now, "finish", status=job.status)
        self._clean(job, now)
        return True

    def schedule(self, now: float) -> None:
        """Start what can start, in order, until the first that cannot."""
        while self._line:
            job = self.jobs[self._line[0][1]]
            try:
                found = self.pool.allocate(job.request, job.confined_to)
            except Infeasible as error:
                self.raise_exception(job.id, "alloc", str(error), now)
                continue
            if found is None:
                return
            self._step_out(job)
            self._start(job, found, now)

    def expire(self, now: float) -> None:
        """End jobs that are past their time limit."""
        late = [job.id for job in self._running.values() if job.deadline <= now]
        for job_id in late:
            self.raise_exception(job_id, "timeout", "resource allocation expired", now)

    def next_deadline(self) -> float:
        """Return when `expire` has something to do, or infinity."""
        return min((job.deadline for job in self._running.values()), default=math.inf)

    def take_output(self, piece: Output) -> bool:
        """Keep a piece of output; False once the job has written as much as is kept."""
        job = self.jobs.get(JobId(piece.job))
        if job is None or job.output_cut:
            return False
        self.output.setdefault(job.id, []).append(piece)
        job.output_size += len(piece.data)
        return True

    def task_ended(self, ended: Ended, now: float) -> None:
        """Note the end of a task; the last one ends the job."""
        job = self._running.get(JobId(ended.job))
        if job is None or job.running.pop(ended.task, None) is None:
            return
        job.status = max(job.status, ended.status)
        if job.running:
            return
        job.t_finish = now
        job.state = JobState.CLEANUP
        self._post(job, now, "finish", status=job.status)
        self._clean(job, now)

    def rank_online(self, rank: int) -> None:
        """Let jobs start there, unless it is drained."""
        self.pool.online.add(rank)
        self._touch()

    def rank_lost(self, rank: int, now: float) -> None:
        """Let no job start there, and fail those that have tasks there."""
        self.pool.online.discard(rank)
        self._touch()
        host = self.pool.nodes[rank].host
        for job in list(self._running.values()):
            tasks = [task for task, where in job.running.items() if where == rank]
            if not tasks:
                continue
            note = f"node failure on {host} (rank {rank})"
            self.raise_exception(job.id, "exec", note, now)
            for task in tasks:
                self.task_ended(Ended(job.id, task, _KILLED), now)

    def drain(self, ranks: Set[int], reason: str) -> None:
        """Let no new job start there; what is drained keeps its reason.

        Raises LeadError.
        """
        self._check_ranks(ranks)
        for rank in ranks:
            self.pool.drained.setdefault(rank, reason)
        self._touch()

    def undrain(self, ranks: Set[int]) -> None:
        """Let jobs start there again. Raises LeadError."""
        self._check_ranks(ranks)
        for rank in ranks:
            self.pool.drained.pop(rank, None)
        self._touch()

    def _line_up(self, job: Job, now: float) -> None:
        self._post(job, now, "priority", priority=job.priority)
        if job.priority:
            bisect.insort(self._line, (-job.priority, job.id))

    def _step_out(self, job: Job) -> None:
        place = (-job.priority, job.id)
        index = bisect.bisect_left(self._line, place)
        if self._line[index : index + 1] == [place]:
            del self._line[index]

    def _start(self, job: Job, allocation: Allocation, now: float) -> None:
        ranks = sorted(allocation)
        slots = [rank for rank in ranks for _ in range(allocation[rank].slots)]
        job.allocation = allocation
        job.ran_on = frozenset(ranks)
        job.running = dict(enumerate(slots))
        job.state = JobState.RUN
        job.t_start = now
        self._running[job.id] = job
        annotations = {"sched": {"resource_summary": summary(allocation)}}
        self._post(job, now, "alloc", annotations=annotations)
        self._post(job, now, "start")
        command = parse_command(job.jobspec)
        environment = {
            **command.environment,
            "FLUX_JOB_ID": format_f58(job.id),
            "FLUX_JOB_NNODES": str(len(ranks)),
            "FLUX_JOB_SIZE": str(len(slots)),
        }
        for rank in ranks:
            tasks = tuple(task for task, where in job.running.items() if where == rank)
            order = RunTasks(job.id, tasks, command.argv, command.cwd, environment)
            self.orders.append((rank, order))

    def _clean(self, job: Job, now: float) -> None:
        if self._running.pop(job.id, None):
            self.pool.release(job.allocation)
            job.allocation = {}
            self._post(job, now, "release", ranks="all", final=True)
            self._post(job, now, "free")
        self._post(job, now, "clean")
        job.state = JobState.INACTIVE
        job.t_inactive = now
        self._ended.append(job.id)
        if len(self._ended) > HISTORY:
            oldest = self._ended.popleft()
            del self.jobs[oldest]
            self.output.pop(oldest, None)

    def _active(self, job_id: JobId) -> Job:
        job = self.find(job_id)
        if job.is_over:
            raise LeadError("job is inactive")
        return job

    def _check_ranks(self, ranks: Set[int]) -> None:
        unknown = set(ranks) - set(self.pool.nodes)
        if unknown:
            raise LeadError(f"no such rank: {format_idset(unknown)}")

    def _post(self, job: Job, now: float, name: str, /, **context: Any) -> None:
        job.events.append(Event(now, name, context))
        self.changed.add(job.id)
        self._touch()

    def _touch(self) -> None:
        self.unsettled = self.untold = True

    def _next_id(self, now: float) -> JobId:
        """Return a FLUID (RFC 19) of generator 0, larger than any before."""
        earliest = int((now - _EPOCH) * 1000) << 24
        self._last_id = max(self._last_id + 1, earliest)
        return JobId(self._last_id)


def _checked(urgency: int) -> int:
    if not 0 <= urgency <= HIGHEST_URGENCY:
        raise LeadError("urgency value is out of range")
    return urgency
