# SPDX-License-Identifier: MIT
"""A job that Flux ended as it lost a node, and its second submission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from burst.decode import from_plain
from burst.errors import MALFORMED
from burst.model.jobid import JobId, format_f58
from burst.model.request import unreadable

MOST_REPEATS = 2
"""So often a job is run again that loses its nodes each time. After so many losses it
gets no nodes that a cloud may take back."""

# The note of Flux where the broker of a node is gone, and where that broker ended in
# order while the job shell, which followed the job's events through it, was running.
_NODE_FAILURE = "node failure on "
_BROKER_ENDED = "flux_job_event_watch_get: Function not implemented"


def lost_node(kind: str, note: str) -> str:
    """Return the note of a fatal exception if a lost node caused it; else nothing.

    `kind` is the exception's type (RFC 21).
    """
    lost = note.startswith(_NODE_FAILURE) or note == _BROKER_ENDED
    return note if kind == "exec" and lost else ""


class Repeat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is on record of a job that lost a node: the intent to submit it again.

    It is written before the lead is asked to.
    """

    losses: int
    """How many runs have lost a node by now: of this job, and of those it repeats."""
    urgency: int
    """That the second job gets once the daemon has seen it; it is submitted held."""
    since: float
    """When it was recorded, or else when the lead was asked last; seconds since the
    epoch."""
    ranks: str = ""
    """Those on which the job ran, an idset: the lost one is among them."""
    asked: bool = False
    """Whether the lead was asked."""
    again: JobId | None = None
    """The second job; None as long as it is not known."""
    refused: str = ""
    """Why there is none; empty if there is, or may be."""

    @property
    def is_open(self) -> bool:
        """Whether it is not known what came of it."""
        return self.again is None and not self.refused

    def text(self) -> str:
        """Return what came of it, as a sentence without a full stop."""
        if self.again is not None:
            return f"it was submitted again as {format_f58(self.again)}"
        if self.refused:
            return f"it is not run again: {self.refused}"
        return "it is being submitted again"


def repeated_jobspec(
    jobspec: Mapping[str, Any], job: JobId, repeat: Repeat
) -> dict[str, Any]:
    """Return the jobspec of the second job, from that with which the first came.

    It says which job it repeats. Dependencies are left out, as the first job waited for
    them, and Flux refuses some of those on jobs that have ended. Raises JobspecError.
    """
    try:
        attributes = from_plain(jobspec["attributes"], dict[str, Any])
        system = from_plain(attributes["system"], dict[str, Any])
        preferences = from_plain(system.get("burst") or {}, dict[str, Any])
    except MALFORMED as error:
        raise unreadable("jobspec", error) from error
    system.pop("dependencies", None)
    system["burst"] = {
        **preferences,
        "urgency": repeat.urgency,
        "repeats": format_f58(job),
        "losses": repeat.losses,
    }
    return {**jobspec, "attributes": {**attributes, "system": system}}
