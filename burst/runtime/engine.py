# SPDX-License-Identifier: MIT
"""The engine: each tick observes, decides, stores and acts, in this order.

Nothing is begun before the store has the intent. While it refuses the records, what is
idle is still taken down, and what happened is kept until the store can have it. The
daemon and `run-burst` both use it.
"""

from __future__ import annotations

import contextlib
import logging
import math
import queue
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import msgspec

from burst import log
from burst.config import Settings
from burst.core.actions import FREEING, ReleaseJobs
from burst.core.burst_actions import next_deadline
from burst.core.commands import take_down_orphan
from burst.core.isolated.behaviour import next_provision
from burst.core.orphans import Orphan, find_orphans
from burst.core.provider_health import ProviderAnswer
from burst.core.record_size import without_oversized
from burst.core.records import Records, Transaction
from burst.core.repeats import note_answer
from burst.core.tick import (
    TickResult,
    free_unused,
    record_answers,
    result_of,
    run_tick,
)
from burst.core.world import StoreTrouble, World
from burst.errors import (
    BurstError,
    LeadError,
    LeadGone,
    RecordTooLarge,
    StoreError,
    Unreadable,
)
from burst.lead import Lead, WholeQueue
from burst.model.active_job import ActiveJob
from burst.model.banks import NOT_VERIFIED
from burst.model.burst import BurstId
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import LeadView
from burst.model.subuids import NO_SUBUIDS
from burst.runtime.action_runner import ActionRunner
from burst.runtime.budget_log import log_budget_changes, log_new_budgets
from burst.runtime.clock import ClockMark
from burst.runtime.engine_config import EngineConfig
from burst.runtime.event_teller import EventTeller
from burst.runtime.executor import Executor
from burst.runtime.forecast_pass import Forecasts
from burst.runtime.lead_upkeep import LeadUpkeep
from burst.runtime.orphan_reaper import OrphanReaper
from burst.runtime.poll_schedule import log_health_changes
from burst.runtime.provider_tracker import ProviderTracker
from burst.runtime.record_store import RecordStore
from burst.runtime.side_threads import NO_SIDE_THREADS, SideThreads
from burst.runtime.snapshot import Snapshot
from burst.runtime.standing_keeper import StandingKeeper
from burst.runtime.start_teller import StartTeller

# A tick is due this long after a deadline, in seconds.
_LATE = 0.01
# The next tick is due after this many seconds where a job may just have been starting:
# several times what a scheduler takes to commit an allocation.
_AGAIN = 0.01
# The next tick is due after this many seconds where this one left jobs for it, so that
# the lead can serve its other clients meanwhile.
_BEHIND = 0.05
# A deadline that has passed, and on which this tick could not act, is looked at again
# after this many seconds.
_UNMET_PAUSE = 5.0
# A tick that comes so many seconds after it was due: the daemon was stopped, or a call
# to the lead hung. A busy machine has ticks late by less.
_STOPPED_S = 60.0
# So long after the store refused the records they are written again.
_STORE_PAUSE = 5.0
_UNREAD = "it has not been read yet"
replace = msgspec.structs.replace

EngineCommand = Callable[[Records, World, Settings, float], tuple[TickResult, Any]]
"""A request as a pure function: it returns what to do, and the answer to the caller."""


