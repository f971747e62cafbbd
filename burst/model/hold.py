# SPDX-License-Identifier: MIT
"""The record of one hold: what we did to a job's urgency, and what it was before."""

from __future__ import annotations

import enum

import msgspec

from burst.errors import RecordUnreadable

DEFAULT_URGENCY = 16
"""Flux's, and the highest that is not the instance owner's to give."""


class HoldState(enum.Enum):
    """Each intent is recorded before the lead is asked, and its effect when seen."""

    HOLDING = "holding"
    HELD = "held"
    RELEASING = "releasing"
    RELEASED = "released"
    OBEYED = "obeyed"
    """The user changed the urgency of a held job: we never hold it again."""


HELD_BY_US = (HoldState.HOLDING, HoldState.HELD, HoldState.RELEASING)
"""While urgency 0 is our doing."""


class Hold(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was done to one job."""

    urgency: int
    """Before it was held; what it gets back unless the site sets another."""
    state: HoldState
    since: float
    """Of the state; seconds since the epoch."""
    shown: int = 0
    """The urgency that the lead shows while nobody else changes it: at which the job
    was to be held, or with which it was released. 0 where it is not known."""
    expired: float = 0.0
    """When it last left a burst, as Flux had not started it in time; seconds since the
    epoch, 0 for never."""

    def then(self, state: HoldState, now: float) -> Hold:
        """Return the record after a step."""
        return msgspec.structs.replace(self, state=state, since=now)


def encode_hold(hold: Hold) -> str:
    """Return the JSON text that is kept."""
    return msgspec.json.encode(hold).decode()


def decode_hold(text: str) -> Hold:
    """Return the hold of a record. Raises RecordUnreadable."""
    try:
        return msgspec.json.decode(text, type=Hold)
    except msgspec.MsgspecError as error:
        raise RecordUnreadable(f"not a hold record: {error}") from error
