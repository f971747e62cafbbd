# SPDX-License-Identifier: MIT
"""An ensemble in simulation: the daemon's own controller over members that are not
real. Nothing is bought. It runs the jobs of the file, and those of a trace.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec
from burst_ensemble.algorithm import MemberDecision, MemberView, Memory
from burst_ensemble.config.spec import EnsembleSpec, JobSpec
from burst_ensemble.core.controller import confirm, look, new_record
from burst_ensemble.core.intents import (
    Done,
    EndMember,
    Intent,
    JobRef,
    ResizeMember,
    SubmitJobs,
)
from burst_ensemble.core.member_job import find_group
from burst_ensemble.core.record import EnsembleRecord, MemberRecord
from burst_ensemble.core.wishes import AlgorithmFault, Answer
from burst_ensemble.runtime.algorithms import Algorithms
from burst_replay.trace import Trace

from burst_ensemble_replay.member import (
    NodeTimes,
    SimulatedIsolatedMember,
    SimulatedJob,
    SimulatedMember,
)

START = 1_000_000_000.0
"""When a simulation begins, in seconds since the epoch."""


class Arrival(msgspec.Struct, frozen=True):
    """A job that a user submits, whatever the algorithms do."""

    at: float
    """Seconds from the start."""
    nodes: int
    run_time: float


class Workload(msgspec.Struct, frozen=True):
    """What runs."""

    arrivals: Sequence[Arrival] = ()
    """By time. Each goes to the least loaded of the members that can run it."""
    job: Callable[[JobSpec, JobRef], SimulatedJob] = lambda job, _: SimulatedJob(
        job.name, job.nodes, float(job.duration) or 600.0
    )
    """How long a job of the file runs, and whether it succeeds."""


class MemberOutcome(msgspec.Struct, frozen=True):
    """What became of a member, as `burst ensemble replay --json` has it."""

    name: str
    paid_node_hours: float
    needed_node_hours: float
    """Those of its jobs."""
    money: float
    jobs: int
    """Those that started."""
    mean_wait_s: float
    p95_wait_s: float
    changes: int
    """How often its size changed, its first and its end left out."""
    nodes: int
    """At the end."""
    end: str
    """Why it ended; empty if it did not."""
    trouble: str = ""
    """What its algorithms did wrong, for which it stays as it is; empty for nothing."""


class EnsembleOutcome(msgspec.Struct, frozen=True):
    """What became of an ensemble."""

    name: str
    elapsed_s: float
    why: str
    refused: int
    """Arrivals that no member could have run, or that came after the end."""
    members: tuple[MemberOutcome, ...]


class EnsembleSimulator:
    """Runs one ensemble."""

    def __init__(
        self,
        spec: EnsembleSpec,
        algorithms: Algorithms,
        times: NodeTimes,
        workload: Workload,
    ) -> None:
        self._spec = spec
        self._algorithms = algorithms
        self._workload = workload
        self._record = new_record(spec, START)
        self.members = {
            each.name: (
                SimulatedIsolatedMember if each.is_isolated else SimulatedMember
            )(times)
            for each in spec.members
        }
        self._most = {each.name: each.max for each in spec.members}
        self._arrivals = list(reversed(workload.arrivals))
        self._refused = 0

    @property
    def record(self) -> EnsembleRecord:
        """What the daemon would have on record."""
        return self._record

    def run(
        self, longest: float = math.inf, progress: Callable[[float], None] | None = None
    ) -> EnsembleOutcome:
        """Run until all members have ended, or for so many seconds.

        Without an end in sight it stops an hour after the last job.
        """
        now = last = START
        while now - START < longest:
            self._advance(now)
            self._check(now)
            if progress:
                progress(now - START)
            if self._record.ended is not None and not self._paid():
                break
            last = now if self._arrivals or self._busy() else last
            if now - last > 3600:
                break
            now += self._spec.check
        return self._outcome(now - START)

    def _advance(self, now: float) -> None:
        while self._arrivals and START + self._arrivals[-1].at <= now:
            arrival = self._arrivals.pop()
            for member in self.members.values():
                member.advance(START + arrival.at)
            self._arrive(arrival)
        for member in self.members.values():
            member.advance(now)

    def _arrive(self, arrival: Arrival) -> None:
        able = [
            (sum(job.nodes for job in member.waiting) + member.busy, place, name)
            for place, (name, member) in enumerate(self.members.items())
            if not member.ended and self._most[name] >= arrival.nodes
        ]
        if not able:
            self._refused += 1
            return
        job = SimulatedJob("arrived", arrival.nodes, arrival.run_time)
        self.members[min(able)[2]].submit(job, START + arrival.at)

    def _check(self, now: float) -> None:
        read = {
            name: member.read(self._record.members[name], now)
            for name, member in self.members.items()
        }

        def ask(view: MemberView, memory: Mapping[str, Memory]) -> dict[str, Answer]:
            return {
                name: _ask(partial(algorithm.decide, view, memory.get(name, {}), now))
                for name, algorithm in self._algorithms[view.name].items()
            }

        step = look(self._spec, self._record, read, ask, now)
        done = [(intent, self._do(intent, now)) for intent in step.intents]
        self._record = confirm(self._spec, step.record, done, now)

    def _do(self, intent: Intent, now: float) -> Done:
        member = self.members[intent.member]
        jobs = {}
        if isinstance(intent, ResizeMember):
            member.resize(intent.nodes, now)
        elif isinstance(intent, EndMember):
            member.end(now)
        elif isinstance(intent, SubmitJobs):
            for ref in intent.jobs:
                group = find_group(self._spec, intent.member, ref)
                job = self._workload.job(group, ref)
                member.submit(job, now)
                jobs[ref] = job.id
        return Done(jobs=jobs)

    def _busy(self) -> bool:
        return any(member.waiting or member.busy for member in self.members.values())

    def _paid(self) -> bool:
        return any(member.nodes_paid for member in self.members.values())

    def _outcome(self, now: float) -> EnsembleOutcome:
        record = self._record
        return EnsembleOutcome(
            name=record.name,
            elapsed_s=now,
            why=record.why,
            refused=self._refused + len(self._arrivals),
            members=tuple(
                _member_outcome(name, member, record.members[name])
                for name, member in self.members.items()
            ),
        )


def _member_outcome(
    name: str, member: SimulatedMember, kept: MemberRecord
) -> MemberOutcome:
    waits = sorted(job.start - job.submit for job in member.started)
    return MemberOutcome(
        name=name,
        paid_node_hours=member.paid / 3600,
        needed_node_hours=member.needed / 3600,
        money=member.paid / 3600 * member.times.price,
        jobs=len(waits),
        mean_wait_s=statistics.fmean(waits) if waits else 0.0,
        p95_wait_s=waits[int(0.95 * (len(waits) - 1))] if waits else 0.0,
        changes=max(0, member.changes - 1),
        nodes=kept.nodes,
        end=kept.why if kept.ended is not None else "",
        trouble=kept.trouble.what if kept.trouble else "",
    )


def _ask(decide: Callable[[], MemberDecision]) -> Answer:
    try:
        return decide()
    except Exception as error:  # noqa: BLE001  whatever an algorithm raises
        return AlgorithmFault(f"it raised {error!r}")


_UNLIMITED_S = 1200.0


def arrivals_of(trace: Trace, cores: int) -> list[Arrival]:
    """Return the jobs of a trace, on whole nodes of so many cores."""
    return [
        Arrival(job.submit, -(-job.cores // cores), job.run_time) for job in trace.jobs
    ]


def drawn_job(seed: int, failures: float) -> Callable[[JobSpec, JobRef], SimulatedJob]:
    """Return a function that draws how long a job of the file runs: from a tenth of its
    limit, or of 20 minutes, to all of it. `failures` is the part that fails.
    """

    def make(job: JobSpec, ref: JobRef) -> SimulatedJob:
        draw = random.Random(f"{seed} {ref.group} {ref.number}")  # noqa: S311
        limit = float(job.duration) or _UNLIMITED_S
        run_time = round(limit * draw.uniform(0.1, 1.0), 1)
        return SimulatedJob(job.name, job.nodes, run_time, draw.random() >= failures)

    return make
