# SPDX-License-Identifier: MIT
"""The truth about a burst from all sides, and the table that says what it means.

Our record, Flux's ranks, the provider's word (a MiniCluster, a cloud) can disagree in
every way. Each combination has a row; one without a row quarantines the burst.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

from burst.core.provider_health import Outcome, Verb
from burst.core.world import ABSENT_READS, Call, World
from burst.model.burst import Burst, Lease, State
from burst.provider import Failure, Phase


class Word(enum.Enum):
    """The provider's word on a burst."""

    UNREAD = "unread"
    """Not read, or not since it could have changed: nothing follows from it."""
    ABSENT = "absent"
    PENDING = "pending"
    RUNNING = "running"
    FAILED = "failed"
    ENDING = "ending"


class Ranks(enum.Enum):
    """How many of the burst's ranks the lead has online."""

    UNREAD = "unread"
    NONE = "none"
    SOME = "some"
    ALL = "all"


class Meaning(enum.Enum):
    """What a row says has happened."""

    WAIT = "nothing that changes the burst"
    STARTED = "all followers are started"
    JOINED = "all ranks are online"
    LOST = "a rank that was online is not"
    WHOLE = "all ranks are online again"
    BROKE = "the provider says that it failed"
    VANISHED = "the provider has nothing of it any more"
    ENDED = "the provider is deleting it without being asked"


_PHASES = {
    Phase.PENDING: Word.PENDING,
    Phase.RUNNING: Word.RUNNING,
    Phase.FAILED: Word.FAILED,
    Phase.ENDING: Word.ENDING,
}


MOVED = "it was made in another place than that of its provider"
"""What a reason begins with why a burst is in no reach of its provider."""


def moved(lease: Lease, places: Mapping[str, str]) -> str:
    """Return why a burst is in no reach of its provider, empty if it may be.

    A provider of that name elsewhere does not show it, and that says nothing.
    """
    place = places.get(lease.provider, "")
    if not place or not lease.place or place == lease.place:
        return ""
    return (
        f"{MOVED}: in {lease.place}, and provider {lease.provider} is now {place};"
        " set that provider's table as it was until the burst is gone"
    )


def is_in_reach(lease: Lease, world: World) -> bool:
    """Tell whether the provider of a burst is enabled, and where the burst was made."""
    return lease.provider in world.providers and not moved(lease, world.places)


def provider_word(burst: Burst, world: World) -> Word:
    """Return the provider's word, UNREAD unless it was given after our last call."""
    if moved(burst.lease, world.places):
        return Word.UNREAD
    view = world.providers.get(burst.lease.provider)
    if view is None or view.trouble or not view.read_at:
        return Word.UNREAD
    call = world.calls.get(burst.id)
    if call and not _settled(call, view.read_at):
        return Word.UNREAD
    status = view.statuses.get(burst.id)
    if status:
        return _PHASES[status.phase]
    enough = view.absent.get(burst.id, 0) >= ABSENT_READS
    return Word.ABSENT if enough else Word.UNREAD


def provider_words(burst: Burst, world: World) -> str:
    """Return what the provider says of how the burst comes on; empty for nothing.

    What it waits for itself is told by the last call, until that works.
    """
    view = world.providers.get(burst.lease.provider)
    status = view.statuses.get(burst.id) if view else None
    if status is not None and status.why:
        return status.why
    call = world.calls.get(burst.id)
    failing = (Outcome.TRANSIENT, Outcome.UNEXPECTED)
    return call.note if call and call.outcome in failing else ""


def lacks_capacity(burst: Burst, world: World) -> bool:
    """Tell whether the provider says that a burst failed for want of capacity."""
    view = world.providers.get(burst.lease.provider)
    status = view.statuses.get(burst.id) if view else None
    return status is not None and status.failure is Failure.CAPACITY


def ranks_of(burst: Burst, world: World) -> frozenset[int]:
    """Return the ranks that are still the burst's.

    A lead that was restarted with other hosts has some of them no more, or has other
    nodes there, its own perhaps. To those nothing may be done for a burst's sake.
    """
    hosts = world.identity.hosts
    lease = burst.lease
    return frozenset(
        rank
        for rank, host in zip(lease.ranks, lease.hosts, strict=False)
        if rank < len(hosts) and hosts[rank] == host
    )


