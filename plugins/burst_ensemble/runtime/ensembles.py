# SPDX-License-Identifier: MIT
"""Run the ensembles that are on record, in a thread of their own.

Every `checkSeconds` it reads the members of an ensemble, calls their algorithms, and
stores the record of the step. Then it resizes members through the daemon's service,
submits jobs, runs commands, and records that these were done. So algorithms delay no
tick, and after a crash each intent is found to be done, or is done again.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from burst import log
from burst.core.tagged_nodes import TaggedNodes
from burst.errors import BurstError, ConfigError, Late, Unreadable
from burst.model.decision import count_nodes
from burst_ensemble.algorithm import MemberView, Memory
from burst_ensemble.config.file import EnsembleFile
from burst_ensemble.config.settings import ensemble_settings
from burst_ensemble.core.commands import begin_ensemble
from burst_ensemble.core.controller import confirm, look, note_failure
from burst_ensemble.core.intents import Done, Intent, RunCustom, SubmitJobs
from burst_ensemble.core.job_rows import MemberState
from burst_ensemble.core.read_members import (
    is_over,
    lost_members,
    read_members,
)
from burst_ensemble.core.record import (
    Ensemble,
    EnsembleRecord,
    EnsembleRecords,
    EnsembleStart,
    Member,
)
from burst_ensemble.core.wishes import AlgorithmFault, Answer
from burst_ensemble.runtime.actions import NO_CUSTOM, MemberActions
from burst_ensemble.runtime.algorithms import AlgorithmCalls, Algorithms
from burst_ensemble.runtime.client import DaemonClient, ExternalMembers
from burst_ensemble.runtime.files import EnsembleFiles
from burst_ensemble.runtime.read_file import (
    check_offers,
    check_supported,
    providers_of_daemon,
)
from burst_ensemble.runtime.store import EnsembleStore

MakeAlgorithms = Callable[[EnsembleFile], Algorithms]
"""Returns the algorithms of each member, by their names, in the order of the file."""

_LOOK_S = 0.5
"""Seconds between two checks which ensembles are due."""
_REST_S = 10.0
"""Seconds after which the daemon is asked even if no ensemble is due, to find bursts
of lost ensembles, and files that are to be started.
"""
_CLOSE_S = 2.0


class Ensembles:
    """Runs ensembles in one thread. The session's thread calls `start` and `close`."""

    def __init__(
        self,
        daemon: DaemonClient,
        make: MakeAlgorithms,
        external: ExternalMembers | None,
        store: EnsembleStore,
    ) -> None:
        self._daemon, self._store = daemon, store
        self._actions = MemberActions(daemon)
        self._make = make
        self._clock = daemon.clock
        self._external = external
        self._files = EnsembleFiles(self.begin, store, daemon.clock)
        self._made: dict[str, _Running] = {}
        self._said: dict[str, str] = {}
        """The error that was logged last, by ensemble; "" for errors of no ensemble."""
        self._looked = -math.inf
        """When the daemon was asked last, in seconds since the epoch."""
        self._closing = threading.Event()
        self._stepping = threading.Lock()
        """Held while it uses the lead."""

    def start(self) -> None:
        """Begin to run the ensembles that are on record."""
        threading.Thread(target=self._run, name="burst-ensembles", daemon=True).start()

    def close(self) -> None:
        """End after the present step, and wait up to two seconds for that.

        Nothing is recorded after that. An answer of the daemon is not waited for: it
        may wait for a first tick, which does not come any more.
        """
        self._closing.set()
        if self._stepping.acquire(timeout=_CLOSE_S):
            self._stepping.release()
        self._store.close()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self.look()
            except BurstError as error:
                if not self._closing.is_set():
                    self._say("", str(error))
            except BaseException as error:  # noqa: BLE001 - the thread must not end
                log.failure("checking the ensembles failed", error=error)
            else:
                self._said.pop("", None)
            self._closing.wait(_LOOK_S)

    def begin(
        self, file: EnsembleFile, start: EnsembleStart, nodes: TaggedNodes
    ) -> EnsembleRecords:
        """Put the ensemble of a file on record, and return all ensembles on record.

        Raises BurstError if the ensemble cannot run here.
        """
        check_supported(file, providers_of_daemon(nodes).abilities)
        check_offers(file, nodes)
        if file.spec.custom and not ensemble_settings(self._daemon.settings()).custom:
            raise ConfigError(
                f"ensemble {file.spec.name} has commands, and {NO_CUSTOM}",
                "set custom = true under [ensemble] in the daemon's settings, or remove"
                " [custom] from the file",
            )
        self._make(file)
        now = self._clock()
        return self._store.change(
            lambda current: begin_ensemble(current, nodes, start, now)
        )

    def make_due(self, name: str) -> None:
        """Have the next step of an ensemble be due now: a person has changed it."""
        if name in self._made:
            self._made[name].due = 0.0

    def look(self) -> None:
        """Take a step for each ensemble that is due.

        The daemon is asked only if one is due, or was not asked for `_REST_S`.
        """
        with self._stepping:
            if self._closing.is_set():
                return
            ensembles, now = self._store.read(), self._clock()
        has_rested = not 0 <= now - self._looked < _REST_S
        if not has_rested and not any(map(self._is_due, ensembles.values())):
            return
        nodes = self._daemon.nodes()
        with self._stepping:
            if nodes.is_read and not self._closing.is_set():
                self._looked = now
                self._take_steps(nodes)

    def _take_steps(self, nodes: TaggedNodes) -> None:
        known = self._store.read().keys()
        for burst in lost_members(self._store.unread - known, nodes):
            note = "the record of its ensemble cannot be read"
            self._daemon.call("down", {"burst": burst.id, "note": note})
        self._files.look(self._daemon.settings(), nodes)
        pending = nodes.tags_waiting()
        for name, one in self._store.read().items():
            try:
                running = self._running(one)
                over = is_over(one, nodes, pending)
                self._step_if_due(running, one, nodes, over=over)
            except BurstError as error:
                self._say(name, str(error))
            except BaseException as error:  # noqa: BLE001 - it must not end others
                if self._said.get(name) != repr(error):
                    log.failure("ensemble %s: its step failed", name, error=error)
                self._said[name] = repr(error)
                with contextlib.suppress(BurstError):
                    self._store.change_run(
                        one.start, partial(note_failure, error=error)
                    )
            else:
                self._said.pop(name, None)

    def _is_due(self, one: Ensemble) -> bool:
        made = self._made.get(one.record.name)
        return made is None or made.start is not one.start or self._clock() >= made.due

    def _running(self, one: Ensemble) -> _Running:
        """Return the algorithms and the state of an ensemble in this process.

        If an algorithm is not installed any more, all members have that fault: they
        stay as they are, and a person or a limit can still end them.
        """
        running = self._made.get(one.record.name)
        if running is None or running.start is not one.start:
            running = self._made[one.record.name] = _Running(one.start)
            try:
                running.algorithms = self._make(EnsembleFile(one.start.spec))
            except BurstError as error:
                running.fault = str(error)
        return running

    def _step_if_due(
        self, running: _Running, one: Ensemble, nodes: TaggedNodes, *, over: bool
    ) -> None:
        """Take the step of an ensemble if it is due.

        One that is over has a last step, which counts how its last jobs ended: the lead
        forgets them. It goes on if somebody submits a job with its tag.
        """
        if over != math.isinf(running.due):
            running.due = 0.0
        if self._clock() >= running.due:
            running.due = self._clock() + float(one.start.spec.check)
            self._step(running, one, nodes)
            if over and running.due:
                running.due = math.inf

    def _step(self, running: _Running, one: Ensemble, nodes: TaggedNodes) -> None:
        name, now = one.record.name, nodes.now

        def ask(view: MemberView, memory: Mapping[str, Memory]) -> Mapping[str, Answer]:
            if running.fault:
                return {"algorithms": AlgorithmFault(running.fault)}
            algorithms = running.algorithms.get(view.name, {})
            about = f"{name}/{view.name}"
            return running.calls.ask(about, algorithms, (view, memory), now)

        step = look(one.start.spec, one.record, self._read(one, nodes), ask, now)

        def keep(current: EnsembleRecords) -> EnsembleRecords:
            # Keep what a person has changed since the step began.
            if current.get(name) is not one:
                raise _Outdated
            return {**current, name: Ensemble(one.start, step.record)}

        try:
            self._store.change(keep)
        except _Outdated:
            running.due = 0.0
            return
        _log_changes(name, one.record, step.record)
        self._do(one, step.intents)

    def _read(self, one: Ensemble, nodes: TaggedNodes) -> dict[str, MemberState]:
        found = read_members(one, nodes, self._actions.outcomes)
        for member in one.members:
            if member.spec.is_external and self._external is not None:
                read = self._external.read(member)
                if read is not None:
                    found[member.name] = read
        return found

    def _do(self, before: Ensemble, intents: Sequence[Intent]) -> None:
        """Do the intents of a step, and record what was done.

        `before` is the ensemble that the step was decided for. An intent that fails
        keeps no other back, unless the daemon or the lead did not answer. Raises the
        first failure.
        """
        done: list[tuple[Intent, Done]] = []
        failed: list[tuple[Intent, Done]] = []
        first: BurstError | None = None
        try:
            for intent in intents:
                try:
                    done.append((intent, self._do_one(before, intent)))
                except (Late, Unreadable):
                    raise
                except BurstError as error:
                    failed.append((intent, Done(str(error))))
                    first = first or error
        finally:
            now, every = self._clock(), [*done, *failed]
            confirmed = partial(confirm, before.start.spec, done=every, now=now)
            self._store.change_run(before.start, confirmed)
        for intent, what in done:
            if isinstance(intent, SubmitJobs):
                _log_refusals(before.record, intent.member, what)
        if first is not None:
            raise first

    def _do_one(self, before: Ensemble, intent: Intent) -> Done:
        is_external = before.start.spec.member(intent.member).is_external
        if not is_external or isinstance(intent, RunCustom):
            return self._actions.do(before, intent)
        # An agent only submits jobs, and it does so when it reports.
        if self._external is None or not isinstance(intent, SubmitJobs):
            return Done()
        now = self._store.read()[before.record.name]
        return self._external.submitted(Member(now, intent.member))

    def _say(self, name: str, text: str) -> None:
        if self._said.get(name) != text:
            label = f"ensemble {name}" if name else "ensembles"
            log.say("%s: %s", label, text, level=logging.WARNING)
        self._said[name] = text


