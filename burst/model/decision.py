# SPDX-License-Identifier: MIT
"""The decision about a job, and why each offer was turned down for it, as text."""

from __future__ import annotations

import datetime
import string
from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from typing import Any, cast

import msgspec

from burst.model.next_step import (
    NEXT_STEPS,
    OFFERS_STAY_DOWN,
    NextStep,
    ends_by_waiting,
)
from burst.model.reason import Reason

# Farther than this, in seconds, a time is told with its date.
_FAR_S = 43200.0


def moment(seconds: float) -> str:
    """Return a time, given in seconds since the epoch, as text with its date."""
    return _date(seconds, "%Y-%m-%d %H:%M")


def exact_moment(seconds: float) -> str:
    """Return a time, given in seconds since the epoch, as text with date and second."""
    return _date(seconds, "%Y-%m-%d %H:%M:%S")


def clock_time(seconds: float) -> str:
    """Return a time, given in seconds since the epoch, as a time of day."""
    return _date(seconds, "%H:%M:%S")


def near_moment(seconds: float, now: float) -> str:
    """Return a time as a time of day, with its date if that may not be today."""
    told = moment(seconds)
    return told if seconds - now > _FAR_S else told.rpartition(" ")[2]


def time_after(seconds: float, now: float, zone: datetime.tzinfo | None = None) -> str:
    """Return a time as a time of day, with its date if that is not today (`now`).

    `zone` is the time zone, None for that of this process.
    """
    clock, day = _date(seconds, "%H:%M:%S", zone), _date(seconds, "%Y-%m-%d", zone)
    today = _date(now, "%Y-%m-%d", zone)
    return clock if day in ("never", today) else f"{day} {clock}"


def _date(seconds: float, form: str, zone: datetime.tzinfo | None = None) -> str:
    """Return a time in a format of strftime(3); "never" for a time out of range."""
    try:
        time = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
        return time.astimezone(zone).strftime(form)
    except (OverflowError, ValueError, OSError):
        return "never"


def why_waits(job: Mapping[str, Any]) -> str:
    """Return why a job waits: why each offer was turned down, or else the reason.

    `job` is a row of the daemon's answers to `status` and `report`.
    """
    refused = (f"{each['offer']}: {each['why']}" for each in job["refusals"])
    return "; ".join(refused) or str(job["why"])


def count_nodes(number: object) -> str:
    """Return a number of nodes in words."""
    return f"{number} node" if number == 1 else f"{number} nodes"


def name_ranks(idset: str) -> str:
    """Return the ranks of an idset in words; `?` stands for unknown ranks."""
    if not idset:
        return "no ranks"
    return f"rank {idset}" if idset.isdigit() else f"ranks {idset}"


class _Sentence(string.Formatter):
    """Fills facts into a text; times are absolute, so that the text does not change.

    `!t` shows seconds since the epoch as a time with its date, which may be days away,
    `!n` a number of nodes (`1 node`), `!i` an idset of ranks (`rank 2`, `ranks 2-3`).
    """

    def convert_field(self, value: Any, conversion: Any) -> Any:
        match conversion:
            case "t":
                return exact_moment(value)
            case "n":
                return count_nodes(value)
            case "i":
                return name_ranks(value)
        return super().convert_field(value, conversion)


_SENTENCE = _Sentence()
_Facts = MutableMapping[str, Any]


def filled(text: str, facts: Mapping[str, Any]) -> str:
    """Return a text with its facts filled in."""
    if "!" in text:
        return _SENTENCE.vformat(text, (), facts)
    return text.format_map(facts)  # eight times as fast


WAITS_HERE = "here"
"""The fact of a job that no offer serves: whether own nodes that are up can run it."""
GUESTS_WORDS = "guests_words"
"""The fact that replaces `words` for guests: it leaves out what the provider said about
its account and settings when it was called."""


def _next_step(step: NextStep, facts: Mapping[str, Any]) -> str:
    return f"{step.who.value} {filled(step.what, facts)}"


class OfferRejection(msgspec.Struct, frozen=True):
    """Why one offer was turned down."""

    offer: str
    """`provider/offer`."""
    reason: Reason
    facts: Mapping[str, Any] = {}

    def text(self) -> str:
        """Return the reason as a sentence without a full stop."""
        return filled(self.reason.about_offer.text, self.facts)

    def next_step(self) -> str:
        """Return who acts next, and when or on what, as a sentence without a stop."""
        return _next_step(NEXT_STEPS[self.reason], self.facts)

    def guests_text(self) -> str:
        """Return the reason without what only the instance owner may read."""
        return filled(self.reason.about_offer.guests, self.facts)


class Decision(msgspec.Struct, frozen=True):
    """The decision about one job, and why it was made."""

    reason: Reason
    facts: Mapping[str, Any] = {}
    refusals: tuple[OfferRejection, ...] = ()

    def text(self) -> str:
        """Return the reason as a sentence without a full stop."""
        return filled(self.reason.about_job.text, self._with_next())

    def next_step(self) -> str:
        """Return who acts next, and when or on what, as a sentence without a stop."""
        step = NEXT_STEPS[self.reason]
        down = self.refusals if self.reason is Reason.TURNED_DOWN else ()
        if down and not any(ends_by_waiting(each.reason) for each in down):
            here = self.facts.get(WAITS_HERE)
            step = NEXT_STEPS[Reason.NOT_BURSTABLE] if here else OFFERS_STAY_DOWN
        return _next_step(step, self.facts)

    def standing_refusals(self) -> tuple[OfferRejection, ...]:
        """Return the refusals that are still true however old the decision is.

        A lasting decision is not made again while bursts come and go. So refusals that
        depend on what was free at that time are outdated, and are left out.
        """
        if not self.reason.about_job.lasting:
            return self.refusals
        return tuple(r for r in self.refusals if not r.reason.about_offer.passing)

    def _with_next(self) -> Mapping[str, Any]:
        if "{next}" not in self.reason.about_job.text:
            return self.facts
        return ChainMap({"next": self.next_step()}, cast(_Facts, self.facts))

    def guests_text(self) -> str:
        """Return the reason without what only the instance owner may read."""
        other: dict[str, Any] = {}
        if GUESTS_WORDS in self.facts:
            other["words"] = self.facts[GUESTS_WORDS]
        if "jobs" in self.facts:
            other["jobs"] = "another job"
        if not other:
            return self.text()
        return Decision(self.reason, {**self.facts, **other}).text()

    def memo_word(self) -> str | None:
        """Return the word for the job's memo; None if the job gets no memo."""
        word = self.reason.about_job.memo
        return None if word is None else filled(word, self.facts)
