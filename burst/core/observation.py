# SPDX-License-Identifier: MIT
"""The truth table of bursts that join the lead, and the facts that it needs.

The record, Flux's ranks and what the provider shows (a MiniCluster, a cloud) can
disagree in every way. The table has a row for each combination; a combination without
a row quarantines the burst.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping

from burst.core.provider_health import ENDS_BURST, Outcome, Verb
from burst.core.world import ABSENT_READS, LastCall, World
from burst.model.burst import CAPACITY, RECLAIMED, SPEC, Burst, Lease, State
from burst.provider import BurstStatus, Failure, Phase


class ProviderPhase(enum.Enum):
    """What the provider shows of a burst."""

    UNREAD = "unread"
    """Not read, or not read since the last call: nothing follows from it."""
    ABSENT = "absent"
    PENDING = "pending"
    RUNNING = "running"
    FAILED = "failed"
    ENDING = "ending"


class RanksOnline(enum.Enum):
    """How many of the burst's ranks the lead has online."""

    UNREAD = "unread"
    NONE = "none"
    SOME = "some"
    ALL = "all"


class Observation(enum.Enum):
    """What the facts about a burst of either kind mean."""

    WAIT = "nothing that changes the burst"
    STARTED = "all followers are started"
    ONLINE = "all ranks are online, or its own instance is"
    LOST = "a rank that was online is not"
    WHOLE = "all ranks are online again"
    FINISHED = "the program of an isolated burst has ended"
    BROKE = "the provider reports that it failed"
    VANISHED = "the provider does not show it any more"
    ENDED = "the provider is deleting it without having been told to"


FAILURES = {
    Observation.BROKE: "the provider reports a failure",
    Observation.VANISHED: "the provider does not show it any more, and burst did not"
    " delete it",
    Observation.ENDED: "it is being deleted, and not by burst",
}
"""Observations that end a burst, and the reason that is recorded if the provider gives
none."""

_ADDED = re.compile(r" \([^)]*\)")

_PHASES = {
    Phase.PENDING: ProviderPhase.PENDING,
    Phase.RUNNING: ProviderPhase.RUNNING,
    Phase.FAILED: ProviderPhase.FAILED,
    Phase.ENDING: ProviderPhase.ENDING,
}


def why_out_of_reach(lease: Lease, places: Mapping[str, str]) -> str:
    """Return why the provider of a burst cannot reach it; empty if it may reach it.

    A provider of the same name that is set to another place does not show the burst;
    that does not mean that the burst has ended.
    """
    place = places.get(lease.provider, "")
    # Records of older versions lack what is in parentheses; see `Provider.place`.
    if not place or lease.place in ("", place, _ADDED.sub("", place)):
        return ""
    return (
        f"it was made in {lease.place}, and provider {lease.provider} is now set to"
        f" {place}; set the provider's table as it was until the burst is gone, and"
        " add a provider of another name for the new place (if the old one is gone for"
        " good, burst down --force forgets the burst)"
    )


def is_enabled(lease: Lease, world: World) -> bool:
    """Tell whether a burst's provider is enabled, also where only records are read."""
    return lease.provider in world.providers or lease.provider in world.places


def is_in_reach(lease: Lease, world: World) -> bool:
    """Tell whether a burst's provider is enabled and still set to the burst's place."""
    return lease.provider in world.providers and not why_out_of_reach(
        lease, world.places
    )


def status_of(burst: Burst, world: World) -> BurstStatus | None:
    """Return the last status of a burst from its provider; None if there is none."""
    view = world.providers.get(burst.lease.provider)
    return view.statuses.get(burst.id) if view else None


def provider_phase(burst: Burst, world: World) -> ProviderPhase:
    """Return what the provider shows; UNREAD if it was not read since the last call."""
    if why_out_of_reach(burst.lease, world.places):
        return ProviderPhase.UNREAD
    view = world.providers.get(burst.lease.provider)
    if view is None or view.trouble or not view.read_at:
        return ProviderPhase.UNREAD
    call = world.calls.get(burst.id)
    if call and not _settled(call, view.read_at):
        return ProviderPhase.UNREAD
    status = view.statuses.get(burst.id)
    if status:
        # Of a burst that is resized, or of which only a part joined and is kept.
        others = burst.expected and burst.expected < frozenset(burst.lease.ranks)
        beside = others and status.phase is Phase.FAILED
        if beside and not failed_before(burst, status):
            # Only followers besides those expected have failed; the burst goes on.
            return ProviderPhase.PENDING
        return _PHASES[status.phase]
    enough = view.absent.get(burst.id, 0) >= ABSENT_READS
    return ProviderPhase.ABSENT if enough else ProviderPhase.UNREAD


