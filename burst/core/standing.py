# SPDX-License-Identifier: MIT
"""Verdicts that stand: what was refused on grounds that have not changed.

At a site where thousands of jobs wait for what cannot be had, nearly all of a tick
would go into refusing them again. A refused job that is held is not looked at before
the job itself, or something that its refusal rests on, is another.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence

import msgspec

from burst.config import Settings
from burst.core.draft import Draft
from burst.core.limits import Health
from burst.core.slots import RankSlot, free_slots
from burst.core.world import World
from burst.model.burst import Burst, BurstId, State
from burst.model.hold import HoldState
from burst.model.jobid import JobId
from burst.model.lead import JobView, LeadIdentity
from burst.model.reason import Reason, Verdict
from burst.model.shape import Shape

_REFUSED = (
    Reason.NO_SLOTS,
    Reason.NO_OFFERS,
    Reason.NO_ADDRESS,
    Reason.TOO_LARGE,
    Reason.OVER_LIMIT,
    Reason.NEVER_FITS,
    Reason.EXCLUDED,
    Reason.TURNED_DOWN,
)


class Stage(enum.Enum):
    """What a live burst has to give."""

    COMING = "coming"
    UP = "up"
    GOING = "going"


class Grounds(msgspec.Struct, frozen=True, kw_only=True):
    """All that a refusal rests on, beside the job and the time."""

    health: Mapping[str, Health]
    settings: Settings
    identity: LeadIdentity
    slots: Sequence[RankSlot]
    offers: Mapping[str, object]
    free_slots: frozenset[str]
    bursts: Mapping[BurstId, tuple[Stage, frozenset[JobId]]]
    """Live ones, and the jobs that will still take nodes of each."""
    free: Mapping[int, Shape]
    """What is free of the ranks that can run jobs: our own, and those of bursts."""

    def no_better(self, before: Grounds) -> bool:
        """Tell whether nothing can be had now that could not be had before."""
        return (
            self.health == before.health
            and self.settings is before.settings
            and self.identity is before.identity
            and self.slots is before.slots
            and self.offers == before.offers
            and self.free_slots <= before.free_slots
            and all(self._gives_no_more(*burst) for burst in before.bursts.items())
            and all(
                rank in before.free and before.free[rank].holds(shape)
                for rank, shape in self.free.items()
            )
        )

    def _gives_no_more(
        self, burst: BurstId, was: tuple[Stage, frozenset[JobId]]
    ) -> bool:
        """Tell that of a burst; one that is gone gives back its nodes and its slot."""
        now = self.bursts.get(burst)
        return now is not None and (now == was or now[0] is Stage.GOING)


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The refusals of one tick, for the next."""

    grounds: Grounds
    until: float
    """Then a time runs out on which some of them rest."""
    jobs: Mapping[JobId, tuple[JobView, Verdict]]


def grounds_of(draft: Draft, world: World, settings: Settings) -> Grounds:
    """Return the grounds on which a tick decides, before it changed anything."""
    lead = world.lead
    assert lead is not None
    books = draft.books()
    live = books.live
    usable = lead.online - lead.torpid - lead.excluded - lead.drained.keys()
    open_slots = free_slots(world.slots, live, lead, books.kept_slots)
    return Grounds(
        health=books.health,
        settings=settings,
        identity=world.identity,
        slots=world.slots,
        offers={name: view.offers for name, view in world.providers.items()},
        free_slots=frozenset(slot.name for slot in open_slots),
        bursts={
            burst.id: (_stage(burst), burst.jobs - burst.started) for burst in live
        },
        free={rank: lead.free[rank] for rank in usable if rank in lead.free},
    )


def _stage(burst: Burst) -> Stage:
    if burst.state is State.ONLINE:
        return Stage.UP
    going = burst.quarantined or burst.state in (State.DRAIN, State.REAP)
    return Stage.GOING if going else Stage.COMING


def still_standing(
    before: Standing | None, grounds: Grounds, now: float
) -> Mapping[JobId, tuple[JobView, Verdict]]:
    """Return the refusals that hold for jobs that are as they were."""
    if before is None or now >= before.until or not grounds.no_better(before.grounds):
        return {}
    return before.jobs


def stand(
    draft: Draft, world: World, grounds: Grounds, verdicts: Mapping[JobId, Verdict]
) -> Standing:
    """Return the refusals of this tick: of jobs that are held, and seen to be."""
    assert world.lead is not None
    jobs = world.lead.jobs
    holds = draft.holds
    refused = {
        job: (jobs[job], verdict)
        for job, verdict in verdicts.items()
        if verdict.reason in _REFUSED
        and (hold := holds.get(job)) is not None
        and hold.state is HoldState.HELD
    }
    return Standing(
        grounds=grounds, until=_next_change(grounds, draft.now), jobs=refused
    )


def _next_change(grounds: Grounds, now: float) -> float:
    times = [health.until for health in grounds.health.values()]
    for health in grounds.health.values():
        times += [offer.until for offer in health.offers.values()]
    return min((time for time in times if time > now), default=math.inf)
