# SPDX-License-Identifier: MIT
"""When to call a provider's `offers` and `observe` again."""

from __future__ import annotations

from collections.abc import Mapping

from burst import log
from burst.core.provider_health import (
    FailureKind,
    Health,
    Outcome,
    Verb,
    describe_pause,
    pause_after,
)
from burst.model.fsd import format_fsd
from burst.runtime.executor import CallResult

# While a burst is made or deleted its provider is called after this many seconds, then
# after twice as long each time, up to a fifth of `[daemon] cadence`.
SHORTEST_PAUSE = 0.1
# The rest after a call is so many times as long as the call took. A long call is work
# for a batch system or a site's program, which also have to start followers meanwhile.
_REST = 5.0
# Seconds after which a provider that has not returned from a call is in trouble.
_SILENT_AFTER = 120.0


class PollSchedule:
    """When to call one method of one provider; one call at a time."""

    def __init__(self, provider: str, verb: Verb) -> None:
        self.verb = verb
        self.asked_at: float | None = None
        """When the call under way was made; None if there is none."""
        self._provider = provider
        self._next = 0.0
        self._took = 0.0
        self._failures = 0
        self._held = False
        self._trouble = ""

    def due(self, now: float, health: Health) -> float:
        """Return when the next call is due, once the last one has returned.

        A provider that refused is called at once after `burst enable`, which `health`
        shows.
        """
        refused = health.row(FailureKind.METHOD, self.verb.value)
        held, self._held = self._held, refused is not None
        if held and not self._held and self._failures:
            return now
        return self._next

    def ask(self, every: float, now: float) -> None:
        """Note that the call is made now, and due again `every` seconds later."""
        self.asked_at = now
        self._next = now + every

    def poll_soon(self) -> None:
        """Make the call due at the next tick, if it is quick and did not fail."""
        if self._is_quick and not self._failures:
            self._next = 0.0

    def poll_after(self, done_at: float, longest: float) -> None:
        """Make a slow call due once its rest after another call is over.

        The rest begins at `done_at`, the end of the other call, and is at most
        `longest` seconds. A method that failed is not called sooner.
        """
        if not (self._is_quick or self._failures):
            self._next = min(self._next, done_at + self._rest(longest))

    def note_result(self, result: CallResult, longest: float) -> str:
        """Note how the call ended; return what is wrong, empty if nothing is.

        After a success, the method is not due again before its rest, of at most
        `longest` seconds, is over; after a failure, it is due after a pause.
        """
        self.asked_at = None
        self._took = result.done_at - result.began_at
        self._next = max(self._next, result.done_at + self._rest(longest))
        worked = result.outcome is Outcome.OK
        self._failures = 0 if worked else self._failures + 1
        if not worked:
            pause = pause_after(result.outcome, self._failures, result.retry_after)
            self._next = result.done_at + pause
        trouble = "" if worked else f"{self.verb.value}: {result.note}"
        self._tell(trouble, result.error)
        return trouble and trouble + describe_pause(result.done_at, self._next)

    def note_silence(self, now: float) -> str:
        """Return that the call under way has not returned for long; else empty."""
        if self.asked_at is None or now - self.asked_at <= _SILENT_AFTER:
            return ""
        late = f"no answer for more than {format_fsd(_SILENT_AFTER)}"
        trouble = f"{self.verb.value}: {late}"
        self._tell(trouble)
        return trouble

    @property
    def _is_quick(self) -> bool:
        return self._rest(SHORTEST_PAUSE) < SHORTEST_PAUSE

    def _rest(self, longest: float) -> float:
        return min(_REST * self._took, longest)

    def _tell(self, trouble: str, error: BaseException | None = None) -> None:
        """Log what is wrong now, or that it works again; once for each text."""
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if not trouble:
            log.say("provider %s: %s works again", self._provider, self.verb.value)
        elif error:
            log.failure("provider %s: %s", self._provider, trouble, error=error)
        else:
            text = "provider %s: %s"
            log.warn(text, self._provider, trouble)


def log_health_changes(
    before: Mapping[str, Health], after: Mapping[str, Health]
) -> None:
    """Log which providers are disabled or paused now, and which no longer are."""
    if before is after:
        return
    for name in sorted(before.keys() | after.keys()):
        was, is_ = before.get(name, Health()), after.get(name, Health())
        if is_.disabled and is_.disabled != was.disabled:
            log.warn(
                "provider %s is disabled: %s; burst enable %s enables it again",
                name,
                is_.disabled,
                name,
            )
        elif is_.until and not was.until:
            log.warn(
                "provider %s failed %d times in a row: it gets no new bursts for now;"
                " burst enable %s ends that",
                name,
                max(is_.failed.values()),
                name,
            )
        elif (was.disabled or was.until) and not (is_.disabled or is_.until):
            log.say("provider %s is used again", name)
