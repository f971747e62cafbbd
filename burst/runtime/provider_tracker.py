# SPDX-License-Identifier: MIT
"""Calls providers through the executor, and keeps what they returned."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from burst import log
from burst.config import DaemonSettings
from burst.core import world as core
from burst.core.provider_health import (
    Health,
    Outcome,
    ProviderAnswer,
    Verb,
)
from burst.core.records import Records
from burst.core.world import LastCall, ProviderView, repeat_at
from burst.errors import BurstError, SpecRefused
from burst.model.burst import Burst, BurstId, State
from burst.provider import BurstSpec, Provider
from burst.runtime.call_line import QueuedCall
from burst.runtime.executor import CallResult, Executor
from burst.runtime.last_call import (
    ProviderBurst,
    describe_reap,
    ended_call,
    next_call,
)
from burst.runtime.poll_schedule import SHORTEST_PAUSE, PollSchedule
from burst.runtime.tally import Tally

# Seconds between two calls of `offers`: offers change only when prices or quotas do.
_OFFERS_EVERY = 60.0
_MOVING = (State.PROVISION, State.JOIN, State.DRAIN, State.REAP)
_SHOULD_SHOW = (State.JOIN, State.ONLINE)


class ProviderTracker:
    """Calls `observe` and `offers` when due, all other methods when told to."""

    def __init__(
        self,
        providers: Mapping[str, Provider],
        executor: Executor,
        settings: DaemonSettings,
        tally: Tally | None = None,
    ) -> None:
        """`tally` counts the calls that have ended."""
        self._providers: dict[str, Provider] = {}
        self._executor = executor
        self._tally = tally
        self._settings = settings
        self._generations: dict[str, int] = {}
        self._views: dict[str, ProviderView] = {}
        self._schedules: dict[str, tuple[PollSchedule, PollSchedule]] = {}
        self._calls: dict[BurstId, LastCall] = {}
        self._new: set[BurstId] = set()
        """Bursts whose records this object has seen in state NEW: no earlier daemon
        has called a provider for them."""
        self._orphans: dict[ProviderBurst, LastCall] = {}
        self._answered: list[ProviderAnswer] = []
        self._pace: dict[str, float] = {}
        self._notes: dict[ProviderBurst, str] = {}
        self._forced: set[BurstId] = set()
        self.replace(providers, settings)

    def replace(
        self, providers: Mapping[str, Provider], settings: DaemonSettings
    ) -> None:
        """Use these providers from now on. What is known of unchanged ones is kept.

        A call under way ends before the first call of a new object of the same name, as
        both have the same worker.
        """
        new = [n for n, p in providers.items() if self._providers.get(n) is not p]
        for name in new:
            self._generations[name] = self._generations.get(name, 0) + 1
            self._schedules[name] = (
                PollSchedule(name, Verb.OFFERS),
                PollSchedule(name, Verb.OBSERVE),
            )
            self._pace.pop(name, None)
        for name in self._providers.keys() - providers.keys():
            self._generations[name] += 1
        self._views = {
            name: ProviderView() if name in new else self._views[name]
            for name in providers
        }
        self._schedules = {name: self._schedules[name] for name in providers}
        self._orphans = {k: c for k, c in self._orphans.items() if k[0] in providers}
        # Changed in place: waiting calls look up their provider in it when they run.
        for name in self._providers.keys() - providers.keys():
            del self._providers[name]
        self._providers |= providers
        self._settings = settings

    @property
    def views(self) -> Mapping[str, ProviderView]:
        """What each provider returned last."""
        return dict(self._views)

    @property
    def calls(self) -> Mapping[BurstId, LastCall]:
        """The last call for each burst."""
        return dict(self._calls)

    @property
    def orphans(self) -> Mapping[ProviderBurst, LastCall]:
        """The last call for each orphan that is or was reaped."""
        return dict(self._orphans)

    @property
    def answered(self) -> tuple[ProviderAnswer, ...]:
        """How calls ended; each answer is kept until `forget_answers` drops it."""
        return tuple(self._answered)

    def note_new(self, records: Records) -> None:
        """Note which bursts are new. Called with all records that are stored."""
        self._new = {
            burst.id
            for burst in records.live
            if burst.state is State.NEW
            or (burst.state is State.PROVISION and burst.id in self._new)
        }

    def forget_answers(
        self, answered: Sequence[ProviderAnswer], records: Records
    ) -> None:
        """Forget these answers, as the records have what they changed.

        The calls for bursts that have ended are forgotten, too.
        """
        self._answered = [said for said in self._answered if said not in answered]
        for burst in list(self._calls):
            if burst not in records.bursts or not records.bursts[burst].live:
                del self._calls[burst]
                self._forced.discard(burst)
                self._notes = {k: v for k, v in self._notes.items() if k[1] != burst}

    def call(
        self, burst: Burst, verb: Verb, spec: BurstSpec | SpecRefused | None = None
    ) -> None:
        """Have a method called for the burst; the result comes to a later tick.

        A SpecRefused, given if no spec could be made, counts as the provider's refusal.
        """
        provider, before = burst.lease.provider, self._calls.get(burst.id)
        nodes = 0
        if verb is Verb.RESIZE and isinstance(spec, BurstSpec):
            nodes = len(spec.hosts)
        call = next_call(before, verb, nodes)
        first = before is None and burst.id in self._new
        self._calls[burst.id] = msgspec.structs.replace(call, first=first)
        self._poll_soon(provider)
        force = verb is Verb.REAP and burst.id in self._forced
        self._submit(provider, verb, burst=burst.id, spec=spec, force=force)

    def force(self, burst: BurstId, provider: str) -> None:
        """Have later calls of `reap` for the burst not wait for dead hosts.

        A restart of the daemon forgets this; the user has to ask again. Raises
        BurstError if the provider waits for every host.
        """
        known = self._providers.get(provider)
        if known is None or not known.has("force_reap"):
            raise BurstError(
                f"provider {provider or 'NAME'} always waits for every host",
                "leave --force out; give the burst's --provider if its record cannot be"
                " read",
            )
        self._forced.add(burst)

    def give_up(self, burst: BurstId) -> None:
        """Take the burst for gone, as a person says that its place is.

        A restart of the daemon forgets this, too.
        """
        self._calls[burst] = LastCall(verb=Verb.REAP, outcome=Outcome.NOT_FOUND)

    def reap_orphan(self, provider: str, burst: BurstId, now: float) -> float:
        """Call `reap` for an orphan if that is due; return when it is due again.

        Return math.inf during a call, and once the provider has answered NotFound.
        """
        key = provider, burst
        before = self._orphans.get(key)
        if before is not None:
            if before.outcome is Outcome.NOT_FOUND:
                return math.inf
            if now < repeat_at(before):
                return repeat_at(before)
        self._orphans[key] = next_call(before, Verb.REAP)
        self._poll_soon(provider)
        self._submit(provider, Verb.REAP, burst=burst, orphan=True)
        return math.inf

    def forget_orphan(self, key: ProviderBurst) -> None:
        """Forget the calls for an orphan, as it is gone or its deletion begins."""
        self._orphans.pop(key, None)
        self._notes.pop(key, None)

    def poll(self, records: Records, now: float) -> float:
        """Call `offers` and `observe` where due; return when the next call is due."""
        due = now + self._settings.cadence
        for name, (offers, observe) in self._schedules.items():
            its = [b for b in records.live if b.lease.provider == name]
            states = {b.state for b in its}
            pace = float(self._settings.cadence)
            if states:
                pace = self._settings.observe
            if states.intersection(_MOVING) or any(b.resize for b in its):
                pace = min(pace, self._pace.setdefault(name, SHORTEST_PAUSE))
            health = records.health.get(name, Health())
            for schedule, every in ((offers, _OFFERS_EVERY), (observe, pace)):
                if schedule.asked_at is not None:
                    continue  # its result wakes the engine
                at = schedule.due(now, health)
                if at <= now:
                    self._start_poll(name, schedule, every, now)
                    at = now + every
                due = min(due, at)
        return due

    def collect_results(self, records: Records, now: float) -> None:
        """Take in the results of calls that have ended."""
        for result in self._executor.collect():
            if self._tally is not None:
                self._tally.called(result)
            call = result.call
            if call.burst is not None:
                self._take_call_result(result)
            elif self._generations.get(call.provider) == call.generation:
                self._take_poll_result(result, records)
        for name, (offers, observe) in self._schedules.items():
            if no_offers := offers.note_silence(now):
                self._change_view(name, no_offers=no_offers)
            if trouble := observe.note_silence(now):
                self._change_view(name, trouble=trouble)

    def _start_poll(
        self, name: str, schedule: PollSchedule, every: float, now: float
    ) -> None:
        schedule.ask(every, now)
        if schedule.verb is Verb.OBSERVE:
            self._pace[name] = min(2 * every, self._settings.observe)
        self._submit(name, schedule.verb)

    def _poll_soon(self, name: str) -> None:
        self._pace[name] = SHORTEST_PAUSE
        self._schedules[name][1].poll_soon()

    def _submit(self, name: str, verb: Verb, **about: Any) -> None:
        self._executor.submit(
            QueuedCall(
                provider=name,
                verb=verb,
                generation=self._generations[name],
                providers=self._providers,
                **about,
            )
        )

    def _take_poll_result(self, result: CallResult, records: Records) -> None:
        """Take in the result of `offers` or `observe`."""
        name, verb = result.call.provider, result.call.verb
        schedule = self._schedules[name][verb is Verb.OBSERVE]
        trouble = schedule.note_result(result, self._settings.observe)
        self._note_answer(result, None)
        view = self._views[name]
        if verb is Verb.OFFERS:
            offers = view.offers if trouble else result.value
            view = msgspec.structs.replace(view, offers=offers, no_offers=trouble)
        elif trouble:
            view = msgspec.structs.replace(view, trouble=trouble)
        else:
            view = self._view_after(view, result, records)
        self._views[name] = view

    def _view_after(
        self, view: ProviderView, result: CallResult, records: Records
    ) -> ProviderView:
        expected = [
            burst.id
            for burst in records.live
            if burst.lease.provider == result.call.provider
            and self._should_show(burst, result)
        ]
        return core.after_observation(view, result.value, expected, result.began_at)

    def _should_show(self, burst: Burst, result: CallResult) -> bool:
        if burst.state is not State.PROVISION:
            return burst.state in _SHOULD_SHOW
        call = self._calls.get(burst.id)
        return (
            call is not None
            and call.outcome is Outcome.OK
            and call.done_at <= result.began_at
        )

    def _take_call_result(self, result: CallResult) -> None:
        """Take in the result of `provision`, `resize` or `reap`."""
        burst, name = result.call.burst, result.call.provider
        assert burst is not None
        key = name, burst
        call = self._orphans.get(key) if result.call.orphan else self._calls.get(burst)
        if call is None:
            return
        note_before = self._notes.get(key)
        call = ended_call(call, result, note_before)
        self._notes[key] = result.note
        if result.call.orphan:
            self._orphans[key] = call
            if result.note != note_before:
                _log_orphan(key, call)
        else:
            # Kept even if a reload has disabled the provider meanwhile: a call left
            # pending would never be repeated once the provider is enabled again.
            self._calls[burst] = call
        if name in self._providers:
            observe = self._schedules[name][1]
            observe.poll_after(result.done_at, self._settings.observe)
            self._note_answer(result, None if result.call.orphan else burst)

    def _note_answer(self, result: CallResult, burst: BurstId | None) -> None:
        self._answered.append(
            ProviderAnswer(
                provider=result.call.provider,
                verb=result.call.verb,
                outcome=result.outcome,
                note=result.note,
                burst=burst,
            )
        )

    def _change_view(self, name: str, **changes: str) -> None:
        self._views[name] = msgspec.structs.replace(self._views[name], **changes)


def _log_orphan(key: ProviderBurst, call: LastCall) -> None:
    failed = call.outcome not in (Outcome.OK, Outcome.NOT_FOUND)
    level = logging.WARNING if failed else logging.INFO
    log.say("%s", describe_reap(key, call), level=level)