class Engine:
    """Ticks. `tick` and `close` belong to one thread; `post`, properties to any."""

    def __init__(
        self,
        lead: Lead,
        config: EngineConfig,
        executor: Executor,
        now: float,
        beside: SideThreads = NO_SIDE_THREADS,
    ) -> None:
        """Read the records. Raises StoreError and Unreadable."""
        self._beside = beside
        self._forecaster = beside.forecaster
        self._lead = lead
        self._config = config
        self._executor = executor
        self._record_store = RecordStore(lead.store())
        settings = config.settings
        self._records = self._record_store.load(now, settings.limits)
        self._stored = self._records
        """What of it the store has."""
        self._store_trouble: StoreTrouble | None = None
        log_new_budgets(self._records, config, now)
        self._tracker = ProviderTracker(config.providers, executor, settings.daemon)
        self._action_runner = self._new_action_runner()
        self._commands: queue.SimpleQueue[tuple[EngineCommand, Future[Any]]]
        self._commands = queue.SimpleQueue()
        self._lead_upkeep = LeadUpkeep(lead, settings, now, config.identity)
        self._start_teller = StartTeller(lead, settings)
        self._event_teller = EventTeller()
        self._standing_keeper = StandingKeeper(self.post)
        self._lead_silent = False
        """Whether the lead left a call unanswered in this tick."""
        reap_harmless = settings.daemon.orphans == "reap"
        self._orphan_reaper = OrphanReaper(
            self._tracker,
            self._take_down_orphan,
            reap_harmless=reap_harmless,
        )
        self._closing = False
        self._read_at = -math.inf
        """When the lead was read last."""
        self._due = math.inf
        """When the next tick is due, as the last one said."""
        self._unread = True
        """Whether the lead could not be read since, or was not yet."""
        self._snapshot = Snapshot(
            now=now,
            records=self._records,
            world=self._world(None, _UNREAD),
            settings=settings,
            decisions={},
        )

    def reload_records(self, now: float, clock: ClockMark) -> None:
        """Read the records again, once this process serves the lead.

        Until then another daemon may have written to them. `now` and the times of ticks
        are by `clock`: times that were written before a step of the system clock are
        moved. Raises StoreError and Unreadable.
        """
        limits = self._config.settings.limits
        self._records = self._record_store.load(now, limits, clock)
        self._stored = self._records
        if self._forecaster is not None:
            self._forecaster.restore(self._record_store.forecast_texts)
        if self._beside.notifier is not None:
            self._beside.notifier.restore(self._record_store.notice_text)
        self._snapshot = msgspec.structs.replace(self._snapshot, records=self._records)
        for key, why in self._records.unreadable.items():
            log.say(
                "record %s cannot be read: %s; its burst stays as it is until"
                " burst down or burst gc --yes deletes it",
                key,
                why,
                level=logging.WARNING,
            )

    @property
    def snapshot(self) -> Snapshot:
        """The last tick."""
        return self._snapshot

    @property
    def directories(self) -> Mapping[str, tuple[str, ...]]:
        """Those that followers have, by provider. Any thread may read it."""
        return self._config.directories

    def active_job(self, number: JobId) -> ActiveJob | None:
        """Return a job that waits or runs, burstable or not. From any thread.

        None where there is none, or where the lead does not tell of all jobs now.
        """
        if not isinstance(self._lead, WholeQueue):
            return None
        with contextlib.suppress(LeadError):
            return self._lead.active_job(number)
        return None

    def post(self, command: EngineCommand) -> Future[Any]:
        """Have the next tick carry out a command; the future gets its answer."""
        future: Future[Any] = Future()
        self._commands.put((command, future))
        return future

    def tick(self, now: float) -> float:
        """Observe, decide, store, act; return when the next tick is due.

        It is due earlier once something wakes us. Raises LeadGone.
        """
        self._tracker.collect_results(self._records, now)
        self._lead_silent = False
        view, trouble = self._observe()
        answered = self._tracker.answered
        forecasts = self._forecaster.current() if self._forecaster else None
        world = _with_forecasts(self._world(view, trouble, answered), forecasts)
        if self._forecaster is not None:
            owed = self._forecaster.owed_since()
            world = replace(world, forecast_owed_since=owed)
        world = replace(world, unread=self._note_reading(view, now))
        if view is not None and not (self._closing or self._store_trouble):
            self._standing_keeper.ask(self._records, self._config.settings, now)
        if not self._commands.empty():
            world = self._run_commands(world, now)
        settings = self._config.settings
        refusals = None if self._closing else self._snapshot.refusal_cache
        result = run_tick(self._records, world, settings, now, refusals)
        try:
            result = self._apply(result, now, world.answered)
        except LeadGone:
            raise
        except (StoreError, Unreadable):
            freed = free_unused(self._records, world, settings, now)
            self._accept(freed, now, world.answered)
            decisions = self._standing_decisions(view)
            result = replace(freed, decisions=decisions, refusal_cache=refusals)
        world = replace(world, store_trouble=self._store_trouble)
        poll_due = self._tracker.poll(self._records, now)
        orphans = find_orphans(self._records, world)
        reap_due = self._orphan_reaper.tick(orphans, self._records, world, now)
        self._snapshot = Snapshot(
            now=now,
            records=self._records,
            world=world,
            settings=settings,
            decisions=result.decisions,
            refusal_cache=result.refusal_cache,
            orphans=orphans,
            reaps=self._tracker.orphans,
            forecasts=forecasts,
            archive=self._beside.archiver.archive if self._beside.archiver else None,
            untold=self._beside.notifier.troubles if self._beside.notifier else {},
            standing=self._standing_keeper.refused,
        )
        self._tell_side_threads(world, result)
        if view is not None and not self._lead_silent:
            self._lead_upkeep.ask(self._records, view, result.decisions, now)
            if forecasts is not None:
                self._start_teller.tell(forecasts.starts, view, now)
        due = min(poll_due, reap_due, self._next_due(result, view, now))
        self._due = min(due, now + _STORE_PAUSE) if self._store_trouble else due
        return self._due

    def _note_reading(self, view: LeadView | None, now: float) -> float:
        """Return for how long the lead was not read until now: `World.unread`.

        All the time since it was read last counts, as nobody knows when it began.
        """
        if view is None:
            self._unread = True
            return 0.0
        stopped = self._unread or now - self._due > _STOPPED_S
        unread = now - self._read_at if stopped else 0.0
        self._read_at, self._unread = now, False
        return unread

    def _world(
        self,
        view: LeadView | None,
        trouble: str,
        answered: tuple[ProviderAnswer, ...] = (),
    ) -> World:
        archiver, banks = self._beside.archiver, self._beside.banks
        subuids = self._beside.subuids
        return World(
            identity=self._config.identity,
            slots=self._config.slots,
            lead=view,
            trouble=trouble,
            store_trouble=self._store_trouble,
            providers=self._tracker.views,
            calls=self._tracker.calls,
            answered=answered,
            closing=self._closing,
            places=self._config.places,
            deadlines=self._config.settings.deadlines,
            resizable=self._config.resizable,
            userids=self._config.userids,
            subuids=subuids.current() if subuids else NO_SUBUIDS,
            banks=banks.current() if banks else NOT_VERIFIED,
            accounting=banks.facts() if banks else None,
            archived=archiver.archived if archiver else None,
        )

    def _next_due(self, result: TickResult, view: LeadView | None, now: float) -> float:
        """Return when to decide again though nothing wakes us; math.inf for never.

        No deadline counts while the lead cannot be read: it wakes us once it can. A
        deadline that has passed could not be acted on, so it is tried a while later.
        """
        due = math.inf
        if result.unsettled:
            due = now + _AGAIN
        if result.behind:
            due = min(due, now + _BEHIND)
        if view is None:
            return due
        live = [burst for burst in self._records.live if not burst.quarantined]
        ends = [next_deadline(burst, self._config.settings) for burst in live]
        ends.append(next_provision(self._records, now))
        # Just after a deadline, not just before it.
        later = (end + _LATE if end >= now else now + _UNMET_PAUSE for end in ends)
        return min(due, *later)

    def close(self) -> None:
        """End. Bursts and held jobs stay as they are."""
        self._executor.close()
        self._event_teller.close()
        while not self._commands.empty():
            _, future = self._commands.get()
            future.set_exception(BurstError("the daemon is stopping", "ask it again"))

    def change(self, config: EngineConfig) -> None:
        """Go on with other settings from the next tick on. Nothing is forgotten."""
        settings, known = config.settings, self._config.settings.budget
        self._config = config
        log_new_budgets(self._records, config, self._snapshot.now, known)
        self._tracker.replace(config.providers, settings.daemon)
        self._action_runner = self._new_action_runner()
        self._lead_upkeep.change(settings, config.identity)
        self._start_teller.change(settings)
        self._orphan_reaper.reap_harmless = settings.daemon.orphans == "reap"
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
        """Have the next tick record what came of submitting a job again."""

        def keep(
            records: Records, _: World, __: Settings, now: float
        ) -> tuple[TickResult, None]:
            tx = Transaction(records, now)
            note_answer(tx, job, again, refused)
            return result_of(tx), None

        self.post(keep)

    def stop_provisioning(self) -> None:
        """Make no new bursts from the next tick on: the daemon deletes all."""
        self._closing = True

    def _tell_side_threads(self, world: World, result: TickResult) -> None:
        """Give them what this tick saw and recorded; store what forecasts learned."""
        if self._beside.archiver is not None:
            self._beside.archiver.keep(self._records.settled)
        self._tell_notices()
        if self._forecaster is None:
            return
        self._forecaster.observe(self._records, world, result)
        texts = self._forecaster.take_texts()
        if not texts:
            return
        try:
            self._record_store.write_forecast(texts)
        except LeadGone:
            raise
        except (StoreError, LeadError) as error:
            log.say("what forecasts have learned was not stored: %s", error)

    def _tell_notices(self) -> None:
        """Have told what a person must know; store what was told."""
        notifier = self._beside.notifier
        text = notifier.tick(self._snapshot) if notifier is not None else None
        if notifier is None or text is None:
            return
        try:
            self._record_store.write_notices(text)
        except LeadGone:
            raise
        except (StoreError, LeadError) as error:
            text = "which notices were told was not stored: %s"
            log.say(text, error, level=logging.WARNING)
        else:
            notifier.stored()

    def _observe(self) -> tuple[LeadView | None, str]:
        trouble = self._snapshot.world.trouble
        try:
            view = self._lead.observe()
        except LeadGone:
            raise
        except LeadError as error:
            # Logged once, not in each tick.
            if str(error) != trouble:
                log.say("the lead cannot be read: %s", error, level=logging.WARNING)
            return None, str(error)
        if trouble not in ("", _UNREAD):
            log.say("the lead can be read again")
        return view, ""

    def _run_commands(self, world: World, now: float) -> World:
        """Carry out what was asked for; return the world with what came of it.

        Commands go by what providers have just answered, as a tick does.
        """
        taken = record_answers(self._records, world, self._config.settings, now)
        self._apply(taken, now, world.answered)
        while not self._commands.empty():
            command, future = self._commands.get()
            try:
                result, answer = command(
                    self._records, world, self._config.settings, now
                )
            except Exception as error:  # noqa: BLE001 - its caller's answer, whatever it is
                future.set_exception(error)
                continue
            try:
                self._apply(result, now)
            except BurstError as error:
                future.set_exception(error)
            else:
                # The caller may read the snapshot at once, and is to see what was done.
                self._snapshot = msgspec.structs.replace(
                    self._snapshot, records=self._records
                )
                future.set_result(answer)
        # What they have had providers called for is not called for again.
        calls = {**world.calls, **self._tracker.calls}
        return msgspec.structs.replace(world, calls=calls, answered=())

    def _apply(
        self,
        result: TickResult,
        now: float,
        answered: Sequence[ProviderAnswer] = (),
    ) -> TickResult:
        """Store what changed, then do it. Return what was stored.

        What only frees is done although the store refuses it. Raises LeadGone, and
        StoreError or Unreadable for all else: then nothing of it was done.
        """
        try:
            result = self._store(result, now)
        except LeadGone:
            raise
        except (StoreError, Unreadable) as error:
            self._note_store_trouble(error, now)
            if not all(isinstance(action, FREEING) for action in result.actions):
                raise
        else:
            if self._store_trouble is not None:
                log.say("the store takes the records again")
            self._store_trouble = None
        self._accept(result, now, answered)
        return result

    def _standing_decisions(self, view: LeadView | None) -> dict[JobId, Decision]:
        """Return the last decisions on jobs that are as they were then."""
        seen, now = self._snapshot.world.lead, view.jobs if view else {}
        before = seen.jobs if seen else {}
        return {
            job: decision
            for job, decision in self._snapshot.decisions.items()
            if job in now and now[job] is before.get(job)
        }

    def _store(self, result: TickResult, now: float) -> TickResult:
        """Return what was stored: the result, without records too large for a store."""
        try:
            self._record_store.write(self._stored, result.records)
        except RecordTooLarge as error:
            log.say("%s", error, level=logging.ERROR)
            result = without_oversized(result, self._records, error.records, now)
            self._record_store.write(self._stored, result.records)
        self._stored = result.records
        return result

    def _note_store_trouble(self, error: BurstError, now: float) -> None:
        since = self._store_trouble.since if self._store_trouble else now
        if self._store_trouble is None:
            log.say(
                "the records cannot be written: %s; until they can, the daemon begins"
                " nothing, and takes down what is idle",
                error,
                level=logging.ERROR,
            )
        self._store_trouble = StoreTrouble(since, str(error))

    def _accept(
        self, result: TickResult, now: float, answered: Sequence[ProviderAnswer]
    ) -> None:
        """Remember, log, act."""
        before, self._records = self._records, result.records
        if self._beside.tally is not None:
            self._beside.tally.recorded(result.events, self._records)
        log_health_changes(before.health, self._records.health)
        log_budget_changes(before, self._records, self._config, now)
        self._tracker.forget_answers(answered, self._records)
        for burst, event in result.events:
            log.event(event, burst)
        self._event_teller.tell(
            self._config.providers, self._records.bursts, result.events
        )
        unanswered = self._action_runner.perform(result.actions, self._records)
        self._lead_silent = self._lead_silent or bool(unanswered)
        for action in unanswered:
            if isinstance(action, ReleaseJobs):
                self._lead_upkeep.release_later(action.urgencies)

    def _take_down_orphan(self, orphan: Orphan) -> None:
        """Have the next tick put an orphan on record, to be taken down."""
        done = self.post(
            lambda records, world, _, now: take_down_orphan(records, world, orphan, now)
        )

        def tell(answer: Future[Any]) -> None:
            error = answer.exception()
            if error is not None:
                text = "%s: orphan of provider %s cannot be taken down"
                log.failure(text, orphan.burst, orphan.provider, error=error)

        done.add_done_callback(tell)

    def force(self, burst: BurstId, provider: str) -> None:
        """Have the burst reaped without hosts that do not answer. Raises BurstError."""
        self._tracker.force(burst, provider)

    def reap_orphans(self, orphans: Iterable[Orphan]) -> None:
        """Have these deleted from the next tick on, until NotFound. From any thread.

        `Snapshot.reaps` shows how far that is.
        """
        self._orphan_reaper.request(orphans)


def _with_forecasts(world: World, forecasts: Forecasts | None) -> World:
    """Return the world with the forecasts, where there are some and a lead is read."""
    if world.lead is None or forecasts is None:
        return world
    return msgspec.structs.replace(
        world, forecasts=forecasts.judged.starts, run_times=forecasts.run_times
    )
