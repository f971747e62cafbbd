# SPDX-License-Identifier: MIT
"""What the answers of a provider's methods mean for its health.

`after_answer` returns the health of a provider after an answer, `pause_after` the pause
before the method may be called again. Both are used for offers, observe, provision and
reap, and for reaping orphans. What an answer means for a burst is in `burst.core.sync`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping

import msgspec

from burst.config import LimitSettings
from burst.model.backoff import backoff
from burst.model.burst import BurstId
from burst.model.decision import clock_time
from burst.model.event import cut
from burst.model.reason import Reason

# A failed call of a provider is repeated after this many seconds, doubled each time.
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
_LONGEST_RETRY_AFTER = 300.0
"""The longest pause that a provider may ask for, in seconds. Deletion waits for it,
too, and what is not deleted costs money: an API that is closed for hours, as for
maintenance, is called every five minutes."""
BREAKER = 3
"""Unexpected failures of one method in a row after which a provider gets no new bursts
for a while. Its other calls go on: what exists is still observed and deleted."""
MOST_TIMES = 16
"""The longest pause after repeated failures, as a multiple of the first pause."""
# A refused request is repeated after this many seconds, then after twice as long each
# time, up to three times `[limits] cooldown`. Nothing was made, so another attempt
# costs nothing, and a person who corrects rights or a policy soon sees whether it
# works.
_FIRST_REFUSED = 60.0


class Verb(enum.Enum):
    """The method of a provider that was called."""

    OFFERS = "offers"
    OBSERVE = "observe"
    PROVISION = "provision"
    REAP = "reap"
    RESIZE = "resize"


class Outcome(enum.Enum):
    """The outcome of a provider's call, by the class of error that it raised."""

    PENDING = "pending"
    """The call has not returned yet."""
    OK = "ok"
    CAPACITY = "capacity"
    TRANSIENT = "transient"
    SPEC = "spec"
    """The provider refuses this one burst."""
    REFUSED = "refused"
    """The provider does not work with its credentials, quota or settings."""
    NOT_FOUND = "not-found"
    UNEXPECTED = "unexpected"


WORKS = (Outcome.OK, Outcome.NOT_FOUND)
"""Outcomes that show that a provider works."""
ENDS_BURST = (Outcome.CAPACITY, Outcome.SPEC, Outcome.REFUSED)
"""Outcomes of `provision` after which it is not called again for that burst."""


class ProviderAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How a call of a provider's method ended."""

    provider: str
    verb: Verb
    outcome: Outcome
    note: str = ""
    burst: BurstId | None = None
    """The burst of the call, if it is on record: its call is in `World.calls`."""


class FailureKind(enum.StrEnum):
    """What a row of `Health` is about; the rest of its key is described below."""

    METHOD = "method"
    """A method that its provider refused for its credentials, quota or settings, until
    that method works again. Key: the value of `Verb`."""
    OFFER = "offer"
    """An offer that had no capacity, or whose bursts did not come up. Key: its name."""
    UNUSABLE = "unusable"
    """An offer whose bursts came online and could run no job. Key: its name."""
    SPEC = "spec"
    """A kind of burst that the provider refused. Key: `burst.core.cooldowns.spec_key`.
    """


class FailureRecord(msgspec.Struct, frozen=True):
    """What failed, and until when it is not tried: one row of `Health`."""

    failures: int = 1
    """The failures in a row; 0 if the cloud took nodes back while they came up."""
    until: float = 0.0
    """It is not tried before this time, and then by one burst; in seconds since the
    epoch. 0 if a single failure may have been an accident."""
    nodes: int = 0
    """Bursts of at least this many nodes are not tried: the smallest for which there
    was no capacity. 0 for bursts of any size, and if size does not matter."""
    why: str = ""
    """The cause of the last failure, in the words of the provider or the daemon."""
    at: float = 0.0
    """When the last failure was, if its pause did not begin then; else 0."""

    def covers(self, nodes: int, now: float) -> bool:
        """Tell whether no burst with this number of nodes is tried now."""
        return self.until > now and self.nodes <= nodes


def failures_by_now(known: FailureRecord | None, now: float, forgotten: float) -> int:
    """Return the failures in a row of something that has just failed again.

    `known` is its record so far, which counts until `forgotten` seconds after its
    pause. A failure during that pause is not counted: it is of a request from before
    the pause, as several bursts may be requested at once.
    """
    if known is None or max(known.at, known.until) + forgotten < now:
        return 1
    return known.failures + (known.until <= now)


