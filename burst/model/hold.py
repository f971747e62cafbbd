# SPDX-License-Identifier: MIT
"""The record of one hold: what the daemon did to a job's urgency."""

from __future__ import annotations

import enum

import msgspec

from burst.decode import from_json
from burst.errors import RecordUnreadable

DEFAULT_URGENCY = 16
"""Flux's default. Only the instance owner may set a higher one."""

RAISED_FOR = 10.0
"""For how many seconds a job is put ahead of the queue to start on free nodes. By then
the lead shows the effect of a request to raise or lower an urgency."""


class HoldState(enum.Enum):
    """The states of a hold.

    HOLDING and RELEASING are recorded before the request is sent to the lead, HELD and
    RELEASED when the job's urgency shows that the request took effect.
    """

    HOLDING = "holding"
    HELD = "held"
    RELEASING = "releasing"
    RELEASED = "released"
    TAKEN_BACK = "obeyed"
    """Its user changed the urgency of a held job, which is never held again. The value
    is that in records of earlier versions."""


HELD_BY_US = (HoldState.HOLDING, HoldState.HELD, HoldState.RELEASING)
"""States in which the daemon has set, or is setting, urgency 0."""


class Hold(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the daemon did to the urgency of one job."""

    urgency: int
    """The urgency before the hold, which the job gets back when it is released."""
    state: HoldState
    since: float
    """When that state began, in seconds since the epoch."""
    expected_urgency: int = msgspec.field(default=0, name="shown")
    """The urgency that the lead shows unless somebody else changes it: the one before
    the hold, or the one with which the job was released. 0 if it is not known. Its name
    in records is `shown`, as in earlier versions."""
    expired: float = 0.0
    """When it last left a burst because Flux had not started it in time, in seconds
    since the epoch; 0 for never."""
    stood: str = ""
    """What prevented its start then; empty if it never expired."""
    requested: bool = False
    """Whether its user asked for a burst, whatever that is worth (`burst request
    --job`)."""

    raised_to: int = 0
    """The urgency that it got after its release because its lent nodes were free and
    Flux did not start it (`burst.core.jobs.raised_urgencies`). Kept after the job got
    its own urgency back; 0 if it was never raised."""
    raised_since: float = 0.0
    """When its urgency was raised, or was set back, in seconds since the epoch."""
    by_user: bool = False
    """Whether somebody else changed its urgency after its release: then the daemon does
    not change it."""

    letting: float = 0.0
    """Since when the daemon asks the lead to let the job start on the nodes of its
    bursts, in seconds since the epoch; 0 while it does not ask. The lead may refuse
    this for a single job."""

    @property
    def is_raised(self) -> bool:
        """Whether it is put ahead of its place in the queue."""
        return bool(self.raised_to) and self.expected_urgency == self.raised_to

    def may_show(self, urgency: int, now: float) -> bool:
        """Tell whether the lead may show this urgency though only the daemon set it."""
        if urgency == self.expected_urgency or not self.expected_urgency:
            return True
        ours = bool(self.raised_to) and urgency in (self.urgency, self.raised_to)
        return ours and now - self.raised_since < RAISED_FOR

    @classmethod
    def released(cls, urgency: int, since: float) -> Hold:
        """Return the record of a job that was never held, or not since `since`."""
        return cls(
            urgency=urgency,
            state=HoldState.RELEASED,
            since=since,
            expected_urgency=urgency,
        )

    def then(self, state: HoldState, now: float) -> Hold:
        """Return the record in the next state."""
        return msgspec.structs.replace(self, state=state, since=now)


def urgency_before(hold: Hold | None, shown: int) -> int:
    """Return the urgency that Flux shows for a job or, if we hold it, had shown."""
    return hold.urgency if hold and hold.state in HELD_BY_US else shown


def encode_hold(hold: Hold) -> str:
    """Return the JSON text for the store."""
    return msgspec.json.encode(hold).decode()


def decode_hold(text: str) -> Hold:
    """Return the hold of a record. Raises RecordUnreadable."""
    try:
        return from_json(text, Hold)
    except msgspec.MsgspecError as error:
        raise RecordUnreadable(f"not a hold record: {error}") from error
