# SPDX-License-Identifier: MIT
"""What ensembles have of a daemon: its service, as any client of the owner has it.

In the daemon's process requests go to the service directly, and from a process of
their own over a connection to the lead; all else is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from burst.config import Settings
from burst.core.tagged_nodes import TaggedNodes
from burst.decode import from_plain
from burst.lead import Lead
from burst.runtime.daemon_package import CallService

IN_DAEMON = "ensemble-in-daemon"
"""Method of the daemon's service: whether ensembles run in its process."""


class DaemonClient(NamedTuple):
    """What ensembles are given. All of it may be used from any thread."""

    call: CallService
    """Calls a method of the service `burst`. Raises BurstError."""
    lead: Lead
    """For its store, where the records of ensembles are, and for their jobs."""
    settings: Callable[[], Settings]
    clock: Callable[[], float]
    """Seconds since the epoch."""

    def nodes(self) -> TaggedNodes:
        """Return what the daemon knows of bursts and jobs with tags.

        Raises BurstError.
        """
        return from_plain(self.call("tagged", {}), TaggedNodes)
