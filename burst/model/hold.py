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


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to one job."""

    urgency: int
    """Before it was held; what it gets back unless the site sets another."""
    state: HoldState
    since: float
    """Of the state; seconds since the epoch."""

    def then(self, state: HoldState, now: float) -> Hold:
        """Return the record after a step."""
        return Hold(urgency=self.urgency, state=state, since=now)


def encode_hold(hold: Hold) -> str:
    """Return the JSON text that is kept."""
    return msgspec.json.encode(hold).decode()


def decode_hold(text: str) -> Hold:
    """Return the hold of a record. Raises RecordUnreadable."""
    try:
        return msgspec.json.decode(text, type=Hold)
    except msgspec.MsgspecError as error:
        raise RecordUnreadable(f"not a hold record: {error}") from error