def failed_before(burst: Burst, status: BurstStatus) -> bool:
    """Tell whether the failure of a burst is one of the ranks that it should have.

    Else it is that of ranks that come, leave or never joined. Those that have joined do
    not lack capacity, although a provider may show all followers as failed then.
    """
    if status.failure is Failure.CAPACITY:
        return False
    hosts = zip(burst.lease.ranks, burst.lease.hosts, strict=True)
    own = {host for rank, host in hosts if rank in burst.expected}
    failed = {f.host for f in status.followers if f.phase is Phase.FAILED}
    return bool(failed & own) or not failed


def is_made(burst: Burst, world: World) -> bool:
    """Tell whether the last call was a `provision` that succeeded.

    Until one does, `provision` is called again.
    """
    call = world.calls.get(burst.id)
    if call is None:
        return False
    return (call.verb, call.outcome) == (Verb.PROVISION, Outcome.OK)


def reported_message(burst: Burst, world: World) -> str:
    """Return the provider's message about a burst, without errors of its calls."""
    status = status_of(burst, world)
    return status.why if status is not None else ""


def provider_message(burst: Burst, world: World) -> str:
    """Return the provider's message about a burst; empty if there is none.

    It is what `observe` reports, and the error of the last call, if that has failed.
    """
    reported, call = reported_message(burst, world), world.calls.get(burst.id)
    failing = (Outcome.TRANSIENT, Outcome.UNEXPECTED, *ENDS_BURST)
    if call is None or call.outcome not in failing:
        return reported
    if not reported:
        return call.told
    # The last call for an online burst is over, unless the burst is resized.
    over = burst.state is State.ONLINE and burst.resize is None
    return reported if over or call.note in reported else f"{reported}; {call.told}"


def failure_kind(burst: Burst, world: World) -> str:
    """Return the type of exception for a burst that its provider shows as failed."""
    status = status_of(burst, world)
    failure = status.failure if status else Failure.OTHER
    if burst.reclaimed or failure is Failure.RECLAIMED:
        return RECLAIMED
    return {Failure.CAPACITY: CAPACITY, Failure.REFUSED: SPEC}.get(failure, "failed")


def failure_note(burst: Burst, world: World, what: Observation) -> str:
    """Return why a burst failed, in the provider's words if it gives any."""
    status = status_of(burst, world)
    told = "" if what is Observation.ENDED or status is None else status.why
    return burst.reclaimed or told or FAILURES[what]


def ranks_of(burst: Burst, world: World) -> frozenset[int]:
    """Return the ranks that still belong to the burst.

    A lead that was restarted with another hosts list may have other nodes at the
    burst's ranks, or none. These must not be drained for the burst.
    """
    hosts = world.identity.hosts
    lease = burst.lease
    return frozenset(
        rank
        for rank, host in zip(lease.ranks, lease.hosts, strict=False)
        if rank < len(hosts) and hosts[rank] == host
    )


def rank_count(burst: Burst, world: World) -> RanksOnline:
    """Return how many of the ranks that the burst should have are online."""
    if world.lead is None:
        return RanksOnline.UNREAD
    ranks = burst.expected or frozenset(burst.lease.ranks)
    online = world.lead.online & ranks & ranks_of(burst, world)
    if not online:
        return RanksOnline.NONE
    return RanksOnline.ALL if len(online) == len(ranks) else RanksOnline.SOME


def look_up(
    state: State, phase: ProviderPhase, ranks: RanksOnline
) -> Observation | None:
    """Return the meaning of a combination; None if the table has no row for it."""
    return _TABLE.get((state, phase, ranks))


def _settled(call: LastCall, read_at: float) -> bool:
    """Tell whether the observation shows the effect of the call, or need not."""
    done = call.outcome is Outcome.OK and call.done_at <= read_at
    return done or call.verb in (Verb.REAP, Verb.RESIZE)


