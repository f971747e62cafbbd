# SPDX-License-Identifier: MIT
"""A lead without Flux, a store without a disk, an executor without threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec

from burst.config import IntakeSettings
from burst.core.plan.constraints import Constraints
from burst.errors import ConfigError, LeadError, LeadGone, StoreError, Unreadable
from burst.flux.store import check_record
from burst.lead import ServiceRequest, admit_all, no_known_jobs
from burst.model.event import Event
from burst.model.jobid import JobId
from burst.model.lead import (
    JobState,
    JobView,
    LeadIdentity,
    LeadView,
    LeasedRanks,
    QueueView,
)
from burst.model.shape import Shape
from burst.runtime.bank_reader import BankReader
from burst.runtime.executor import run_call
from tests.builders import T0, identity

_OVER = (JobState.RUN, JobState.CLEANUP, JobState.INACTIVE)


class Crash(BaseException):
    """The daemon dies here. No error of ours, so nothing may catch it."""


@dataclass
class MemoryStore:
    """Keeps what was written for as long as the test lasts."""

    records: dict[str, str] = field(default_factory=dict)
    writes: int = 0
    full: bool = False
    crash: str = ""
    """`before` or `after`: the next write ends the daemon then."""

    def load(self):
        return dict(self.records)

    def write(self, changes):
        if self.full:
            raise StoreError("no space left", "make room")
        crash, self.crash = self.crash, ""
        if crash == "before":
            raise Crash
        self.writes += 1
        for key, text in changes.items():
            check_record(key, text)
        for key, text in changes.items():
            if text is None:
                self.records.pop(key, None)
            else:
                self.records[key] = text
        if crash == "after":
            raise Crash


@dataclass
class FakeLead:
    """Jobs of whole nodes, first come first served; the first that waits blocks all."""

    known: LeadIdentity = field(default_factory=identity)
    disk: MemoryStore = field(default_factory=MemoryStore)
    jobs: dict[JobId, JobView] = field(default_factory=dict)
    online: set[int] = field(default_factory=lambda: {0, 1})
    drained: dict[int, str] = field(default_factory=dict)
    memos: dict[JobId, dict[str, str | None]] = field(default_factory=dict)
    now: float = T0
    granting: dict[int, Shape] = field(default_factory=dict)
    queues: dict[str, QueueView] = field(default_factory=dict)
    unreadable: bool = False
    shuts: bool = False
    """Whether it says that it shuts down."""
    gone: bool = False
    closed: bool = False
    deaf: bool = False
    """Hold and release have no effect, as if the daemon died before asking."""
    can_finish: bool = True
    """Whether it gives a held job the result of a run elsewhere."""
    scheduler: str = "sched-burst"
    lent: list[LeasedRanks] = field(default_factory=list)
    """What the scheduler was told, each time."""
    prepared: list[IntakeSettings] = field(default_factory=list)
    log: list[tuple[str, JobId, str]] = field(default_factory=list)
    unmarked: set[JobId] = field(default_factory=set)
    """Jobs without the attribute: shown only if they are to be remembered."""
    remembered: frozenset[JobId] = frozenset()
    confines: bool = False
    """Whether new jobs are confined, as by the frobnicator of a lead with guests."""
    housekeeping: dict[int, float] = field(default_factory=dict)
    """Since when each rank is in housekeeping."""
    epilogs: dict[int, float] = field(default_factory=dict)
    """Since when an epilog alone has each rank."""
    cleans: tuple[int, ...] = ()
    """Ranks on which housekeeping runs after a job; it ends by a signal only."""
    fatal_signals: tuple[int, ...] = (9, 15)
    """Signals by which housekeeping ends."""
    signals: list[tuple[frozenset[int], int]] = field(default_factory=list)
    """Those that housekeeping was sent, and on which ranks."""
    not_apart: str = ""
    """Why jobs of one guest could get nodes of another's burst."""

    # What the engine sees.

    def identity(self):
        return self.known

    def observe(self):
        if self.gone:
            raise LeadGone("connection lost")
        if self.unreadable:
            raise Unreadable("job manager is reloading")
        used = self._used()
        return LeadView(
            read_at=self.now,
            jobs={
                job: msgspec.structs.replace(view, burstable=False)
                if job in self.unmarked
                else view
                for job, view in self.jobs.items()
                if job not in self.unmarked or job in self.remembered
            },
            online=frozenset(self.online),
            drained=dict(self.drained),
            allocated=frozenset(used),
            housekeeping=dict(self.housekeeping),
            epilogs=dict(self.epilogs),
            granting=dict(self.granting),
            queues=dict(self.queues),
            shuts_down=self.shuts,
            free={
                rank: Shape(0) if rank in used else shape
                for rank, shape in enumerate(self.known.shapes)
            },
        )

    def hold(self, jobs):
        return self._set_urgencies(dict.fromkeys(jobs, 0))

    def release(self, urgencies):
        return self._set_urgencies(urgencies)

    def prepare_queues(self, intake):
        self.prepared.append(intake)
        if self.scheduler != "sched-burst":
            raise ConfigError("there is no such queue", "make it")

    def check_scheduler(self, intake):
        if intake.mode == "scheduler" and self.scheduler != "sched-burst":
            raise ConfigError("sched-burst is not loaded", "load it")

    def read_access(self):
        return self.known.access

    def check_users_apart(self, intake):
        if self.not_apart:
            raise ConfigError(self.not_apart, "install it")

    def move(self, queues, lent=MappingProxyType({})):
        failures = {job: "not pending" for job in queues if self._over(job)}
        for job in queues.keys() - failures.keys():
            self.change(job, queue=queues[job])
        return failures | self.confine(lent)

    def confine(self, lent):
        failures = {job: "not pending" for job in lent if self._over(job)}
        for job in lent.keys() - failures.keys():
            self.change(job, confined_to=lent[job])
        return failures

    def send_leases(self, leases):
        if self.scheduler != "sched-burst":
            raise LeadError("sched-burst is not loaded any more", "load it")
        self.lent.append(leases)

    def write_memos(self, memos):
        for job, texts in memos.items():
            memo = self.memos.setdefault(job, {})
            memo.update(texts)
        return {job: "gone" for job in memos if self._over(job)}

    def fail_job(self, job, reason):
        self._raise("fail", job, reason)
        self.finish(job, "failed")

    def cancel_job(self, job, reason):
        self._raise("cancel", job, reason)
        self.finish(job, "canceled")

    def _raise(self, what, job, reason):
        if self._over(job):
            raise LeadError("job is inactive")
        self.log.append((what, job, reason))

    def finish_job(self, job, exit_status, output):
        if self._over(job):
            raise LeadError("job is inactive")
        if self.jobs[job].urgency or not self.can_finish:
            return False
        self.log.append(("finish", job, f"exit status {exit_status}"))
        self.finish(job, "failed" if exit_status else "completed")
        return True

    def jobspec(self, job):
        if job not in self.jobs:
            raise LeadError("no such job")
        task = {"command": ["run", str(job)]}
        system = {"environment": {"COLOR": "red", "HOME": "/home/u"}}
        return {"version": 1, "tasks": [task], "attributes": {"system": system}}

    def submitted_jobspec(self, job):
        return self.jobspec(job)

    def events(self, job):
        if job not in self.jobs:
            raise LeadError("no such job")
        view = self.jobs[job]
        told = [Event(view.t_submit, "submit")]
        if view.state is JobState.INACTIVE:
            status = 0 if view.result == "completed" else 256
            told += [Event(self.now, "finish", {"status": status})]
            told += [Event(self.now, "clean")]
        return told

    def drain(self, ranks, reason):
        if max(ranks, default=0) >= len(self.known.hosts):
            raise LeadError("resource.drain: idset is out of range")
        for rank in ranks:
            self.drained[rank] = self.drained.get(rank) or reason

    def undrain(self, ranks):
        for rank in ranks:
            self.drained.pop(rank, None)

    def end_housekeeping(self, ranks, signum):
        self.signals.append((ranks, signum))
        if signum in self.fatal_signals:
            for rank in ranks:
                self.housekeeping.pop(rank, None)

    def store(self):
        return self.disk

    def shared_store(self):
        return self.disk

    def listen(self, wake, known=no_known_jobs):
        self.wake = wake
        self.remembered = frozenset(known())

    def serve(self, handler, holder, admit=admit_all):
        self.handler, self.admit = handler, admit

    def call(self, method, payload, timeout=0.0):
        return self.handler(ServiceRequest(method, dict(payload), 0, owner=True))

    def close(self):
        self.closed = True

    # What happens at the lead.

    def submit(self, request, **changes):
        number = JobId(len(self.jobs) + 1)
        fields = {"userid": 100, "urgency": 16, "t_submit": self.now, **changes}
        fields.setdefault("priority", fields["urgency"])
        fields.setdefault("held_at_submit", fields["urgency"] == 0)
        if self.confines:
            fields.setdefault("confined_to", frozenset())
        self.jobs[number] = JobView(
            id=number, state=JobState.SCHED, request=request, **fields
        )
        return number

    def change(self, job, **changes):
        if "urgency" in changes:
            changes["held_at_submit"] = False
            changes.setdefault("priority", changes["urgency"])
        self.jobs[job] = msgspec.structs.replace(self.jobs[job], **changes)

    def fail_prolog(self, job):
        """The prolog of a job that was given its nodes fails on each of them."""
        for rank in self.jobs[job].ranks:
            self.drained.setdefault(rank, f"prolog failed for job f{job}")
        self.change(job, t_start=0.0)
        self.finish(job, "failed")

    def finish(self, job, result="completed"):
        ranks = self.jobs[job].ranks.intersection(self.cleans)
        self.housekeeping |= dict.fromkeys(ranks, self.now)
        self.change(
            job,
            state=JobState.INACTIVE,
            result=result,
            t_finish=self.now,
            ranks=frozenset(),
        )

    def lose(self, rank):
        """A broker dies, with the jobs on it."""
        self.online.discard(rank)
        self.housekeeping.pop(rank, None)
        for job in list(self.jobs.values()):
            if rank in job.ranks:
                host = self.known.hosts[rank]
                self.change(job.id, lost_node=f"node failure on {host} (rank {rank})")
                self.finish(job.id, "failed")

    def schedule(self):
        """Start what can start; the first that cannot blocks those behind it.

        Jobs of the queue `burst` are not shown to it; those for which ranks are lent
        start on these.
        """
        constraints = Constraints(self.known)
        queue = [
            j
            for j in self.jobs.values()
            if not self._over(j.id) and j.urgency and j.queue != "burst"
        ]
        lent = self.lent[-1].jobs if self.lent else {}
        queue = [j for j in queue if lent.get(j.id, {0})]
        for job in sorted(queue, key=lambda j: (-j.urgency, j.id)):
            request = job.request
            free = [
                rank
                for rank in sorted(self.online - self._used() - set(self.drained))
                if request
                and rank in constraints.admitted(request.constraint)
                and rank in self.reach(job)
            ]
            if request is None or len(free) < request.nodes:
                return
            self.change(
                job.id,
                state=JobState.RUN,
                ranks=frozenset(free[: request.nodes]),
                ran_on=frozenset(free[: request.nodes]),
                t_start=self.now,
            )

    def reach(self, job):
        """Return the ranks on which a job may run as far as it is confined."""
        everything = frozenset(range(len(self.known.hosts)))
        if job.confined_to is None:
            return everything
        return everything - self.known.properties["burst"] | job.confined_to

    def running(self):
        return [j.id for j in self.jobs.values() if j.state is JobState.RUN]

    def _over(self, job):
        return self.jobs[job].state in _OVER

    def _used(self):
        jobs = {rank for job in self.jobs.values() for rank in job.ranks}
        return jobs | self.housekeeping.keys()

    def _set_urgencies(self, urgencies):
        if self.deaf:
            return {}
        failures = {job: "not pending" for job in urgencies if self._over(job)}
        for job in urgencies.keys() - failures.keys():
            self.change(job, urgency=urgencies[job])
        return failures


