# SPDX-License-Identifier: MIT
"""The record of one hold: what was done to a job's urgency, and the one before."""

from __future__ import annotations

import enum

import msgspec

from burst.decode import from_json
from burst.errors import RecordUnreadable

DEFAULT_URGENCY = 16
"""Flux's default. Only the instance owner may set a higher one."""

RAISED_FOR = 10.0
"""For so many seconds a job is put ahead of the queue to start on free nodes; a request
to raise an urgency, or to lower it, has shown by then."""


class HoldState(enum.Enum):
    """HOLDING and RELEASING are recorded before the request is sent to the lead.

    HELD and RELEASED are recorded when the job's urgency shows that it took effect.
    """

    HOLDING = "holding"
    HELD = "held"
    RELEASING = "releasing"
    RELEASED = "released"
    TAKEN_BACK = "obeyed"
    """Its user changed the urgency of a held job, which is never held again. Records of
    earlier versions have this text."""


HELD_BY_US = (HoldState.HOLDING, HoldState.HELD, HoldState.RELEASING)
"""States in which the daemon set urgency 0."""


class Hold(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was done to one job."""

    urgency: int
    """Before it was held; given back when it is released."""
    state: HoldState
    since: float
    """When that state began; seconds since the epoch."""
    expected_urgency: int = msgspec.field(default=0, name="shown")
    """The urgency that the lead shows unless somebody else changes it: the one before
    the hold, or the one with which the job was released. 0 where it is not known.
    Called `shown` in records, as in those of earlier versions."""
    expired: float = 0.0
    """When it last left a burst, as Flux had not started it in time; seconds since the
    epoch, 0 for never."""
    stood: str = ""
    """What stood in its way then."""
    requested: bool = False
    """Whether its user asked for a burst, whatever that is worth (`burst request
    --job`)."""

    raised_to: int = 0
    """The urgency that it got after its release, as its lent nodes were free and Flux
    did not start it (`[intake] release_urgency`); kept when that was taken back, 0 if
    it never got it."""
    raised_since: float = 0.0
    """When it got that, or when it was taken back; seconds since the epoch."""
    by_user: bool = False
    """Whether its urgency was changed by others since it was released: the daemon
    does not change that."""

    letting: float = 0.0
    """Since when the daemon asks the lead to let the job start on the nodes of its
    bursts, which the lead may refuse for this job alone; seconds since the epoch, 0
    while it does not."""

    @property
    def is_raised(self) -> bool:
        """Whether it is put ahead of its place in the queue."""
        return bool(self.raised_to) and self.expected_urgency == self.raised_to

    def may_show(self, urgency: int, now: float) -> bool:
        """Tell whether the lead may show this urgency although nobody else set it."""
        if urgency == self.expected_urgency or not self.expected_urgency:
            return True
        ours = bool(self.raised_to) and urgency in (self.urgency, self.raised_to)
        return ours and now - self.raised_since < RAISED_FOR

    @classmethod
    def released(cls, urgency: int, since: float) -> Hold:
        """Return the record of a job that was never held, or not since then."""
        return cls(
            urgency=urgency,
            state=HoldState.RELEASED,
            since=since,
            expected_urgency=urgency,
        )

    def then(self, state: HoldState, now: float) -> Hold:
        """Return the record after a step."""
        return msgspec.structs.replace(self, state=state, since=now)


def encode_hold(hold: Hold) -> str:
    """Return the JSON text that is kept."""
    return msgspec.json.encode(hold).decode()


def decode_hold(text: str) -> Hold:
    """Return the hold of a record. Raises RecordUnreadable."""
    try:
        return from_json(text, Hold)
    except msgspec.MsgspecError as error:
        raise RecordUnreadable(f"not a hold record: {error}") from error
