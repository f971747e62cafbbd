# SPDX-License-Identifier: MIT
"""An ensemble on an engine with a fake lead and a fake cloud, all run by hand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn

from burst_ensemble.algorithm import Algorithm, MemberDecision, MemberView, Memory
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core import commands
from burst_ensemble.core.record import (
    EnsembleStart,
    MemberRecord,
)
from burst_ensemble.runtime.client import DaemonClient, ExternalMembers
from burst_ensemble.runtime.service import EnsembleService

from burst.config.convert import convert
from burst.core.records import Records
from burst.core.tagged_nodes import TaggedNodes, tagged_nodes
from burst.errors import BurstError, JobRefused
from burst.lead import NewJob, ServiceRequest
from burst.model.active_job import JobOutcome
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.request import (
    parse_attributes,
    parse_name,
    parse_preferences,
    parse_request,
)
from burst.runtime.daemon_package import PackageHost
from burst.runtime.service_api import ServiceApi
from tests.sim import Sim

USER = 100


class Scripted:
    """An algorithm that says what the test has told it to say."""

    def __init__(self) -> None:
        self.says: MemberDecision = MemberDecision()
        self.error: BaseException | None = None
        self.saw: list[MemberView] = []

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        self.saw.append(view)
        if self.error:
            raise self.error
        return self.says


class Submitted:
    """The side of a fake lead that takes jobs."""

    def __init__(self, sim: Sim) -> None:
        self._sim = sim
        self.identity, self.shared_store = sim.lead.identity, sim.lead.shared_store
        self.refuses = ""
        self.never_takes = ""
        """Why the lead will never accept a job; empty if it does."""
        self.lost = False
        """Whether the answer to a submission is lost; the jobs are there."""
        self.names: dict[str, JobId] = {}
        self.ended: dict[JobId, JobOutcome] = {}

    def submit_jobs(self, jobs: Sequence[NewJob]) -> Sequence[JobId | BurstError]:
        if self.refuses:
            return [BurstError(self.refuses)] * len(jobs)
        if self.never_takes:
            return [JobRefused(self.never_takes)] * len(jobs)
        answers = [self._take(job) for job in jobs]
        if self.lost:
            raise BurstError("the answer was lost")
        return answers

    def find_jobs(self, names: Collection[str]) -> Mapping[str, JobId]:
        return {name: self.names[name] for name in names if name in self.names}

    def outcomes(self, jobs: Collection[JobId]) -> Mapping[JobId, JobOutcome]:
        return {job: self.ended[job] for job in jobs if job in self.ended}

    def _take(self, job: NewJob) -> JobId:
        spec = job.jobspec
        name = parse_name(spec)
        assert name not in self.names, "submitted twice"
        number: JobId = self._sim.lead.submit(
            parse_request(spec),
            userid=USER,
            urgency=job.urgency,
            preferences=parse_preferences(spec),
            attributes=parse_attributes(spec),
            name=name,
        )
        self.names[name] = number
        return number


def host_of(
    sim: Sim,
    user: int = USER,
    wake: Callable[[], None] | None = None,
    deadline: float = 0.0,
) -> PackageHost:
    """A daemon of a user, by default one that ticks whenever it is asked something."""

    def reload() -> NoReturn:
        raise AssertionError("nobody asks for that")

    wakes = wake or sim.tick
    api = ServiceApi(lambda: sim.engine, wakes, reload, {}, deadline=deadline)

    def call(method: str, payload: dict[str, Any]) -> dict[str, Any]:
        return api.answer(ServiceRequest(method, payload, user, owner=True))

    return PackageHost(lambda: sim.engine.snapshot, sim.lead, lambda: sim.now, call)


def nodes_of(sim: Sim) -> TaggedNodes:
    """What a daemon tells of nodes and jobs with tags."""
    seen = sim.engine.snapshot
    return tagged_nodes(seen.records, seen.world, seen.settings, seen.now)


class EnsembleSite:
    """A daemon with one ensemble at a time."""

    user = USER
    """Who runs the daemon, and its jobs."""

    make_external: Callable[[DaemonClient], ExternalMembers | None] = staticmethod(
        lambda _: None
    )
    """Makes what tells of external members."""

    def __init__(self, kind: type[Sim] = Sim, **tables: Any) -> None:
        self.sim = kind(**tables)
        self.sim.tick(2)
        self.lead = Submitted(self.sim)
        self.algorithms: dict[str, Algorithm] = {}
        self.boot()

    def boot(self) -> None:
        daemon = self.client()
        self.external = self.make_external(daemon)
        self.service = EnsembleService(
            daemon,
            self.external,
            lambda file: {
                member.name: {"scripted": self.algorithms[member.name]}
                for member in file.spec.members
            },
        )
        self.store, self.ensembles = self.service.store, self.service.ensembles

    def client(self) -> DaemonClient:
        """What ensembles have of the daemon."""
        lead: Any = self.lead
        host = host_of(self.sim, self.user)
        return DaemonClient(
            host.call, lead, lambda: self.sim.engine.snapshot.settings, host.clock
        )

    def restart(self) -> None:
        """Start the daemon again."""
        self.sim.boot()
        self.sim.tick(3)
        self.boot()

    def up(self, **tables: Any) -> dict[str, Scripted]:
        """Start an ensemble; return the algorithm of each member."""
        spec = convert(EnsembleSpec, {"name": "sweep", **tables}, "test")
        scripts = {member.name: Scripted() for member in spec.members}
        self.algorithms |= scripts
        new = EnsembleStart(
            spec=spec, userid=self.user, environment={"HOME": "/home/u"}
        )
        self.begin(new)
        return scripts

    def begin(self, new: EnsembleStart) -> None:
        """Put an ensemble on record."""
        nodes, now = nodes_of(self.sim), self.sim.now
        self.store.change(
            lambda current: commands.begin_ensemble(current, nodes, new, now)
        )

    def rows(self, name: str = "") -> list[Any]:
        """What is shown of ensembles."""
        answer = self.service.answer("ensemble-status", {"name": name})
        rows: list[Any] = answer["ensembles"]
        return rows

    def down(self, name: str = "sweep") -> None:
        self.ask("down", name=name, note="by hand")

    def ask(self, method: str, **asked: Any) -> Any:
        """Have something done, as a command asks for it."""
        return self.service.answer(f"ensemble-{method}", {"name": "sweep", **asked})

    def step(self, steps: int = 1) -> None:
        """Take a step of all ensembles, with some ticks in between."""
        for _ in range(steps):
            self.sim.tick(4, seconds=3.0)
            self.ensembles.look()

    def once(self, *submit: str, nodes: int | None = None, **said: Any) -> Scripted:
        """Have the algorithm of `a` say this in one step, and then the size alone."""
        script = self.algorithms["a"]
        assert isinstance(script, Scripted)
        script.says = MemberDecision(nodes=nodes, submit=submit, **said)
        self.step()
        script.says = MemberDecision(nodes=nodes)
        return script

    def shown(self, member: str = "a") -> Any:
        """What is shown of a member."""
        (row,) = self.rows()
        return row["members"][member]

    @property
    def records(self) -> Records:
        """The daemon's."""
        return self.sim.engine.snapshot.records

    def member(self, name: str) -> MemberRecord:
        return self.store.read()["sweep"].record.members[name]

    def live(self, member: str) -> int:
        """Nodes of a member that are online."""
        return sum(
            burst.lease.nodes
            for burst in self.records.live
            if burst.lease.tag
            and burst.lease.tag.name == f"sweep/{member}"
            and burst.state.value == "online"
        )

    def end_job(self, job: JobId, result: str = "completed") -> None:
        self.sim.lead.finish(job, result)

    def states(self) -> set[JobState]:
        return {job.state for job in self.sim.lead.jobs.values()}


MEMBER: dict[str, Any] = {"name": "a", "provider": "local", "min": 1, "max": 3}
WINDOWS = {"growWindow": "1s", "shrinkWindow": "1s"}
