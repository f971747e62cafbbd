# SPDX-License-Identifier: MIT
"""The interface for external members, which are instances of their own.

Another package implements it, with the entry point `external` of the group
`burst.ensemble_members`. It works only for ensembles that run in the daemon, because it
adds a route to the daemon's `[http]`.
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
