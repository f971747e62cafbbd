# SPDX-License-Identifier: MIT
"""The interface from ensembles to the daemon: its service, as for any other client.

In the daemon's process requests go directly to the service; in a process of their own
they go over a connection to the lead. All else is the same.
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
"""Method of the daemon's service that tells whether ensembles run in its process."""
TAGGED = "tagged"
"""Method of the daemon's service that returns all bursts and jobs with tags."""

SERVICE = "burst-ensemble"
"""The service of a process that runs ensembles beside the daemon."""


class DaemonClient(NamedTuple):
    """How ensembles reach the daemon and its lead. All of it works in any thread."""

    call: CallService
    """Calls a method of the service `burst`. Raises BurstError."""
    lead: Lead
    """The lead. Its store has the records of ensembles, and it takes their jobs."""
    settings: Callable[[], Settings]
    clock: Callable[[], float]
    """Seconds since the epoch."""

    @property
    def submitter(self) -> JobSubmitter:
        """The interface that takes jobs. Raises LeadError if the lead has none."""
        return submitter_of(self.lead)

    def nodes(self) -> TaggedNodes:
        """Return the bursts and jobs with tags that the daemon knows.

        Raises BurstError.
        """
        return from_plain(self.call(TAGGED, {}), TaggedNodes)


def ask_ensembles(lead: Lead, method: str, payload: Mapping[str, Any]) -> Row:
    """Ask the process that runs the ensembles of a lead: their own, or the daemon.

    Raises BurstError.
    """
    if isinstance(lead, NamedServices):
        try:
            return lead.call_named(SERVICE, method, payload, ANSWER_S)
        except NoDaemon:
            pass
    return lead.call(method, payload)
