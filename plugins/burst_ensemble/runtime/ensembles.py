# SPDX-License-Identifier: MIT
"""Runs the ensembles that are on record, on a thread of its own.

Every `checkSeconds` it reads the members of an ensemble, asks their algorithms, and
stores what the step came to. Then it resizes members by the daemon's
service, submits jobs and runs commands, and has that confirmed. So algorithms delay no
tick, and after a crash each of these is found to be done, or is done again.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence

import msgspec

from burst import log
from burst.core.tagged_nodes import TaggedNodes
from burst.errors import BurstError, ConfigError
from burst.lead import JobSubmitter
from burst.model.jobid import JobId
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core import steps
from burst_ensemble.core.controller import take_step
from burst_ensemble.core.intents import (
    Answered,
    EndMember,
    Intent,
    JobRef,
    RunCustom,
    SubmitJobs,
)
from burst_ensemble.core.job_rows import MemberState
from burst_ensemble.core.over import is_over, lost_members
from burst_ensemble.core.read_members import (
    jobs_by_tag,
    read_member,
    with_offered_price,
)
from burst_ensemble.core.record import (
    EnsembleRecord,
    EnsembleRecords,
    EnsembleStart,
    EnsembleState,
)
from burst_ensemble.core.steps import StepTaken
from burst_ensemble.core.views import is_due, make_views, take_in
from burst_ensemble.core.wishes import Asked
from burst_ensemble.runtime.agent_reports import (
    AgentMembers,
    AgentReports,
    find_member,
)
from burst_ensemble.runtime.algorithms import AlgorithmCalls, Algorithms
from burst_ensemble.runtime.client import DaemonClient
from burst_ensemble.runtime.custom_commands import run_command
from burst_ensemble.runtime.files import EnsembleFiles
from burst_ensemble.runtime.lead_jobs import LeadJobs
from burst_ensemble.runtime.member_sizes import MemberSizes
from burst_ensemble.runtime.store import EnsembleStore

MakeAlgorithms = Callable[[EnsembleSpec], Algorithms]
"""Makes the algorithms of each member, by their names, in the order of the file."""

_LOOK_S = 0.5
"""Pause between two looks at which ensembles are due."""
_REST_S = 10.0
"""The same where nothing is due, for bursts of ensembles that are lost, and files."""
_CLOSE_S = 2.0


class Ensembles:
    """One thread. `start` and `close` are for the session's."""

    def __init__(
        self,
        daemon: DaemonClient,
        submitter: JobSubmitter,
        make: MakeAlgorithms,
        reports: AgentReports,
        store: EnsembleStore,
    ) -> None:
        """`submitter` is the daemon's lead, which takes jobs."""
        self._daemon, self._store = daemon, store
        self._sizes = MemberSizes(daemon.call)
        self._jobs = LeadJobs(submitter)
        self._make = make
        self._clock = reports.clock
        self._agents = AgentMembers(reports)
        self._calls = AlgorithmCalls()
        self._files = EnsembleFiles(lambda file: make(file.spec), store, reports.clock)
        self._made: dict[str, _Running] = {}
        self._said: dict[str, str] = {}
        """By ensemble: the error that was logged last."""
        self._looked = -math.inf
        """When the daemon was asked last."""
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to run what is on record."""
        self._thread = threading.Thread(
            target=self._run, name="burst-ensembles", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End once the step that is under way is done; wait for that for a moment."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self.look()
            except BurstError as error:
                self._say("", str(error))
            except Exception as error:  # noqa: BLE001 - it must not end for good
                log.failure("ensembles were not looked at", error=error)
            else:
                self._said.pop("", None)
            self._closing.wait(_LOOK_S)

    def look(self) -> None:
        """Take a step of each ensemble that is due; ask the daemon only then."""
        ensembles, now = self._store.read(), self._clock()
        has_rested = not 0 <= now - self._looked < _REST_S
        if not has_rested and not self._is_any_due(ensembles):
            return
        nodes = self._daemon.nodes()
        if not nodes.is_read:
            return
        self._looked = now
        for burst in lost_members(ensembles, nodes):
            note = "its ensemble is not on record any more"
            self._daemon.call("down", {"burst": burst.id, "note": note})
        self._files.look(self._daemon.settings(), nodes)
        ensembles, pending = self._store.read(), nodes.tags_waiting()
        for name in ensembles.states:
            try:
                running = self._running(ensembles.starts[name])
                if is_over(ensembles, name, nodes, pending):
                    running.due = math.inf
                    continue
                self._step_if_due(running, ensembles, nodes)
            except BurstError as error:
                self._say(name, str(error))
            except Exception as error:  # noqa: BLE001 - one ensemble must not end others
                if self._said.get(name) != repr(error):
                    log.failure("ensemble %s: its step failed", name, error=error)
                self._said[name] = repr(error)
            else:
                self._said.pop(name, None)

    def _is_any_due(self, ensembles: EnsembleRecords) -> bool:
        now = self._clock()
        made = {name: self._made.get(name) for name in ensembles.states}
        return any(
            running is None
            or running.file is not ensembles.starts[name]
            or now >= running.due
            for name, running in made.items()
        )

    def _running(self, file: EnsembleStart) -> _Running:
        """Return what was made of an ensemble's file. Raises ConfigError."""
        name = file.tables["name"]
        running = self._made.get(name)
        if running is None or running.file is not file:
            running = self._made[name] = self._begin(file)
        return running

    def _step_if_due(
        self, running: _Running, ensembles: EnsembleRecords, nodes: TaggedNodes
    ) -> None:
        if self._clock() >= running.due:
            running.due = self._clock() + float(running.spec.check)
            self._step(running, ensembles, nodes)
        if running.fault is not None:
            raise running.fault

    def _begin(self, file: EnsembleStart) -> _Running:
        """Return an ensemble with its algorithms.

        Without one that is not installed any more nothing is decided: what a person or
        a limit ends still ends.
        """
        running = _Running(file, file.spec)
        try:
            running.algorithms = self._make(running.spec)
        except ConfigError as error:
            running.fault = error
        return running

    def _step(
        self, running: _Running, ensembles: EnsembleRecords, nodes: TaggedNodes
    ) -> None:
        name, spec, now = running.spec.name, running.spec, nodes.now
        state = ensembles.states[name]
        read = self._read(running, ensembles, nodes)
        readings = {member: found.reading for member, found in read.items()}
        record = take_in(state.record, readings)
        answers = {
            member: self._calls.ask(
                f"{name}/{member}",
                running.algorithms.get(member, {}),
                (view, record.members[member].memory),
                now,
            )
            for member, view in make_views(spec, record, readings).items()
            if is_due(record, member, now)
        }
        step = take_step(spec, record, Asked(readings, answers), now)
        taken = StepTaken(
            before=state.record,
            record=step.record,
            books={member: found.book for member, found in read.items()},
        )

        def keep(current: EnsembleRecords) -> EnsembleRecords:
            if steps.is_outdated(current, taken):
                raise _Outdated
            return steps.record_step(current, taken)

        try:
            self._store.change(keep)
        except _Outdated:
            running.due = 0.0
            return
        _log_changes(name, state.record, step.record)
        self._do(running, state, step.intents)

    def _read(
        self, running: _Running, ensembles: EnsembleRecords, nodes: TaggedNodes
    ) -> dict[str, MemberState]:
        name, settings = running.spec.name, self._daemon.settings()
        jobs = jobs_by_tag(nodes)
        found = {}
        specs = {each.name: each for each in running.spec.members}
        for member in ensembles.states[name].record.members:
            spec = specs.get(member)
            if spec is not None and spec.has_agent:
                agent = find_member(ensembles, name, member)
                told = self._agents.read(agent, settings, self._clock())
                if told is not None:
                    found[member] = told
                continue
            book = ensembles.book(name, member)
            whose = running.file.membership(member)
            its = jobs.get(whose, ())
            outcomes = self._jobs.outcomes(book, its)
            found[member] = read_member(whose, book, nodes, its, outcomes)
            if spec is not None and spec.provider in nodes.offers:
                offers = nodes.offers[spec.provider]
                found[member] = with_offered_price(found[member], spec, offers)
        return found

    def _do(
        self,
        running: _Running,
        before: EnsembleState,
        intents: Sequence[Intent],
    ) -> None:
        """Do what a step has led to, and have that confirmed."""
        done = list[Intent]()
        refused, resized = dict[str, str](), dict[str, str]()
        ids: dict[str, Mapping[JobRef, JobId]] = {}
        try:
            for intent in intents:
                if isinstance(intent, SubmitJobs):
                    found = self._give(running, intent, before)
                    done.append(msgspec.structs.replace(intent, jobs=found.taken))
                    ids[intent.member] = found.ids
                    if found.refused:
                        refused[intent.member] = found.refused
                elif isinstance(intent, RunCustom):
                    run_command(running.spec, intent, self._daemon.lead.identity().uri)
                    done.append(intent)
                elif isinstance(intent, EndMember):
                    self._sizes.end(running.file, intent)
                else:
                    # What was done for another member may have changed it.
                    nodes = self._daemon.nodes()
                    why = self._sizes.resize(running.file, intent, nodes)
                    if why:
                        resized[intent.member] = why
        finally:
            confirmed = steps.IntentsDone(
                intents=done, resized=resized, refused=refused, ids=ids
            )
            told = before.jobs_refused, before.refused
            if done or (refused, resized) != told:
                now = self._clock()
                self._store.change(
                    lambda current: steps.confirm_intents(
                        current, before.record, confirmed, now
                    )
                )
        for member, why in refused.items():
            if before.jobs_refused.get(member) != why:
                text = "ensemble %s: the lead does not take a job of %s: %s"
                name = running.spec.name
                log.say(text, name, member, why, level=logging.WARNING)

    def _give(
        self,
        running: _Running,
        intent: SubmitJobs,
        before: EnsembleState,
    ) -> Answered:
        """Submit jobs of a member, or see what its agent submitted."""
        if running.spec.member(intent.member).has_agent:
            name = running.spec.name
            agent = find_member(self._store.read(), name, intent.member)
            return self._agents.submitted(agent)
        return self._jobs.submit(
            running.file, intent, before.record, self._daemon.nodes()
        )

    def _say(self, name: str, text: str) -> None:
        if self._said.get(name) != text:
            label = f"ensemble {name}" if name else "ensembles"
            log.say("%s: %s", label, text, level=logging.WARNING)
        self._said[name] = text


class _Outdated(Exception):
    """Somebody has changed the ensemble since the step was begun."""


class _Running:
    """An ensemble with what was made of its file."""

    def __init__(self, file: EnsembleStart, spec: EnsembleSpec) -> None:
        self.file, self.spec = file, spec
        self.algorithms: Algorithms = {}
        self.fault: ConfigError | None = None
        """Why it has none."""
        self.due = 0.0


def _log_changes(name: str, before: EnsembleRecord, after: EnsembleRecord) -> None:
    for member, now in after.members.items():
        was = before.members.get(member)
        if now.ended is not None and (was is None or was.ended is None):
            log.say("ensemble %s: %s ends: %s", name, member, now.why)
        elif was is None or was.nodes != now.nodes:
            old = was.nodes if was else 0
            log.say(
                "ensemble %s: %s has %d nodes, after %d: %s",
                name,
                member,
                now.nodes,
                old,
                now.why,
            )
        if now.trouble is not None and (was is None or was.trouble is None):
            log.say(
                "ensemble %s: %s stays as it is: %s",
                name,
                member,
                now.trouble.what,
                level=logging.WARNING,
            )