class _Outdated(Exception):
    """Raised if the ensemble was changed after the step began."""


class _Running:
    """The algorithms of an ensemble on record, and when its next step is due."""

    def __init__(self, start: EnsembleStart) -> None:
        self.start = start
        self.algorithms: Algorithms = {}
        self.calls = AlgorithmCalls()
        self.fault = ""
        """Why it has no algorithms; empty if it has them."""
        self.due = 0.0
        """Infinity once it is over."""


def _log_refusals(before: EnsembleRecord, member: str, what: Done) -> None:
    """Log each reason for which jobs were refused, unless it is on record already."""
    known, label = before.members[member], f"ensemble {before.name}"
    if what.refused not in ("", known.refused):
        text, why = "%s: the lead does not accept a job of %s: %s", what.refused
        log.say(text, label, member, why, level=logging.WARNING)
    for why in dict.fromkeys(what.never_taken.values()):
        if why != known.never_taken:
            text = "%s: a job of %s has failed, as it can never be submitted: %s"
            log.say(text, label, member, why, level=logging.WARNING)


def _log_changes(name: str, before: EnsembleRecord, after: EnsembleRecord) -> None:
    for member, now in after.members.items():
        was = before.members[member]
        if now.ended is not None and was.ended is None:
            log.say("ensemble %s: %s ends: %s", name, member, now.why)
        elif was.nodes != now.nodes:
            text = "ensemble %s: %s has %s, after %d: %s"
            size = count_nodes(now.nodes)
            log.say(text, name, member, size, was.nodes, now.why)
        if now.fault and not was.fault:
            text = "ensemble %s: %s stays as it is: %s"
            log.say(text, name, member, now.fault, level=logging.WARNING)
