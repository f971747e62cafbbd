# SPDX-License-Identifier: MIT
"""The interfaces of ensembles: to the daemon, and for external members.

To the daemon it is its service, as for any other client. In the daemon's process
requests go directly to the service; in a process of their own they go over a connection
to the lead. All else is the same.

External members are instances of their own. Another package reads them, with the entry
point `external` of the group `burst.ensemble_members`. It works only for ensembles that
run in the daemon, because it adds a route to the daemon's `[http]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any, NamedTuple, Protocol

from burst.config import Settings
from burst.core.tagged_nodes import TaggedNodes
from burst.decode import from_plain
from burst.errors import ConfigError, NoDaemon
from burst.lead import ANSWER_S, JobSubmitter, Lead, NamedServices, submitter_of
from burst.runtime.daemon_package import CallService
from burst.runtime.service_answers import Row
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core.intents import Done
from burst_ensemble.core.job_rows import MemberState
from burst_ensemble.core.record import Member
from burst_ensemble.core.report import ShownMember

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


class ExternalMembers(Protocol):
    """Reads external members. Call `read` and `submitted` only in the thread of the
    ensembles, `show` in any thread.
    """

    def read(self, member: Member) -> MemberState | None:
        """Return a member as it is now; None without news of it, in which case nothing
        is decided for it.
        """
        ...

    def submitted(self, member: Member) -> Done:
        """Return what the last reading says about the member's unconfirmed jobs."""
        ...

    def show(self, member: Member) -> ShownMember:
        """Return what `burst ensemble status` shows about a member."""
        ...


def load_external(daemon: DaemonClient) -> ExternalMembers | None:
    """Return the installed implementation; None if no package has one."""
    for point in entry_points(group="burst.ensemble_members", name="external"):
        make: Callable[[DaemonClient], ExternalMembers] = point.load()
        return make(daemon)
    return None


def refuse_external(spec: EnsembleSpec) -> None:
    """Raise ConfigError if an ensemble has external members, which cannot run here."""
    for member in spec.members:
        if member.is_external:
            raise ConfigError(
                f"member {member.name}: mode external is for ensembles that run in the"
                " daemon, to which agents report",
                "leave in_daemon out of [ensemble], or use another mode",
            )