class WatchedLead(FakeLead):
    """Calls `at_observe` each time that a daemon observes it."""

    at_observe: Callable[[], None]

    def observe(self):
        self.at_observe()
        return super().observe()


class HandExecutor:
    """Runs tasks when the test says so, in order; a crash of the daemon drops them."""

    def __init__(self, clock):
        self._clock = clock
        self.tasks = []
        self.answers = []

    def submit(self, task):
        self.tasks.append(task)

    def collect(self):
        answers, self.answers = self.answers, []
        return answers

    def close(self):
        self.tasks.clear()

    def step(self):
        """Run the oldest task."""
        self.answers.append(run_call(self.tasks.pop(0), self._clock))

    def pump(self):
        """Run all tasks."""
        while self.tasks:
            self.step()


class MeasuredStore(MemoryStore):
    """Knows how many bytes the last write had, and the most that one value had."""

    last = 0
    largest = 0

    def write(self, changes):
        super().write(changes)
        sizes = [len(key) + len(text or "") for key, text in changes.items()]
        self.last, self.largest = sum(sizes), max([self.largest, *sizes])


class KnownBanks(BankReader):
    """A reader of banks that has its answer already."""

    def __init__(self, banks, known=None):
        self.banks, self.known = banks, known

    def current(self):
        return self.banks

    def facts(self):
        return self.known


def has_failed(snapshot):
    """Whether the last tick of an engine failed as it decided."""
    halt = snapshot.world.halt
    return halt is not None and halt.what == "deciding"