class Health(msgspec.Struct, frozen=True):
    """All failures of a provider; kept in the store."""

    rows: Mapping[str, FailureRecord] = {}
    """What failed, by `row_key`."""
    failed: Mapping[str, int] = {}
    """Unexpected failures in a row, by method."""
    until: float = 0.0
    """The breaker is open until this time, in seconds since the epoch; 0 if closed."""
    table: str = ""
    """A digest of the provider's table in the settings, under which all of this
    happened."""
    trial: bool = False
    """Whether it was disabled or paused, has made a burst since, and none of its bursts
    has come online yet: it gets one burst at a time."""

    @property
    def is_default(self) -> bool:
        """Whether there are no failures to keep."""
        return msgspec.structs.replace(self, table="") == Health()

    def row(self, kind: FailureKind, what: str) -> FailureRecord | None:
        """Return the row about a method, an offer or a kind of bursts; None if none."""
        return self.rows.get(row_key(kind, what))

    def rows_of(self, kind: FailureKind) -> dict[str, FailureRecord]:
        """Return the rows of a kind by the rest of their keys, the oldest first."""
        begin = row_key(kind, "")
        return {
            key.removeprefix(begin): row
            for key, row in self.rows.items()
            if key.startswith(begin)
        }

    def noting(self, kind: FailureKind, what: str, row: FailureRecord) -> Health:
        """Return the health with this row, which replaces one about the same."""
        rows = {**self.rows, row_key(kind, what): row}
        return msgspec.structs.replace(self, rows=rows)

    def without(self, kind: FailureKind, *whats: str) -> Health:
        """Return the health without the rows about these."""
        gone = {row_key(kind, what) for what in whats}
        rows = {key: row for key, row in self.rows.items() if key not in gone}
        return msgspec.structs.replace(self, rows=rows)

    @property
    def disabled(self) -> str:
        """Why the provider is disabled; empty while it is not."""
        refused = self.rows_of(FailureKind.METHOD).values()
        return next((row.why for row in refused), "")

    @property
    def tried_at(self) -> float:
        """When a single burst tests whether a disabled provider works again.

        math.inf if `offers` or `observe` was refused: they are called all the time and
        show it without a burst. 0 if the provider is not disabled.
        """
        refused = self.rows_of(FailureKind.METHOD)
        if {Verb.OFFERS.value, Verb.OBSERVE.value} & refused.keys():
            return math.inf
        return max((row.until for row in refused.values()), default=0.0)

    def set_aside(self, offer: str) -> tuple[float, str]:
        """Return until when an offer is not tried, and why; 0 if no pause is on record.

        The time is in seconds since the epoch, and may be in the past.
        """
        kinds = (FailureKind.OFFER, FailureKind.UNUSABLE)
        known = (self.row(kind, offer) for kind in kinds)
        found = [(row.until, row.why) for row in known if row and row.until]
        return max(found, default=(0.0, ""))

    def on_trial(self, now: float) -> bool:
        """Tell whether the provider may have one burst, to test if it works again."""
        held = bool(self.rows_of(FailureKind.METHOD) or self.until)
        return max(self.until, self.tried_at) <= now if held else self.trial


def row_key(kind: FailureKind, what: str) -> str:
    """Return the key of the row about a method, an offer or a kind of bursts."""
    return f"{kind}/{what}"


def after_answer(
    health: Health, answer: ProviderAnswer, limits: LimitSettings, now: float
) -> Health:
    """Return the health of a provider after an answer of one of its methods."""
    verb, outcome = answer.verb, answer.outcome
    if verb is Verb.RESIZE:
        # After it a growth is given up, or a shrink is tried again. If the provider
        # does not work, the next `observe` or `provision` will show it, too.
        return health
    if verb is Verb.REAP and outcome is Outcome.SPEC:
        # It shows nothing about the provider, and the burst is being ended already.
        outcome = Outcome.TRANSIENT
    elif outcome is Outcome.SPEC and verb is not Verb.PROVISION:
        outcome = Outcome.REFUSED
    replace = msgspec.structs.replace
    name = verb.value
    if verb is Verb.PROVISION and outcome is Outcome.OK:
        # An API that accepts a burst does not show yet that the burst comes online.
        tried = bool(health.until or health.row(FailureKind.METHOD, name))
        health = replace(health, trial=health.trial or tried)
    if outcome in (*WORKS, Outcome.CAPACITY, Outcome.SPEC):
        failed = {key: count for key, count in health.failed.items() if key != name}
        open_ = any(count >= BREAKER for count in failed.values())
        until = health.until if open_ else 0.0
        health = replace(health, failed=failed, until=until)
    if outcome in WORKS:
        return _lift_refusal(health, name, now)
    if outcome is Outcome.REFUSED:
        known = health.row(FailureKind.METHOD, name)
        row = refused_again(known, cut(answer.note), limits, now)
        return health.noting(FailureKind.METHOD, name, row)
    if outcome is Outcome.UNEXPECTED:
        count = health.failed.get(name, 0) + 1
        until = now + limits.breaker_pause if count >= BREAKER else health.until
        return replace(health, failed={**health.failed, name: count}, until=until)
    return health


