# SPDX-License-Identifier: MIT
"""What ensembles have of a daemon: its service, as any client of the owner has it.

In the daemon's process requests go to the service directly, and from a process of
their own over a connection to the lead; all else is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from burst.config import Settings
from burst.core.tagged_nodes import TaggedNodes
from burst.decode import from_plain
from burst.errors import NoDaemon
from burst.lead import ANSWER_S, JobSubmitter, Lead, NamedServices, submitter_of
from burst.runtime.daemon_package import CallService
from burst.runtime.service_answers import Row

IN_DAEMON = "ensemble-in-daemon"
"""Method of the daemon's service: whether ensembles run in its process."""
TAGGED = "tagged"
"""And what it knows of bursts and jobs with tags."""

SERVICE = "burst-ensemble"
"""The service of a process that runs ensembles beside the daemon."""


class DaemonClient(NamedTuple):
    """What ensembles are given. All of it may be used from any thread."""

    call: CallService
    """Calls a method of the service `burst`. Raises BurstError."""
    lead: Lead
    """For its store, where the records of ensembles are, and for their jobs."""
    settings: Callable[[], Settings]
    clock: Callable[[], float]
    """Seconds since the epoch."""

    @property
    def submitter(self) -> JobSubmitter:
        """What takes jobs. Raises LeadError where nothing does."""
        return submitter_of(self.lead)

    def nodes(self) -> TaggedNodes:
        """Return what the daemon knows of bursts and jobs with tags.

        Raises BurstError.
        """
        return from_plain(self.call(TAGGED, {}), TaggedNodes)


def ask_ensembles(lead: Lead, method: str, payload: Mapping[str, Any]) -> Row:
    """Ask whoever runs the ensembles of a lead: a process of their own, or the daemon.

    Raises BurstError.
    """
    if isinstance(lead, NamedServices):
        try:
            return lead.call_named(SERVICE, method, payload, ANSWER_S)
        except NoDaemon:
            pass
    return lead.call(method, payload)
