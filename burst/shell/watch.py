# SPDX-License-Identifier: MIT
"""What the providers were asked and what they said: half of the world of a tick."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from burst.config import DaemonSettings
from burst.core import limits
from burst.core import world as core
from burst.core.world import Books, Call, Outcome, ProviderView, Verb
from burst.model.burst import Burst, BurstId, State
from burst.provider import Provider
from burst.shell.executor import Answer, Executor, Task

# Offers change when prices or quotas do, so seldom; in seconds.
_OFFERS_EVERY = 60.0
# After this long without an answer to `observe` a provider counts as silent.
_SILENT_AFTER = 120.0
# While a burst is coming or going its provider is asked after this many seconds, then
# after twice as long each time, up to `[daemon] observe`.
_QUICKEST = 0.1
_MOVING = (State.PROVISION, State.JOIN, State.DRAIN, State.REAP)
_SHOULD_SHOW = (State.PROVISION, State.JOIN, State.ONLINE)
_AGAIN = (Outcome.TRANSIENT, Outcome.UNEXPECTED, Outcome.REFUSED, Outcome.OK)


class Watch:
    """Asks providers through the executor, at a pace that fits what their bursts do."""

    def __init__(
        self,
        providers: Mapping[str, Provider],
        executor: Executor,
        settings: DaemonSettings,
    ) -> None:
        self._providers = providers
        self._executor = executor
        self._settings = settings
        self._views = {name: ProviderView() for name in providers}
        self._calls: dict[BurstId, Call] = {}
        self._answered: list[BurstId] = []
        self._asked: dict[tuple[str, str], float] = {}
        self._next: dict[tuple[str, str], float] = {}
        self._pace: dict[str, float] = {}

    @property
    def views(self) -> Mapping[str, ProviderView]:
        """What each provider said last."""
        return dict(self._views)

    @property
    def calls(self) -> Mapping[BurstId, Call]:
        """The last call for each burst."""
        return dict(self._calls)

    @property
    def answered(self) -> tuple[BurstId, ...]:
        """Bursts whose call was answered since `conclude`."""
        return tuple(self._answered)

    def conclude(self, answered: tuple[BurstId, ...], books: Books) -> None:
        """Forget these answers, as the store has what followed from them."""
        self._answered = [burst for burst in self._answered if burst not in answered]
        for burst in list(self._calls):
            if burst not in books.bursts or not books.bursts[burst].live:
                del self._calls[burst]

    def call(self, burst: Burst, verb: Verb, run: Callable[[Provider], None]) -> None:
        """Ask a burst's provider for something; the answer comes to a later tick."""
        provider = burst.lease.provider
        before = self._calls.get(burst.id)
        again = before and before.verb is verb and before.outcome in _AGAIN
        attempts = before.attempts + 1 if before and again else 1
        self._calls[burst.id] = Call(verb=verb, attempts=attempts)
        self._hurry(provider)
        self._submit(provider, verb.value, run, burst.id)

    def ask(self, books: Books, now: float) -> float:
        """Ask what is due of each provider; return when the next question is due."""
        due = now + self._settings.cadence
        for name in self._providers:
            states = {b.state for b in books.live if b.lease.provider == name}
            pace = float(self._settings.cadence)
            if states:
                pace = self._settings.observe
            if states.intersection(_MOVING):
                pace = min(pace, self._pace.setdefault(name, _QUICKEST))
            self._question(name, "offers", _OFFERS_EVERY, now)
            due = min(due, self._question(name, "observe", pace, now))
        return due

    def absorb(self, books: Books, now: float) -> None:
        """Take in the answers that have come."""
        for answer in self._executor.collect():
            if answer.task.what == "offers":
                self._take_offers(answer)
            elif answer.task.what == "observe":
                self._take_observation(answer, books)
            elif answer.task.burst in self._calls:
                self._take_call(answer)
        for name in self._providers:
            asked = self._asked.get((name, "observe"))
            if asked is not None and now - asked > _SILENT_AFTER:
                silence = f"no answer for {now - asked:.0f} s"
                self._trouble(name, silence)

    def _question(self, name: str, what: str, every: float, now: float) -> float:
        """Ask unless the last answer is still out; return when to come back."""
        key = name, what
        due = min(self._next.get(key, now), now + every)
        if key in self._asked or due > now:
            return max(due, now + _QUICKEST)
        method = getattr(self._providers[name], what)
        self._asked[key] = now
        self._next[key] = now + every
        if what == "observe":
            self._pace[name] = min(2 * every, self._settings.observe)
        self._submit(name, what, lambda _: method(), None)
        return now + every

    def _hurry(self, name: str) -> None:
        self._pace[name] = _QUICKEST
        self._next.pop((name, "observe"), None)

    def _submit(
        self,
        name: str,
        what: str,
        run: Callable[[Provider], Any],
        burst: BurstId | None,
    ) -> None:
        provider = self._providers[name]
        self._executor.submit(
            Task(provider=name, what=what, burst=burst, run=lambda: run(provider))
        )

    def _take_offers(self, answer: Answer) -> None:
        name = answer.task.provider
        del self._asked[name, "offers"]
        if answer.outcome is Outcome.OK:
            view = msgspec.structs.replace(
                self._views[name], offers=tuple(answer.value)
            )
            self._views[name] = view
        else:
            self._next.pop((name, "offers"), None)
            self._trouble(name, f"offers: {answer.note}")

    def _take_observation(self, answer: Answer, books: Books) -> None:
        name = answer.task.provider
        del self._asked[name, "observe"]
        if answer.outcome is not Outcome.OK:
            self._trouble(name, f"observe: {answer.note}")
            return
        expected = [
            burst.id
            for burst in books.live
            if burst.lease.provider == name and self._should_show(burst, answer)
        ]
        self._views[name] = core.observe(
            self._views[name], answer.value, expected, answer.began_at
        )

    def _should_show(self, burst: Burst, answer: Answer) -> bool:
        if burst.state is not State.PROVISION:
            return burst.state in _SHOULD_SHOW
        call = self._calls.get(burst.id)
        return (
            call is not None
            and call.outcome is Outcome.OK
            and call.done_at <= answer.began_at
        )

    def _take_call(self, answer: Answer) -> None:
        burst = answer.task.burst
        assert burst is not None
        call = self._calls[burst]
        pause = answer.retry_after
        if pause is None and answer.outcome is not Outcome.OK:
            pause = limits.pause(call.attempts)
        self._calls[burst] = msgspec.structs.replace(
            call,
            outcome=answer.outcome,
            note=answer.note,
            done_at=answer.done_at,
            retry_at=answer.done_at + (pause or 0.0),
        )
        self._answered.append(burst)

    def _trouble(self, name: str, note: str) -> None:
        self._views[name] = msgspec.structs.replace(self._views[name], trouble=note)
