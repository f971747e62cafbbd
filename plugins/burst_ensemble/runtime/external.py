# SPDX-License-Identifier: MIT
"""Members that are instances of their own: another package tells of them.

It is found by the entry point `external` of the group `burst.ensemble_members`, and is
for ensembles that run in the daemon alone, to whose `[http]` it adds a route.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Protocol

from burst.errors import ConfigError
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core.intents import Done
from burst_ensemble.core.job_rows import MemberState
from burst_ensemble.core.record import Member
from burst_ensemble.core.report import ShownMember
from burst_ensemble.runtime.client import DaemonClient


class ExternalMembers(Protocol):
    """`read` and `submitted` are for the thread of the ensembles, `show` for any."""

    def read(self, member: Member) -> MemberState | None:
        """Return a member as it is now; None where nothing new is known of it: then
        nothing is decided for it.
        """
        ...

    def submitted(self, member: Member) -> Done:
        """Return what became of its unconfirmed jobs, by what was read last."""
        ...

    def show(self, member: Member) -> ShownMember:
        """Return what `burst ensemble status` shows of it."""
        ...


def load_external(daemon: DaemonClient) -> ExternalMembers | None:
    """Return what tells of external members; None where no package does."""
    for point in entry_points(group="burst.ensemble_members", name="external"):
        make: Callable[[DaemonClient], ExternalMembers] = point.load()
        return make(daemon)
    return None


def refuse_external(spec: EnsembleSpec) -> None:
    """Raise ConfigError for external members, of which nobody tells here."""
    for member in spec.members:
        if member.is_external:
            raise ConfigError(
                f"member {member.name}: mode external is for ensembles that run in the"
                " daemon, to which agents report",
                "leave in_daemon out of [ensemble], or use another mode",
            )
