# SPDX-License-Identifier: MIT
"""What a daemon asks of a provider that says how much it has, or that had no more.

It is asked for no more than it says that it has. What a burst had that has gone can be
had again, so a job of that size is not kept waiting for the end of a cooldown.
"""

from __future__ import annotations

from collections.abc import Iterator

from burst.core.burst_story import timeline
from burst.core.provider_health import FailureKind, FailureRecord, Health
from burst.model.burst import Burst, BurstId, State
from burst.model.reason import Reason
from tests.machine.world import World

OFFER = "nodes"
"""The one that each provider of the machine has."""
Found = tuple[str, bool, str]
"""An invariant, whether it holds, and what does not."""


class Scarcity:
    """Looks at each tick for what was asked in vain, or not asked."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._live: dict[BurstId, int] = {}
        self._went: dict[str, tuple[int, FailureRecord]] = {}
        """By provider: how many nodes the largest burst had that went in the tick
        before, and what was set aside then."""

    def before_tick(self) -> None:
        self._live = {b.id: b.lease.nodes for b in self._world.live}

    def after_tick(self) -> Iterator[Found]:
        """Tell what was decided in this tick."""
        yield from self._totals()
        yield from self._regained()
        self._went = dict(self._went_now())

    def _totals(self) -> Iterator[Found]:
        world = self._world
        if world.spoiled:
            return  # what a record says that cannot be read is not known
        for name, site in world.sites.items():
            total, live = site.get("total", 0), self._of(world.live, name)
            more = any(b.lease.nodes > self._live.get(b.id, 0) for b in live)
            nodes = sum(b.lease.nodes for b in live)
            text = f"{name} has {total} nodes, and is asked for {nodes}"
            yield "asked", not (total and more) or nodes <= total, text

    def _regained(self) -> Iterator[Found]:
        snapshot = self._world.engine.snapshot
        for name, (nodes, aside) in self._went.items():
            still = self._aside(name)
            if (still.until, still.failures) != (aside.until, aside.failures):
                continue  # it was asked again, in vain
            kept = [
                job
                for job, decision in snapshot.decisions.items()
                if (view := self._world.lead.jobs.get(job)) is not None
                and view.request is not None
                and view.request.nodes <= nodes
                and any(
                    (refusal.offer, refusal.reason)
                    == (f"{name}/{OFFER}", Reason.OFFER_COOLDOWN)
                    for refusal in decision.standing_refusals()
                )
            ]
            text = f"jobs {kept} wait for a cooldown, and {nodes} nodes of {name} went"
            yield "asked", not kept, text

    def _went_now(self) -> Iterator[tuple[str, tuple[int, FailureRecord]]]:
        world = self._world
        over = [
            burst
            for burst in world.bursts
            if burst.id in self._live
            and burst.state is State.INACTIVE
            and "online" in timeline(burst)
        ]
        for name in world.sites:
            sizes = [burst.lease.nodes for burst in self._of(over, name)]
            aside = self._aside(name)
            if sizes and aside.nodes and aside.until > world.now:
                yield name, (max(sizes), aside)

    def _of(self, bursts: list[Burst], name: str) -> list[Burst]:
        return [burst for burst in bursts if burst.lease.provider == name]

    def _aside(self, name: str) -> FailureRecord:
        health: Health = self._world.records.health.get(name, Health())
        return health.row(FailureKind.OFFER, OFFER) or FailureRecord(0)
