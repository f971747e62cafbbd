# SPDX-License-Identifier: MIT
"""Simulate an ensemble: the daemon's own controller decides about simulated members.
Nothing is bought. It runs the jobs of the file, and those of a trace.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence

import msgspec
from burst_ensemble.algorithm import MemberView, Memory
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
from burst_ensemble.core.record import MemberRecord
from burst_ensemble.core.wishes import AlgorithmFault, Answer
from burst_ensemble.runtime.algorithms import AlgorithmCalls, Algorithms, Decide
from burst_replay.report import mean_and_p95
from burst_replay.trace import TraceJob

from burst import log
from burst_ensemble_replay.member import (
    NodeTimes,
    SimulatedIsolatedMember,
    SimulatedJob,
    SimulatedMember,
)

START = 1_000_000_000.0
"""When a simulation begins, in seconds since the epoch."""


class Workload(msgspec.Struct, frozen=True):
    """The jobs that a simulated ensemble runs."""

    arrivals: Sequence[TraceJob] = ()
    """Jobs of users, in the order of their submission. Each goes to the least loaded
    member that can run it."""
    node_cores: int = 1
    """Cores of a node: each of these jobs has whole nodes."""
    job: Callable[[JobSpec, JobRef], SimulatedJob] = lambda job, _: SimulatedJob(
        job.name, job.nodes, float(job.duration) or 600.0
    )
    """Returns the simulated job for a job of the file: its run time and success."""


class MemberOutcome(msgspec.Struct, frozen=True):
    """The result for a member, as `burst ensemble replay --json` prints it."""

    name: str
    paid_node_hours: float
    needed_node_hours: float
    """Node-hours of its jobs that started."""
    money: float
    jobs: int
    """The number of its jobs that started."""
    mean_wait_s: float
    p95_wait_s: float
    changes: int
    """How often its size changed, without the first size and the end."""
    nodes: int
    """Its size at the end."""
    end: str
    """Why it ended; empty if it did not."""
    trouble: str = ""
    """The fault of an algorithm that keeps it as it is, or kept it so until its end;
    empty for none."""


class EnsembleOutcome(msgspec.Struct, frozen=True):
    """The result for an ensemble."""

    name: str
    elapsed_s: float
    why: str
    refused: int
    """Arrivals for which no running member was large enough, or that came after the
    end."""
    members: tuple[MemberOutcome, ...]


class EnsembleSimulator:
    """Simulates one ensemble."""

    def __init__(
        self,
        spec: EnsembleSpec,
        algorithms: Algorithms,
        times: NodeTimes,
        workload: Workload,
        prices: Mapping[str, float] | None = None,
    ) -> None:
        """`prices` has members whose nodes have another price than `times`, by name."""
        self._spec = spec
        self._algorithms, self._calls = algorithms, AlgorithmCalls(self._call)
        self._told: set[str] = set()
        self._workload = workload
        self.record = new_record(spec, START)
        """The record that the daemon would have."""
        self.members = {
            each.name: (
                SimulatedIsolatedMember if each.is_isolated else SimulatedMember
            )(_priced(times, (prices or {}).get(each.name)))
            for each in spec.members
        }
        self._faults = dict.fromkeys(self.members, "")
        """The fault of each member at the last check before its end."""
        self._most = {each.name: each.max for each in spec.members}
        self._arrivals = list(reversed(workload.arrivals))
        self._refused = 0

    def run(
        self, longest: float = math.inf, progress: Callable[[float], None] | None = None
    ) -> EnsembleOutcome:
        """Run until all members have ended, or for `longest` seconds.

        If the members do not end, it stops an hour after the last job.
        """
        now = last = START
        while now - START < longest:
            self._advance(now)
            self._check(now)
            if progress:
                progress(now - START)
            if self.record.ended is not None and not self._paid():
                break
            last = now if self._arrivals or self._busy() else last
            if now - last > 3600:
                break
            now += self._spec.check
        return self._outcome(now - START)

    def _advance(self, now: float) -> None:
        while self._arrivals and START + self._arrivals[-1].submit <= now:
            arrival = self._arrivals.pop()
            for member in self.members.values():
                member.advance(START + arrival.submit)
            self._arrive(arrival)
        for member in self.members.values():
            member.advance(now)

    def _arrive(self, arrival: TraceJob) -> None:
        nodes = -(-arrival.cores // self._workload.node_cores)
        able = [
            (sum(job.nodes for job in member.waiting) + member.busy, place, name)
            for place, (name, member) in enumerate(self.members.items())
            if not member.ended and self._most[name] >= nodes
        ]
        if not able:
            self._refused += 1
            return
        job = SimulatedJob("arrived", nodes, arrival.run_time)
        self.members[min(able)[2]].submit(job, START + arrival.submit)

    def _check(self, now: float) -> None:
        read = {
            name: member.read(self.record.members[name], now)
            for name, member in self.members.items()
        }

        def ask(view: MemberView, memory: Mapping[str, Memory]) -> dict[str, Answer]:
            algorithms = self._algorithms[view.name]
            return self._calls.ask(view.name, algorithms, (view, memory), now)

        self._faults |= {
            name: member.fault
            for name, member in self.record.members.items()
            if member.ended is None
        }
        step = look(self._spec, self.record, read, ask, now)
        done = [(intent, self._do(intent, now)) for intent in step.intents]
        self.record = confirm(self._spec, step.record, done, now)

    def _call(self, name: str, decide: Decide) -> tuple[Answer, Callable[[], bool]]:
        """See `Call`. However long it takes, no time passes in the simulation."""
        answer: Answer
        try:
            answer = decide()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  whatever it raises
            if name not in self._told:
                log.failure("%s raised", name)
            self._told.add(name)
            answer = AlgorithmFault(f"it raised {error!r}")
        return answer, lambda: False

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
        record = self.record
        return EnsembleOutcome(
            name=record.name,
            elapsed_s=now,
            why=record.why,
            refused=self._refused + len(self._arrivals),
            members=tuple(
                _member_outcome(name, member, record.members[name], self._faults[name])
                for name, member in self.members.items()
            ),
        )


def _priced(times: NodeTimes, price: float | None) -> NodeTimes:
    return times if price is None else msgspec.structs.replace(times, price=price)


def _member_outcome(
    name: str, member: SimulatedMember, kept: MemberRecord, fault: str
) -> MemberOutcome:
    waits = [job.start - job.submit for job in member.started]
    mean_wait, p95_wait = mean_and_p95(waits)
    return MemberOutcome(
        name=name,
        paid_node_hours=member.paid / 3600,
        needed_node_hours=member.needed / 3600,
        money=member.paid / 3600 * member.times.price,
        jobs=len(waits),
        mean_wait_s=mean_wait,
        p95_wait_s=p95_wait,
        changes=max(0, member.changes - 1),
        nodes=kept.nodes,
        end=kept.why if kept.ended is not None else "",
        trouble=kept.fault or fault,
    )


_UNLIMITED_S = 1200.0


def drawn_job(seed: int, failures: float) -> Callable[[JobSpec, JobRef], SimulatedJob]:
    """Return a function that draws the run time of a job of the file: from a tenth of
    its limit to all of it; without a limit, of 20 minutes. `failures` is the share of
    jobs that fail.
    """

    def make(job: JobSpec, ref: JobRef) -> SimulatedJob:
        draw = random.Random(f"{seed} {ref.group} {ref.number}")  # noqa: S311
        limit = float(job.duration) or _UNLIMITED_S
        run_time = round(limit * draw.uniform(0.1, 1.0), 1)
        return SimulatedJob(job.name, job.nodes, run_time, draw.random() >= failures)

    return make
