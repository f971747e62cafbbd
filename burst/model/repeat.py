# SPDX-License-Identifier: MIT
"""A job that Flux ended because it lost a node, and its second submission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from burst.decode import from_plain
from burst.errors import MALFORMED
from burst.model.jobid import JobId, format_f58
from burst.model.request import unreadable

MOST_REPEATS = 2
"""How often a job is run again if it loses a node each time. After this many losses it
gets no nodes that a cloud may take back."""

# The notes of Flux if the broker of a node is gone, and if that broker ended in order
# while the job shell, which followed the job's events through it, was running.
_NODE_FAILURE = "node failure on "
_BROKER_ENDED = "flux_job_event_watch_get: Function not implemented"


def lost_node(kind: str, note: str) -> str:
    """Return the note of a fatal exception if a lost node caused it; else "".

    `kind` is the exception's type (RFC 21).
    """
    lost = note.startswith(_NODE_FAILURE) or note == _BROKER_ENDED
    return note if kind == "exec" and lost else ""


class Repeat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of a job that lost a node: the intent to submit it again.

    It is written before the lead is asked to submit the job.
    """

    losses: int
    """How many runs have lost a node: runs of this job and of those it repeats."""
    urgency: int
    """The urgency that the second job gets once the daemon has seen it; it is submitted
    held."""
    since: float
    """When the intent was recorded, or else when the lead was last asked, in seconds
    since the epoch."""
    ranks: str = ""
    """The ranks on which the job ran, as an idset: the lost one is among them."""
    asked: bool = False
    """Whether the lead was asked to submit the second job."""
    again: JobId | None = None
    """The second job; None until it is known."""
    refused: str = ""
    """Why there is no second job; empty if there is one, or may be one."""

    @property
    def is_open(self) -> bool:
        """Whether the second job is neither known nor refused."""
        return self.again is None and not self.refused

    def text(self) -> str:
        """Return what became of the intent, as a sentence without a full stop."""
        if self.again is not None:
            return f"it was submitted again as {format_f58(self.again)}"
        if self.refused:
            return f"it is not run again: {self.refused}"
        return "it is being submitted again"


def repeated_jobspec(
    jobspec: Mapping[str, Any], job: JobId, repeat: Repeat
) -> dict[str, Any]:
    """Return the jobspec of the second job, from the first job's jobspec as submitted.

    It names the job that it repeats. Dependencies are left out, as the first job waited
    for them, and Flux refuses some dependencies on jobs that have ended. Raises
    JobspecError.
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