_Rows = Iterable[tuple[tuple[ProviderPhase, ...], tuple[RanksOnline, ...], Observation]]
_ANY_PHASE = tuple(ProviderPhase)
_ANY_RANKS = tuple(RanksOnline)
_NOT_SEEN = (RanksOnline.UNREAD, RanksOnline.NONE)
_NOT_WHOLE = (RanksOnline.NONE, RanksOnline.SOME)
_NOT_ALL = (RanksOnline.UNREAD, *_NOT_WHOLE)
_ALIVE = (ProviderPhase.UNREAD, ProviderPhase.PENDING, ProviderPhase.RUNNING)
_NOT_ALIVE = (ProviderPhase.ABSENT, ProviderPhase.FAILED, ProviderPhase.ENDING)
_DEAD = (
    (ProviderPhase.FAILED, Observation.BROKE),
    (ProviderPhase.ENDING, Observation.ENDED),
)

_ROWS: dict[State, _Rows] = {
    # The provider was not called yet: a call is recorded before it is made. If
    # something shows, another has made it, or the record is an old one: no row.
    State.NEW: [
        ((ProviderPhase.UNREAD, ProviderPhase.ABSENT), _NOT_SEEN, Observation.WAIT)
    ],
    State.PROVISION: [
        # Ranks that are all online prove more than what the provider shows. If only
        # some are, the others may still wait for nodes.
        (_ANY_PHASE, (RanksOnline.ALL,), Observation.STARTED),
        ((ProviderPhase.RUNNING,), _NOT_ALL, Observation.STARTED),
        ((ProviderPhase.UNREAD, ProviderPhase.PENDING), _NOT_ALL, Observation.WAIT),
        *(((phase,), _NOT_WHOLE, what) for phase, what in _DEAD),
        ((ProviderPhase.ABSENT,), (RanksOnline.NONE,), Observation.VANISHED),
        # Absent at the provider, but some ranks are online: its API is late.
        ((ProviderPhase.ABSENT,), (RanksOnline.SOME,), Observation.WAIT),
        # Followers may be up at a lead that cannot be read.
        (_NOT_ALIVE, (RanksOnline.UNREAD,), Observation.WAIT),
    ],
    State.JOIN: [
        (_ANY_PHASE, (RanksOnline.ALL,), Observation.ONLINE),
        (_ANY_PHASE, (RanksOnline.UNREAD,), Observation.WAIT),
        (_ALIVE, _NOT_WHOLE, Observation.WAIT),
        *(((phase,), _NOT_WHOLE, what) for phase, what in _DEAD),
        ((ProviderPhase.ABSENT,), (RanksOnline.NONE,), Observation.VANISHED),
        # Absent at the provider, but some ranks are online: its API is late.
        ((ProviderPhase.ABSENT,), (RanksOnline.SOME,), Observation.WAIT),
    ],
    State.ONLINE: [
        # All are online: whatever the provider says, jobs can run.
        (_ANY_PHASE, (RanksOnline.ALL,), Observation.WHOLE),
        (_ANY_PHASE, (RanksOnline.UNREAD,), Observation.WAIT),
        # A restarted pod or a healed network brings it back. JoinedBehaviour fails the
        # burst after 2 minutes.
        (_ALIVE, _NOT_WHOLE, Observation.LOST),
        ((ProviderPhase.ABSENT,), (RanksOnline.SOME,), Observation.LOST),
        ((ProviderPhase.ABSENT,), (RanksOnline.NONE,), Observation.VANISHED),
        *(((phase,), _NOT_WHOLE, what) for phase, what in _DEAD),
    ],
    # The burst is being taken down whatever is seen; only allocations matter. But jobs
    # run on it to their end, and their users are told what took their nodes.
    State.DRAIN: [
        (_ANY_PHASE, (RanksOnline.ALL,), Observation.WHOLE),
        (_ANY_PHASE, (RanksOnline.UNREAD,), Observation.WAIT),
        (_ANY_PHASE, _NOT_WHOLE, Observation.LOST),
    ],
    State.REAP: [(_ANY_PHASE, _ANY_RANKS, Observation.WAIT)],
    # If a resource of it shows again, that is an orphan.
    State.INACTIVE: [(_ANY_PHASE, _ANY_RANKS, Observation.WAIT)],
}

_TABLE: dict[tuple[State, ProviderPhase, RanksOnline], Observation] = {
    (state, phase, ranks): what
    for state, rows in _ROWS.items()
    for phases, counts, what in rows
    for phase in phases
    for ranks in counts
}
