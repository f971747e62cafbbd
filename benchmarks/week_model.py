# SPDX-License-Identifier: MIT
"""Run the jobs of `week` in virtual time: an engine, a lead that schedules, a provider.

The engine is the daemon's own. The lead schedules like Flux's fifo or like sched-burst;
a job has its nodes a little longer than it runs. Followers join some time after the
request, as with the local provider or a cloud.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from benchmarks.week_jobs import LENT_NODES, RunResult, WeekJob
from burst.model.burst import BurstId, State
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView, LeadView
from tests.builders import NODE, identity, whole
from tests.fakes import FakeLead
from tests.sim import Sim

STEP_S = 0.1
HANDLING_S = 0.1
"""Seconds for which Flux keeps a job's nodes beside the run: exec, epilog, free."""
LOCAL_BOOT_S = 1.0
_REMEMBERED_S = 60.0
# A run that has not ended after this time never will.
_LONGEST_S = 20_000.0


class ModelLead(FakeLead):
    """A lead with one own node that starts jobs as Flux does, in either mode."""

    def __init__(self, mode: str, size: int) -> None:
        slots = range(LENT_NODES // size)
        hosts = [f"burst-{slot}-{node}" for slot in slots for node in range(size)]
        known = identity(",".join(["lead-0", *hosts]))
        known = msgspec.structs.replace(known, shapes=(NODE,) * len(known.hosts))
        super().__init__(known=known, online={0})
        self.mode = mode
        self.runs: dict[JobId, float] = {}
        """The run time of each job, in seconds."""
        self.ranks_of: dict[JobId, frozenset[int]] = {}
        self.ends: list[tuple[float, JobId]] = []
        self.active: dict[JobId, None] = {}

    def come(self, job: WeekJob) -> None:
        """Submit a job."""
        number: JobId = self.submit(whole(job.nodes))
        self.runs[number] = job.duration
        self.active[number] = None

    def observe(self) -> LeadView:
        """Return the view of the lead, without jobs that ended long ago."""
        seen: LeadView = super().observe()
        ended = self.now - _REMEMBERED_S
        jobs = {
            number: job
            for number, job in seen.jobs.items()
            if not job.t_finish or job.t_finish > ended
        }
        return msgspec.structs.replace(seen, jobs=jobs)

    def end_jobs(self) -> bool:
        """End the jobs whose run time is over; tell whether there were any."""
        ended = False
        while self.ends and self.ends[0][0] <= self.now:
            _, number = heapq.heappop(self.ends)
            if self.jobs[number].state is JobState.RUN:
                self.finish(number)
                del self.active[number]
                ended = True
        return ended

    def schedule(self) -> None:
        """Start the jobs that can start, in the order of the mode's scheduler."""
        taken = {r for number in self.active for r in self.jobs[number].ranks}
        free = sorted(self.online - taken - set(self.drained))
        pending = [self.jobs[n] for n in self.active if not self.jobs[n].ranks]
        for job in sorted(pending, key=lambda each: (-each.urgency, each.id)):
            if not job.urgency:
                continue
            ranks = self._ranks_for(job, free)
            if ranks:
                self._start(job, ranks)
                free = [rank for rank in free if rank not in ranks]
            elif self.mode != "scheduler":
                return

    def _ranks_for(self, job: JobView, free: Sequence[int]) -> Sequence[int]:
        assert job.request is not None
        need = job.request.nodes
        if self.mode != "scheduler":
            return free[:need] if len(free) >= need else []
        told = self.lent[-1] if self.lent else None
        leased = told.ranks if told else frozenset()
        mine = told.jobs.get(job.id) if told else None
        lent = [r for r in free if (r in mine if mine else r and r not in leased)]
        if len(lent) >= need:
            return lent[:need]
        own = [rank for rank in free if rank == 0]
        return own[:need] if mine is None and len(own) >= need else []

    def _start(self, job: JobView, ranks: Sequence[int]) -> None:
        self.change(
            job.id, state=JobState.RUN, ranks=frozenset(ranks), t_start=self.now
        )
        self.ranks_of[job.id] = frozenset(ranks)
        heapq.heappush(self.ends, (self.now + self.runs[job.id] + HANDLING_S, job.id))


class ModelSim(Sim):
    """The engine with a ModelLead, and followers that take some time to join."""

    def __init__(self, lead: ModelLead, boot: float, **tables: Any) -> None:
        self.boot_time = boot
        self.made: dict[tuple[BurstId, str], float] = {}
        super().__init__(lead, nodes=LENT_NODES, **tables)
        self.due = 0.0
        self.seen: set[BurstId] = set()
        self.paid = 0.0
        """Node-seconds of bursts from the call of `provision` until they are gone."""
        self.jobs_before: list[tuple[JobId, JobState, int]] = []

    def pass_time(self) -> None:
        """Advance the time by one step."""
        made = (each for each in self.bursts if each.live and each.state != State.NEW)
        self.paid += STEP_S * sum(each.lease.nodes for each in made)
        self.now = round(self.now + STEP_S, 3)
        self.lead.now = self.now

    def step(self, *, woken: bool) -> None:
        """Do all that is due at this time."""
        before = self.lead.online.copy(), len(self.executor.tasks)
        self.executor.pump()
        self.meet()
        self.lead.schedule()
        woken = woken or bool(before[1]) or before[0] != self.lead.online
        if woken or self.due <= self.now or self.changed():
            self.due = self.engine.tick(self.now)
            self.lead.schedule()
            self.seen.update(burst.id for burst in self.bursts)

    def changed(self) -> bool:
        """Tell whether the lead has news since the last call."""
        now = [(n, j.state, j.urgency) for n, j in self.lead.jobs.items()]
        before, self.jobs_before = self.jobs_before, now
        return before != now

    def meet(self) -> None:
        """Let followers join after their boot time, and lose those that are gone."""
        ranks = {host: rank for rank, host in enumerate(self.lead.known.hosts)}
        there = {(b, h): self.now for h, b in self.cloud.followers().items()}
        self.made = {**there, **{k: t for k, t in self.made.items() if k in there}}
        up = {ranks[h] for h in self.provider.running()}
        late = {
            ranks[h] for (_, h), t in self.made.items() if self.now < t + self.boot_time
        }
        for rank in self.lead.online - {0} - up:
            self.lead.lose(rank)
        self.lead.online |= up - late


def run_model(
    jobs: Sequence[WeekJob], mode: str, size: int, boot: float, **tables: Any
) -> RunResult:
    """Return the result of the jobs with the daemon, in virtual time.

    `size` is the number of nodes of each rank slot, `boot` the seconds that followers
    take to join.
    """
    lead = ModelLead(mode, size)
    sim = ModelSim(lead, boot, intake={"mode": mode}, **tables)
    coming = list(reversed(jobs))
    sim.tick(3)
    began = sim.now
    while coming or lead.active:
        if sim.now - began > _LONGEST_S:
            break
        woken = False
        while coming and began + coming[-1].submitted <= sim.now:
            lead.come(coming.pop())
            woken = True
        woken |= lead.end_jobs()
        sim.step(woken=woken)
        sim.pass_time()
    makespan = sim.now - began
    at_end = sim.paid
    while any(burst.live for burst in sim.bursts):
        sim.step(woken=False)
        sim.pass_time()
    return RunResult(
        makespan=makespan,
        waits=waits_of(lead),
        used=used_by_jobs(lead),
        paid=sim.paid,
        paid_at_end=at_end,
        bursts=len(sim.seen),
        started=len(lead.ranks_of),
    )


def waits_of(lead: ModelLead) -> Mapping[int, Sequence[float]]:
    """Return how long jobs waited until they started, by their number of nodes."""
    waits: dict[int, list[float]] = {}
    for number, ranks in lead.ranks_of.items():
        job = lead.jobs[number]
        waits.setdefault(len(ranks), []).append(job.t_start - job.t_submit)
    return waits


def used_by_jobs(lead: ModelLead) -> float:
    """Return the node-seconds that jobs ran on lent nodes."""
    return sum(
        lead.runs[number] * len(ranks - {0}) for number, ranks in lead.ranks_of.items()
    )
