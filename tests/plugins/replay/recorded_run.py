# SPDX-License-Identifier: MIT
"""The daemon's engine over a day or more in virtual time, with its job recorder on.

Jobs are of whole nodes, all of which have the same cores. Own nodes are scheduled first
come first served, as sched-burst does: a job for which a burst is made is stepped over.
Time goes from one event to the next. At each, lead, forecaster, engine and provider are
called in turn until none has anything more to do, so that nothing takes time but jobs,
and bursts to boot.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from burst.model.active_job import ActiveJob, QueuePicture, picture_of
from burst.model.burst import Burst, State
from burst.model.job_record import RecordedEvent
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView
from burst.model.resource_set import EMPTY, group_of
from burst.model.shape import Shape
from burst.runtime.forecaster import Forecaster
from burst.runtime.job_recorder import JobRecorder
from burst.runtime.side_threads import SideThreads
from tests.builders import T0, identity, settings, whole
from tests.fakes import FakeLead, has_failed
from tests.sim import Sim

CORES = 4
BOOT_S = 300.0
LENT_NODES = 60
_MOST_TURNS = 50


class PlannedJob(msgspec.Struct, frozen=True):
    """What a user submits, and how long it runs. Times are whole seconds."""

    submit: float
    nodes: int
    run_time: float
    limit: float
    userid: int
    name: str = ""


class Load(msgspec.Struct, frozen=True):
    """How long jobs may run, in seconds, and how often they come."""

    limits: tuple[int, ...]
    node_seconds: float
    """Of own nodes, from one submission to the next."""


HOUR = 3600
SHORT = Load((600, 1800, HOUR, 4 * HOUR), 6000.0)
LONG = Load((HOUR, 4 * HOUR, 12 * HOUR, 24 * HOUR), 20_000.0)
"""Hours pass in which no job is submitted or ends."""
SPARSE = Load(LONG.limits, 60_000.0)
"""Hours pass in which jobs wait although they should have started."""


def draw_jobs(
    seed: int,
    count: int,
    own_nodes: int,
    users: int,
    load: Load = SHORT,
) -> list[PlannedJob]:
    """Return a workload that is more than the own nodes can do."""
    draw = random.Random(seed)
    made = []
    now = 0.0
    for _ in range(count):
        limit = draw.choice(load.limits)
        run_time = max(1, round(limit * draw.betavariate(0.7, 1.2)))
        nodes = draw.choice((1, 1, 1, 2, 2, 3, own_nodes, own_nodes + 1))
        userid = draw.randrange(users)
        name = f"app-{draw.randrange(2)}"
        made.append(PlannedJob(now, nodes, run_time, limit, userid, name))
        if draw.random() > 0.25:  # else the next one is submitted with it
            now += round(draw.expovariate(own_nodes / load.node_seconds))
    return made


class RecordedLead(FakeLead):
    """Starts jobs as sched-burst does, and tells of all of them as the journal does."""

    def __init__(self, own_nodes: int) -> None:
        known = identity(f"lead-[0-{own_nodes - 1}],burst-0-[0-{LENT_NODES - 1}]")
        shapes = (Shape(CORES),) * len(known.hosts)
        known = msgspec.structs.replace(known, shapes=shapes)
        self.own = frozenset(range(own_nodes))
        super().__init__(known=known, online=set(self.own))
        self.facts: dict[JobId, PlannedJob] = {}
        self.active: dict[JobId, None] = {}
        self.ran_on: dict[JobId, frozenset[int]] = {}
        self.recorder: JobRecorder | None = None
        self.forecaster: Forecaster | None = None

    def come(self, job: PlannedJob) -> None:
        """A job is submitted."""
        number: JobId = self.submit(
            whole(job.nodes),
            userid=job.userid,
            name=job.name,
            duration=job.limit,
        )
        self.facts[number] = job
        self.active[number] = None
        system = {"duration": job.limit, "job": {"name": job.name}}
        jobspec = json.dumps({"attributes": {"system": system}}).encode()
        context = {"userid": job.userid}
        self._tell(number, "submit", context=context, jobspec=msgspec.Raw(jobspec))

    def end_jobs(self) -> None:
        """End the jobs that are over."""
        for number in list(self.active):
            job = self.jobs[number]
            if job.ranks and job.t_start + self.facts[number].run_time <= self.now:
                assert job.ranks <= self.online, "a job was killed"
                ended = self._active(job)
                self.finish(number)
                del self.active[number]
                self._tell(number, "finish")
                assert self.forecaster is not None
                self.forecaster.ended(msgspec.structs.replace(ended, t_finish=self.now))

    def next_end(self) -> float:
        """Return when the next job ends."""
        running = (self.jobs[n] for n in self.active if self.jobs[n].ranks)
        ends = (job.t_start + self.facts[job.id].run_time for job in running)
        return min(ends, default=math.inf)

    def schedule(self) -> None:
        """Start what can start; on own nodes the first that cannot blocks others."""
        told = self.lent[-1].jobs if self.lent else {}
        taken = {r for n in self.active for r in self.jobs[n].ranks}
        free = sorted(self.online - taken - set(self.drained))
        own = [rank for rank in free if rank in self.own]
        blocked = False
        for number in list(self.active):
            job = self.jobs[number]
            assert job.request is not None
            need = job.request.nodes
            if job.ranks:
                continue
            if number in told:
                lent = [rank for rank in free if rank in told[number]]
                if len(lent) >= need:
                    self._start(job, lent[:need])
            elif need <= len(self.own) and not blocked:
                blocked = len(own) < need
                if not blocked:
                    self._start(job, own[:need])
                    own = own[need:]

    def follow_queue(self, *_: Any) -> None:
        raise AssertionError("a session does that, and there is none")

    def queue_picture(self) -> QueuePicture:
        """Return all active jobs."""
        return picture_of(self._active(self.jobs[number]) for number in self.active)

    def active_job(self, number: JobId) -> ActiveJob | None:
        return self._active(self.jobs[number]) if number in self.active else None

    def _active(self, job: JobView) -> ActiveJob:
        return ActiveJob(
            id=job.id,
            userid=job.userid,
            name=job.name,
            state=job.state,
            priority=job.urgency,
            request=job.request,
            duration=job.duration,
            t_start=job.t_start,
            taken=dict.fromkeys(job.ranks, Shape(CORES)),
        )

    def _start(self, job: JobView, ranks: Sequence[int]) -> None:
        where = frozenset(ranks)
        self.change(job.id, state=JobState.RUN, ranks=where, t_start=self.now)
        self.ran_on[job.id] = where
        hosts = [self.known.hosts[rank] for rank in sorted(where)]
        given = EMPTY.with_ranks([group_of(where, Shape(CORES))], hosts)
        self._tell(job.id, "alloc", R=given)
        self._tell(job.id, "start")

    def _tell(self, number: JobId, name: str, **more: Any) -> None:
        event = RecordedEvent(id=number, timestamp=self.now, name=name, **more)
        assert self.recorder is not None
        self.recorder.record(event)
        assert self.forecaster is not None
        self.forecaster.changed()


class RecordedRun(Sim):
    """The engine with that lead and a forecaster, both called by hand."""

    lead: RecordedLead

    def __init__(self, own_nodes: int, record: Path, **tables: Any) -> None:
        self.record = record
        self.made: dict[str, float] = {}
        self.seen: set[str] = set()
        self.bought: dict[JobId, int] = {}
        """The jobs that bursts were made for, and how many nodes these have."""
        fixed: dict[str, Any] = {
            "intake": {"mode": "scheduler"},
            # Nothing is to be found by asking again, and ticks cost time.
            "daemon": {"cadence": "1h"},
        }
        self.waits = {rule.wait or 0.0 for rule in settings(**tables).rules}
        super().__init__(RecordedLead(own_nodes), **fixed, **tables)

    def boot(self) -> None:
        """Start the daemon."""
        self.fake_settings = msgspec.structs.replace(
            self.fake_settings,
            shape=Shape(CORES),
            max_nodes=LENT_NODES,
            join_time=BOOT_S,
            price=1.0,
        )
        self.forecaster = Forecaster(self.lead, lambda: None, lambda: self.now)
        # Never started: passes are made by hand.
        self.forecaster.use(settings(**self.tables))
        self.lead.forecaster = self.forecaster
        self.lead.recorder = JobRecorder(self.record)
        self.beside = SideThreads(forecaster=self.forecaster)
        super().boot()

    def run(self, jobs: Sequence[PlannedJob]) -> None:
        """Run the jobs until all have ended and all bursts are gone."""
        coming = list(reversed(jobs))
        due = self.now
        while coming or self.lead.active or any(b.live for b in self.bursts):
            submit = T0 + coming[-1].submit if coming else math.inf
            online = min(
                (at for at in self.made.values() if at > self.now), default=math.inf
            )
            late = self.forecaster.time_left()
            late = math.inf if late is None else self.now + late
            self.now = min(submit, self.lead.next_end(), online, late, due)
            assert self.now < math.inf, self.story()
            self.lead.now = self.now
            self.lead.end_jobs()
            while coming and T0 + coming[-1].submit <= self.now:
                self.lead.come(coming.pop())
            due = self._settle()
        assert self.lead.recorder is not None
        self.lead.recorder.close()

    def _settle(self) -> float:
        """Let all do what they have to do now; return when the engine is due.

        Where no burst ends, it would only ask its provider for news.
        """
        for _ in range(_MOST_TURNS):
            before = self._state()
            self.executor.pump()
            self._join()
            self.lead.schedule()
            self.forecaster.make_pass()
            due: float = self.engine.tick(self.now)
            assert not has_failed(self.engine.snapshot), "see the log"
            for burst in self.bursts:
                if burst.id not in self.seen:
                    self.seen.add(burst.id)
                    self.bought.update(dict.fromkeys(burst.jobs, burst.lease.nodes))
            self.lead.schedule()
            if self._state() == before and not self.executor.tasks:
                ending = any(map(_ends, self.bursts))
                due = max(due, self.now + 0.001) if ending else math.inf
                return min(due, self._own_first())
        raise AssertionError(f"it does not come to rest: {self.story()}")

    def _own_first(self) -> float:
        """Return when a job has been left to own nodes for as long as a rule says.

        The daemon looks at that each `[daemon] cadence`.
        """
        jobs = [self.lead.jobs[number] for number in self.lead.active]
        due = (j.t_submit + wait for j in jobs if not j.ranks for wait in self.waits)
        return min((when for when in due if when > self.now), default=math.inf)

    def _state(self) -> object:
        jobs = [(n, j.state, j.urgency) for n, j in self.lead.jobs.items()]
        decisions = self.engine.snapshot.decisions
        verdicts = {job: decision.reason for job, decision in decisions.items()}
        return jobs, verdicts, self.engine.snapshot.records, frozenset(self.lead.online)

    def _join(self) -> None:
        """Followers join once they have booted; those that are gone leave."""
        ranks = {host: rank for rank, host in enumerate(self.lead.known.hosts)}
        there = self.cloud.followers()
        for host in there:
            self.made.setdefault(host, self.now + BOOT_S)
        self.made = {host: at for host, at in self.made.items() if host in there}
        up = {ranks[host] for host, at in self.made.items() if at <= self.now}
        self.lead.online = set(self.lead.own | up)


def _ends(burst: Burst) -> bool:
    """Tell whether a burst is being taken down, or soon will be."""
    idle = burst.live and burst.idle_since is not None
    return idle or burst.state in (State.DRAIN, State.REAP) or bool(burst.drained)
