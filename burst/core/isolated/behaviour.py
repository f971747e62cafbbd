# SPDX-License-Identifier: MIT
"""How isolated bursts behave where they differ from bursts that join the lead."""

from __future__ import annotations

from burst.config import LimitSettings, Settings
from burst.core.isolated import actions, decision, observation
from burst.core.job_events import record_job_events
from burst.core.observation import provider_message, reported_message
from burst.core.records import Transaction
from burst.core.world import World
from burst.model.burst import Burst, State
from burst.model.decision import Decision
from burst.model.fsd import format_fsd
from burst.model.lead import LeadView


class IsolatedBehaviour:
    """See `burst.core.behaviour.Behaviour`."""

    holds_its_job = True

    def record_states(
        self, tx: Transaction, burst: Burst, world: World, limits: LimitSettings
    ) -> None:
        """Record the states that a live burst has reached, by what was read."""
        observation.record_states(tx, burst, world, limits)

    def record_jobs(
        self,
        tx: Transaction,
        burst: Burst,
        lead: LeadView,
        settings: Settings,  # noqa: ARG002 - as joined ones
    ) -> None:
        """Record what became of its job; after its end, too."""
        record_job_events(tx, burst, lead)

    def act(
        self, tx: Transaction, burst: Burst, world: World, settings: Settings
    ) -> None:
        """Provision it once its job is held, end it in time, end its job after it."""
        actions.act(tx, burst, world, settings)

    def end_late_join(
        self, tx: Transaction, burst: Burst, world: World, settings: Settings
    ) -> None:
        """Fail a burst whose instance did not come up."""
        limit = format_fsd(settings.deadlines.join)
        why = provider_message(burst, world) or "its provider does not say why"
        note = f"its own instance was not up within {limit}: {why}"
        tx.fail_late(burst, note, settings.limits)

    def take_down_online(self, tx: Transaction, burst: Burst, note: str) -> None:
        """End it at once: nothing of it is known to the lead that could be drained."""
        tx.fail(burst.id, "canceled", note)

    def next_deadline(self, burst: Burst, settings: Settings) -> float:
        """Return when its program or its lease ends; math.inf if neither does."""
        return actions.next_deadline(burst, settings)

    def nodes_up(self, burst: Burst, _: World, /) -> int | None:
        """Return all of its nodes once its instance is up."""
        was = any(event.name == "online" for event in burst.events)
        up = burst.state is State.ONLINE if burst.live else was
        return burst.lease.nodes if up else 0

    def decide(self, burst: Burst, world: World, _: str, /) -> Decision:
        """Return the decision on the job that it runs."""
        message = provider_message(burst, world)
        reported = reported_message(burst, world)
        return decision.decide(
            burst,
            f": {message}" if message else "",
            f": {reported}" if reported else "",
        )
