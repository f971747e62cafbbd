# SPDX-License-Identifier: MIT
"""The two kinds of bursts: those that join the lead, and isolated ones.

`behaviour_of` returns what a burst does where the kinds differ. What both have in
common is in `sync`, which records what happened, and in `burst_actions`.
"""

from __future__ import annotations

from typing import Protocol

from burst.config import LimitSettings, Settings
from burst.core.isolated.behaviour import IsolatedBehaviour
from burst.core.joined import JoinedBehaviour
from burst.core.records import Transaction
from burst.core.world import World
from burst.model.burst import Burst
from burst.model.decision import Decision
from burst.model.lead import LeadView


class Behaviour(Protocol):
    """What a burst does where joined and isolated bursts differ."""

    @property
    def holds_its_job(self) -> bool:
        """Whether its job stays held and assigned to it until the burst ends."""

    def record_states(
        self, tx: Transaction, burst: Burst, world: World, limits: LimitSettings
    ) -> None:
        """Record the states that a live burst has reached, by what was read."""

    def record_jobs(
        self, tx: Transaction, burst: Burst, lead: LeadView, settings: Settings
    ) -> None:
        """Record what became of its jobs, and whether anything runs on it."""

    def act(
        self, tx: Transaction, burst: Burst, world: World, settings: Settings
    ) -> None:
        """Do what is due for it that the other kind does not do."""

    def end_late_join(
        self, tx: Transaction, burst: Burst, world: World, settings: Settings
    ) -> None:
        """End the state JOIN, whose deadline is over. The lead can be read."""

    def take_down_online(self, tx: Transaction, burst: Burst, note: str) -> None:
        """Begin to take down a burst that is online."""

    def next_deadline(self, burst: Burst, settings: Settings) -> float:
        """Return when a deadline of the state ONLINE ends; math.inf if none does."""

    def nodes_up(self, burst: Burst, world: World, /) -> int | None:
        """Return how many of its nodes are up, or were before it ended.

        None where that cannot be known.
        """

    def decide(self, burst: Burst, world: World, lease_end: str, /) -> Decision:
        """Return the decision on a job whose burst is not up yet.

        `lease_end` is what the job is told of the end of its leases.
        """


_JOINED = JoinedBehaviour()
_ISOLATED = IsolatedBehaviour()


def behaviour_of(burst: Burst) -> Behaviour:
    """Return the behaviour of the kind of a burst."""
    return _ISOLATED if burst.lease.isolated else _JOINED
