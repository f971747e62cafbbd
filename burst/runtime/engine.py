# SPDX-License-Identifier: MIT
"""The engine: each tick observes, decides, stores and acts, in this order.

No action begins before the store has its intent. While the store refuses the records,
or deciding fails, idle bursts are still taken down. What happened is kept in memory
until the store takes it. The daemon and `run-burst` both use the engine.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import msgspec

from burst import log
from burst.core.actions import ReleaseJobs
from burst.core.burst_actions import next_deadline
from burst.core.guest_requests import halted
from burst.core.isolated.behaviour import next_provision
from burst.core.observation import why_out_of_reach
from burst.core.orphans import Orphan, find_orphans
from burst.core.provider_health import ProviderAnswer
from burst.core.records import Transaction
from burst.core.repeats import note_answer
from burst.core.tick import (
    TickResult,
    free_unused,
    record_answers,
    result_of,
    run_tick,
)
from burst.core.world import Halt, World
from burst.errors import LeadError, LeadGone, StoreError, Unreadable
from burst.lead import Lead, WholeQueue
from burst.model.active_job import ActiveJob
from burst.model.burst import BurstId
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import LeadView
from burst.runtime.action_runner import ActionRunner
from burst.runtime.budget_log import log_budget_changes, log_new_budgets
from burst.runtime.clock import ClockMark
from burst.runtime.engine_commands import EngineCommand, EngineCommands, StandingKeeper
from burst.runtime.engine_config import EngineConfig
from burst.runtime.event_teller import EventTeller
from burst.runtime.executor import Executor
from burst.runtime.lead_reader import LeadReader
from burst.runtime.lead_upkeep import LeadUpkeep
from burst.runtime.orphan_reaper import OrphanReaper
from burst.runtime.poll_schedule import log_health_changes
from burst.runtime.provider_tracker import ProviderTracker
from burst.runtime.side_threads import NO_SIDE_THREADS, SideThreads
from burst.runtime.snapshot import Snapshot
from burst.runtime.start_teller import StartTeller
from burst.runtime.stored_records import StoredRecords

# A tick is due this long after a deadline, in seconds.
_LATE = 0.01
# Seconds until the next tick while a job may be starting: several times what a
# scheduler takes to commit an allocation.
_AGAIN = 0.01
# Seconds until the next tick if this one left jobs for it. The pause lets the lead
# serve its other clients.
_BEHIND = 0.05
# Seconds until the engine tries again after a tick could not act on a deadline that has
# passed.
_UNMET_PAUSE = 5.0
# Seconds until the daemon tries again if it begins nothing (`Halt`).
_HALT_PAUSE = 5.0
_DEFECT = (
    "this is a defect of burst: report it with the error; a job that was submitted at"
    " that time may be its cause"
)
replace = msgspec.structs.replace


class Engine:
    """Takes the ticks.

    Call `tick` and `close` from one thread; `post` and properties are for any thread.
    """

    def __init__(
        self,
        lead: Lead,
        config: EngineConfig,
        executor: Executor,
        now: float,
        beside: SideThreads = NO_SIDE_THREADS,
    ) -> None:
        """Read the records. Raises StoreError and Unreadable."""
        settings = config.settings
        self._beside = beside
        self._lead = lead
        self._reader = LeadReader(lead)
        self._config = config
        self._executor = executor
        self._records = StoredRecords(lead.store(), now, settings.limits)
        log_new_budgets(self._records.now, config, now)
        self._tracker = ProviderTracker(
            config.providers, executor, settings.daemon, beside.tally
        )
        self._action_runner = self._new_action_runner()
        self._commands = EngineCommands()
        self._lead_upkeep = LeadUpkeep(lead, settings, now, config.identity)
        self._start_teller = StartTeller(lead, settings)
        self._event_teller = EventTeller()
        self._standing_keeper = StandingKeeper(self.post)
        self._lead_silent = False
        """Whether the lead left a call unanswered in this tick."""
        self._orphan_reaper = OrphanReaper(self._tracker)
        self._closing = False
        self._undecided: Halt | None = None
        """Why the last tick could not decide; None if it did."""
        self._ticked = threading.Event()
        self._due = math.inf
        """When the next tick is due, as the last one said."""
        self._snapshot = Snapshot(
            now=now,
            records=self._records.now,
            world=beside.add_to(self._world(None)),
            settings=settings,
            decisions={},
        )

    def reload_records(self, now: float, clock: ClockMark) -> None:
        """Read the records again, once this process serves the lead.

        Until then another daemon may have written them. `now` and the times of ticks
        are read from `clock`. If the system clock has stepped since the records were
        written, their times are moved by the step. Raises StoreError and Unreadable.
        """
        self._records.reload(now, self._config.settings.limits, clock)
        self._beside.restore(self._records.store)
        self._snapshot = replace(self._snapshot, records=self._records.now)

    @property
    def snapshot(self) -> Snapshot:
        """What the last tick saw and decided; before the first, the records alone."""
        return self._snapshot

    def await_tick(self, limit_s: float) -> bool:
        """Return whether the first tick ends within `limit_s` seconds.

        From any thread.
        """
        return self._ticked.wait(limit_s)

    @property
    def directories(self) -> Mapping[str, tuple[str, ...]]:
        """The directories that followers have, by provider. From any thread."""
        return self._config.directories

    def active_job(self, number: JobId) -> ActiveJob | None:
        """Return a job that waits or runs, burstable or not. From any thread.

        None if there is no such job, or if the lead does not tell of all jobs now.
        """
        if not isinstance(self._lead, WholeQueue):
            return None
        with contextlib.suppress(LeadError):
            return self._lead.active_job(number)
        return None

    def post(self, command: EngineCommand) -> Future[Any]:
        """Have the next tick carry out a command; the future gets its answer."""
        return self._commands.post(command)

    def tick(self, now: float) -> float:
        """Observe, decide, store, act; return when the next tick is due.

        A wake-up makes it due earlier. Raises LeadGone.
        """
        self._tracker.collect_results(self._records.now, now)
        self._lead_silent = False
        view, settings = self._reader.read(), self._config.settings
        forecasts = self._beside.forecasts()
        world = self._beside.add_to(self._world(view), forecasts)
        world = replace(
            world,
            answered=self._tracker.answered,
            unread=self._reader.unread_for(view, self._due, now),
        )
        if view is not None and not (self._closing or self._halt):
            self._standing_keeper.ask(self._records.now, settings, now)
        if self._commands:
            world = self._run_commands(world, now)
        result = self._decide(world, now)
        world = replace(world, halt=self._halt)
        records = self._records.now
        poll_due = self._tracker.poll(records, now)
        orphans = find_orphans(records, world, now)
        reap_due = self._orphan_reaper.tick(orphans, records, world, now)
        self._snapshot = Snapshot(
            now=now,
            records=records,
            world=world,
            settings=settings,
            decisions=result.decisions,
            refusal_cache=result.refusal_cache,
            orphans=orphans,
            reaps=self._tracker.orphans,
            forecasts=forecasts,
            archive=self._beside.archive,
            untold=self._beside.notifier.troubles if self._beside.notifier else {},
            standing=self._standing_keeper.refused,
        )
        self._ticked.set()
        self._beside.tell(self._snapshot, result, self._records.store)
        if view is not None and not self._lead_silent:
            self._lead_upkeep.ask(records, view, result.decisions, now)
            if forecasts is not None:
                self._start_teller.tell(forecasts.starts, view, now)
        due = min(poll_due, reap_due, self._next_due(result, view, now))
        self._due = min(due, now + _HALT_PAUSE) if self._halt else due
        return self._due

    def _decide(self, world: World, now: float) -> TickResult:
        """Decide, store and act; return what was done. Raises LeadGone."""
        settings = self._config.settings
        refusals = None if self._closing else self._snapshot.refusal_cache
        try:
            result = run_tick(self._records.now, world, settings, now, refusals)
            self._undecided = None
        except Exception as error:  # noqa: BLE001 - a defect, of any kind
            # If it ended the daemon, each restart would meet it again, and what stands
            # would cost money for as long. The cache may be what it fails on.
            return self._free_undecided(error, world, now)
        try:
            return self._apply(result, now, world.answered)
        except LeadGone:
            raise
        except (StoreError, Unreadable):
            freed = self._freed(world, now)
            self._accept(freed, now, world.answered)
            return replace(freed, refusal_cache=refusals)

    def _free_undecided(self, error: Exception, world: World, now: float) -> TickResult:
        """Take down what is not needed after deciding has failed. Raises LeadGone."""
        before = self._undecided
        since = before.since if before else now
        # Anyone may ask for it, and the text of an error may name others' jobs.
        why = f"{type(error).__name__}, which the daemon's log has in full"
        self._undecided = Halt("deciding", since, why, _DEFECT)
        if before is None or before.why != why:
            log.failure(
                "deciding has failed; until it does not, the daemon begins nothing, and"
                " takes down what is idle"
            )
        try:
            freed = self._freed(world, now, stored=True)
        except Exception:  # noqa: BLE001 - the same defect, or another
            if before is None or before.frees:
                log.failure("taking down what is idle has failed, too")
            self._undecided = replace(self._undecided, frees=False)
            self._tracker.forget_answers(world.answered, self._records.now)
            return TickResult(
                records=self._records.now,
                events=(),
                actions=(),
                decisions=self._standing_decisions(world.lead),
            )
        freed = self._records.keep(freed, now)
        if self._records.trouble is not None:
            freed = self._freed(world, now)
        self._accept(freed, now, world.answered)
        return freed

    def _freed(self, world: World, now: float, *, stored: bool = False) -> TickResult:
        """Return what takes down what is not needed, and begins nothing."""
        settings = self._config.settings
        freed = free_unused(self._records.now, world, settings, now, stored=stored)
        return replace(freed, decisions=self._standing_decisions(world.lead))

    @property
    def _halt(self) -> Halt | None:
        return self._records.trouble or self._undecided

    def _world(self, view: LeadView | None) -> World:
        return World(
            identity=self._config.identity,
            slots=self._config.slots,
            lead=view,
            trouble=self._reader.trouble,
            halt=self._halt,
            providers=self._tracker.views,
            calls=self._tracker.calls,
            closing=self._closing,
            places=self._config.places,
            deadlines=self._config.settings.deadlines,
            resizable=self._config.resizable,
            userids=self._config.userids,
        )

    def _next_due(self, result: TickResult, view: LeadView | None, now: float) -> float:
        """Return when to decide again if nothing wakes us; math.inf for never.

        Deadlines do not count while the lead cannot be read: the lead wakes us once it
        can be. This tick could not act on a deadline that has passed, so the engine
        tries again after a pause.
        """
        due = math.inf
        if result.unsettled:
            due = now + _AGAIN
        if result.behind:
            due = min(due, now + _BEHIND)
        if view is None:
            return due
        records = self._records.now
        live = [burst for burst in records.live if not burst.quarantined]
        settings, started = self._config.settings, self._config.identity.started
        ends = [next_deadline(burst, settings, started, now) for burst in live]
        ends.append(next_provision(records, now))
        # Just after a deadline, not just before it.
        later = (end + _LATE if end >= now else now + _UNMET_PAUSE for end in ends)
        return min(due, *later)

    def close(self) -> None:
        """End. Bursts and held jobs stay as they are."""
        self._executor.close()
        self._event_teller.close()
        self._commands.refuse()

    def change(self, config: EngineConfig) -> None:
        """Use other settings from the next tick on. Nothing is forgotten."""
        settings, known = config.settings, self._config.settings.budget
        self._config = config
        log_new_budgets(self._records.now, config, self._snapshot.now, known)
        self._tracker.replace(config.providers, settings.daemon)
        self._action_runner = self._new_action_runner()
        self._lead_upkeep.change(settings, config.identity)
        self._start_teller.change(settings)
        world = replace(
            self._snapshot.world,
            identity=config.identity,
            slots=config.slots,
            providers=self._tracker.views,
            places=config.places,
            deadlines=settings.deadlines,
            resizable=config.resizable,
        )
        self._snapshot = replace(self._snapshot, world=world, settings=settings)

    def _new_action_runner(self) -> ActionRunner:
        lead, identity = self._lead, self._config.identity
        return ActionRunner(lead, identity, self._tracker, self._keep_repeat)

    def _keep_repeat(self, job: JobId, again: JobId | None, refused: str) -> None:
        """Have the next tick record the result of submitting a job again."""
        self.post(lambda tx: note_answer(tx, job, again, refused))

    def stop_provisioning(self) -> None:
        """Make no new bursts from the next tick on, as the daemon deletes all."""
        self._closing = True

    def _run_commands(self, world: World, now: float) -> World:
        """Carry out the commands that wait; return the world with their calls.

        Like a tick, a command sees the answers that providers have just given.
        """
        settings = self._config.settings
        taken = record_answers(self._records.now, world, settings, now)
        self._apply(taken, now, world.answered)

        def act(result: TickResult) -> None:
            halt = self._undecided
            if halt is not None and result.begins:
                # As if the store had refused it.
                raise halted(halt, guest=False)
            self._apply(result, now)
            # The caller may read the snapshot at once, and must see the change in it.
            self._snapshot = replace(self._snapshot, records=self._records.now)

        def decide(command: EngineCommand) -> tuple[TickResult, Any]:
            tx = Transaction(self._records.now, world, settings, now)
            answer = command(tx)
            return result_of(tx), answer

        self._commands.carry_out(decide, act)
        # The tick must not repeat the calls of providers that commands have made.
        calls = {**world.calls, **self._tracker.calls}
        return replace(world, calls=calls, answered=())

    def _apply(
        self,
        result: TickResult,
        now: float,
        answered: Sequence[ProviderAnswer] = (),
    ) -> TickResult:
        """Store what changed, then perform the actions. Return what was stored.

        Raises what `StoredRecords.keep` raises; then no action was performed.
        """
        result = self._records.keep(result, now)
        self._accept(result, now, answered)
        return result

    def _standing_decisions(self, view: LeadView | None) -> dict[JobId, Decision]:
        """Return the last decisions on the jobs that have not changed since."""
        seen, now = self._snapshot.world.lead, view.jobs if view else {}
        before = seen.jobs if seen else {}
        return {
            job: decision
            for job, decision in self._snapshot.decisions.items()
            if job in now and now[job] is before.get(job)
        }

    def _accept(
        self, result: TickResult, now: float, answered: Sequence[ProviderAnswer]
    ) -> None:
        """Take over the new records, log what changed, and perform the actions."""
        before, after = self._records.now, result.records
        self._records.now = after
        if self._beside.tally is not None:
            self._beside.tally.recorded(result.events, after)
        log_health_changes(before.health, after.health)
        log_budget_changes(before, after, self._config, now)
        self._tracker.forget_answers(answered, after)
        self._tracker.note_new(after)
        for burst, event in result.events:
            log.event(event, burst)
        self._event_teller.tell(self._config.providers, after.bursts, result.events)
        unanswered = self._action_runner.perform(result.actions, after)
        self._lead_silent = self._lead_silent or bool(unanswered)
        for action in unanswered:
            if isinstance(action, ReleaseJobs):
                self._lead_upkeep.release_later(action.urgencies)

    def force(self, burst: BurstId, provider: str) -> None:
        """Have the burst reaped without waiting for hosts that do not answer.

        If its provider is set to another place, it is taken for gone. Raises
        BurstError.
        """
        known = self._records.now.bursts.get(burst)
        if known and why_out_of_reach(known.lease, self._config.places):
            self._tracker.give_up(burst)
        else:
            self._tracker.force(burst, provider)

    def reap_orphans(self, orphans: Iterable[Orphan]) -> None:
        """Reap these orphans from the next tick on, until NotFound. From any thread.

        `Snapshot.reaps` shows the progress.
        """
        self._orphan_reaper.request(orphans)