def refused_again(
    known: FailureRecord | None, why: str, limits: LimitSettings, now: float
) -> FailureRecord:
    """Return the record of a method or a kind of burst that was refused just now."""
    failures, longest = failures_by_now(known, now, math.inf), limits.refused_retry
    until = now + backoff(min(_FIRST_REFUSED, longest), failures, longest)
    return FailureRecord(failures, until, why=why)


def _lift_refusal(health: Health, name: str, now: float) -> Health:
    """Return the health after a method worked.

    If it was refused before, somebody corrected something: a role, a namespace, a key.
    So other methods that were refused are tried now.
    """
    refused = health.rows_of(FailureKind.METHOD)
    if name not in refused:
        return health
    health = health.without(FailureKind.METHOD, name)
    for other in refused.keys() - {name}:
        row = refused[other]
        tried = msgspec.structs.replace(row, until=min(row.until, now))
        health = health.noting(FailureKind.METHOD, other, tried)
    return health


def pause_after(outcome: Outcome, attempts: int, retry_after: float | None) -> float:
    """Return after how many seconds a method may be called again.

    `attempts` is the number of failed calls in a row, with this one; `retry_after` is
    the pause that the provider asks for, None if it asks for none. The pause is at
    least FIRST_PAUSE: an API with `Retry-After: 0` would otherwise be called hundreds
    of times a second.
    """
    if outcome is Outcome.OK:
        return 0.0
    if retry_after is not None and retry_after >= 0:
        return min(max(retry_after, FIRST_PAUSE), _LONGEST_RETRY_AFTER)
    return backoff(FIRST_PAUSE, attempts, LONGEST_PAUSE)


def describe_pause(done_at: float, again_at: float) -> str:
    """Return, to follow an error, when a call is repeated; empty if that is soon.

    The call ended at `done_at`; both are in seconds since the epoch.
    """
    if again_at - done_at <= LONGEST_PAUSE:
        return ""
    return f"; as that asks for a pause, it is called again at {clock_time(again_at)}"


def bound_times(health: Health, limits: LimitSettings, now: float) -> Health:
    """Return the health with no pause that ends later than one that begins now.

    A time that was written while the clock was far ahead would prevent bursts for ever.
    """
    replace = msgspec.structs.replace
    cooled = now + limits.cooldown * MOST_TIMES
    latest = dict.fromkeys(FailureKind, now + limits.refused_retry)
    latest |= {FailureKind.OFFER: cooled, FailureKind.UNUSABLE: cooled}
    rows = {
        row_key(kind, what): replace(
            row, at=min(row.at, now), until=min(row.until, latest[kind])
        )
        for kind in FailureKind
        for what, row in health.rows_of(kind).items()
    }
    until = min(health.until, now + limits.breaker_pause)
    return replace(health, until=until, rows=rows)


def why_unavailable(
    provider: str, offer: str, health: Health, now: float
) -> tuple[Reason, dict[str, object]] | None:
    """Return why an offer cannot be taken now; None if it can."""
    if health.tried_at > now:
        return Reason.DISABLED, {"provider": provider, "why": health.disabled}
    if health.until > now:
        return Reason.BREAKER, {
            "provider": provider,
            "failures": max(health.failed.values(), default=0),
            "until": health.until,
        }
    aside = health.row(FailureKind.OFFER, offer)
    if aside is not None and aside.covers(1, now):
        return Reason.OFFER_COOLDOWN, cooldown_facts(provider, aside)
    unusable = health.row(FailureKind.UNUSABLE, offer)
    if unusable is not None and unusable.until > now:
        return Reason.OFFER_UNUSABLE, {
            "provider": provider,
            "failures": unusable.failures,
            "why": unusable.why,
            "until": unusable.until,
        }
    return None


def cooldown_facts(provider: str, aside: FailureRecord) -> dict[str, object]:
    """Return the facts of Reason.OFFER_COOLDOWN."""
    why = "did not come up" if not aside.nodes else "had no capacity"
    if not aside.failures:
        why = f"nodes of a burst of {aside.nodes} were reclaimed while it came up"
    elif aside.nodes > 1:
        why = f"had no capacity for {aside.nodes} nodes"
    if aside.why:
        why = f"{why}: {aside.why}"
    return {"why": why, "until": aside.until, "provider": provider}


def expiry_times(health: Health) -> list[float]:
    """Return the times at which pauses of a provider end."""
    others = health.without(FailureKind.METHOD, *(verb.value for verb in Verb))
    ends = (row.until for row in others.rows.values())
    return [health.until, health.tried_at, *ends]