def rank_count(burst: Burst, world: World) -> Ranks:
    """Return how many of the ranks that the burst should have are online."""
    if world.lead is None:
        return Ranks.UNREAD
    ranks = burst.expected or frozenset(burst.lease.ranks)
    online = world.lead.online & ranks & ranks_of(burst, world)
    if not online:
        return Ranks.NONE
    return Ranks.ALL if len(online) == len(ranks) else Ranks.SOME


def meaning(state: State, word: Word, ranks: Ranks) -> Meaning | None:
    """Look the combination up; None if the table has no row for it."""
    return _TABLE.get((state, word, ranks))


def _settled(call: Call, read_at: float) -> bool:
    """Tell whether the call was answered before the observation began."""
    done = call.outcome is Outcome.OK and call.done_at <= read_at
    return done or call.verb is Verb.REAP


_Rows = Iterable[tuple[tuple[Word, ...], tuple[Ranks, ...], Meaning]]
_ANY_WORD = tuple(Word)
_ANY_RANKS = tuple(Ranks)
_UP = (Ranks.SOME, Ranks.ALL)
_NOT_SEEN = (Ranks.UNREAD, Ranks.NONE)
_NOT_WHOLE = (Ranks.NONE, Ranks.SOME)
_ALIVE = (Word.UNREAD, Word.PENDING, Word.RUNNING)
_DEAD = ((Word.FAILED, Meaning.BROKE), (Word.ENDING, Meaning.ENDED))

_ROWS: dict[State, _Rows] = {
    # Nothing was asked yet, as asking is recorded first. If something shows all the
    # same, it is not from us, or the record is from another time: no row.
    State.NEW: [((Word.UNREAD, Word.ABSENT), _NOT_SEEN, Meaning.WAIT)],
    State.PROVISION: [
        # The lead's eyes are better than the provider's word.
        (_ANY_WORD, _UP, Meaning.STARTED),
        ((Word.RUNNING,), _NOT_SEEN, Meaning.STARTED),
        ((Word.UNREAD, Word.PENDING), _NOT_SEEN, Meaning.WAIT),
        *(((word,), _NOT_SEEN, what) for word, what in _DEAD),
        ((Word.ABSENT,), (Ranks.NONE,), Meaning.VANISHED),
        # Followers may be up at a lead that cannot be read.
        ((Word.ABSENT,), (Ranks.UNREAD,), Meaning.WAIT),
    ],
    State.JOIN: [
        (_ANY_WORD, (Ranks.ALL,), Meaning.JOINED),
        (_ANY_WORD, (Ranks.UNREAD,), Meaning.WAIT),
        (_ALIVE, _NOT_WHOLE, Meaning.WAIT),
        *(((word,), _NOT_WHOLE, what) for word, what in _DEAD),
        ((Word.ABSENT,), (Ranks.NONE,), Meaning.VANISHED),
        # It has nothing, and yet some are online: late to see, or lying. They join.
        ((Word.ABSENT,), (Ranks.SOME,), Meaning.WAIT),
    ],
    State.ONLINE: [
        # All are online: whatever the provider says, jobs can run.
        (_ANY_WORD, (Ranks.ALL,), Meaning.WHOLE),
        (_ANY_WORD, (Ranks.UNREAD,), Meaning.WAIT),
        # A restarted pod or a healed network brings it back; the deadline is rejoin.
        (_ALIVE, _NOT_WHOLE, Meaning.LOST),
        ((Word.ABSENT,), (Ranks.SOME,), Meaning.LOST),
        ((Word.ABSENT,), (Ranks.NONE,), Meaning.VANISHED),
        *(((word,), _NOT_WHOLE, what) for word, what in _DEAD),
    ],
    # What is being taken down goes on being taken down; only allocations matter.
    State.DRAIN: [(_ANY_WORD, _ANY_RANKS, Meaning.WAIT)],
    State.REAP: [(_ANY_WORD, _ANY_RANKS, Meaning.WAIT)],
    # If something of it shows again, that is an orphan's business.
    State.INACTIVE: [(_ANY_WORD, _ANY_RANKS, Meaning.WAIT)],
}

_TABLE: dict[tuple[State, Word, Ranks], Meaning] = {
    (state, word, ranks): what
    for state, rows in _ROWS.items()
    for words, counts, what in rows
    for word in words
    for ranks in counts
}
