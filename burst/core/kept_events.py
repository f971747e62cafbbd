# SPDX-License-Identifier: MIT
"""Chooses the events of a burst that its record keeps, so that its size is bounded.

Replaying the kept events yields the same burst as replaying all events.
"""

from __future__ import annotations

import msgspec

from burst.model.event import LONGEST_NOTE, Event, cut
from burst.model.ranks import format_idset, parse_idset

# The earlier events that each event replaces (_VOIDS), by groups of names.
_IDLENESS = frozenset({"busy", "idle"})
_LOSS = frozenset({"lost", "back"})
_SIZES = frozenset({"grow", "grown", "shrink", "shrink-start", "shrunk"})
_QUARANTINE = frozenset({"quarantine", "unquarantine"})
_VOIDS: dict[str, frozenset[str]] = {
    **dict.fromkeys(_IDLENESS, _IDLENESS),
    "lost": _LOSS,
    # Followers that are back are not reclaimed, so "reclaimed" must not be kept any
    # longer. Why they were lost is kept, as jobs were there.
    "back": frozenset({"back", "reclaimed"}),
    **dict.fromkeys(_QUARANTINE, _QUARANTINE),
    # A job that runs on a burst ends its idleness; being assigned to it does not.
    "job-start": _IDLENESS,
    # Each of these includes what earlier ones say, and nodes that come end idleness.
    # Some sizes that were reached are still kept, for people (_REACHED).
    **dict.fromkeys(("grow", "grown"), _SIZES | _IDLENESS | {"overdue"}),
    **dict.fromkeys(("shrink", "shrunk"), _SIZES | {"overdue"}),
    "shrink-start": frozenset({"shrink-start", "overdue"}),
    "overdue": frozenset({"overdue"}),
    "outlived": frozenset({"outlived"}),
    "unread": frozenset({"unread"}),
    "retry": frozenset({"retry"}),
    "housekeeping-kill": frozenset({"housekeeping-kill"}),
    "reclaimed": frozenset({"reclaimed"}),
}

# How many events with sizes that were reached are kept for people besides the last one.
_REACHED = frozenset({"grown", "shrunk"})
_KEPT_SIZES = 3
_STAGES = frozenset({"online", "grown"})
# Events about ranks: the first event of a name is kept, and one for the ranks of all
# others. Of "joined" one more is kept until the burst is online, and for each growth.
_JOINT = {"rank-drain", "undrain"}

# Not kept as events: their effect is in Burst.times and Burst.sums.
_OF_JOBS = {
    *("assign", "job-hold", "job-release", "job-start", "job-leave", "job-finish"),
}


def cut_note(event: Event) -> Event:
    """Return the event with its note cut to LONGEST_NOTE."""
    note = event.context.get("note")
    if not isinstance(note, str) or len(note) <= LONGEST_NOTE:
        return event
    return msgspec.structs.replace(event, context={**event.context, "note": cut(note)})


def kept(events: tuple[Event, ...], event: Event) -> tuple[Event, ...]:
    """Return the events that are kept after one more event.

    These are a few of each name, so that a record does not grow while its burst lives.
    """
    name = event.name
    void = _VOIDS.get(name, frozenset())
    if any(old.name in void for old in events):
        reached = [old for old in events if old.name in _REACHED][-_KEPT_SIZES:]
        events = tuple(
            old
            for old in events
            if old.name not in void or any(old is size for size in reached)
        )
    if name in _OF_JOBS:
        return events
    if name == "submit":
        event = msgspec.structs.replace(event, context={})
    if name in _JOINT:
        return tuple(_join(events, event))
    return tuple(_join_by_stage((*events, event)))


def _join(events: tuple[Event, ...], event: Event) -> list[Event]:
    """Return the events, with all but the first of this event's name united in one."""
    same = [old for old in events if old.name == event.name]
    if len(same) < 2:
        return [*events, event]
    return [*(old for old in events if old is not same[1]), _united(same[1], event)]


def _join_by_stage(events: tuple[Event, ...]) -> list[Event]:
    """Return the events, with "joined" events united in one for each stage.

    The very first "joined" event is kept by itself.
    """
    found: list[Event] = []
    joined, is_first = None, True
    for event in events:
        told = event
        if event.name in _STAGES:
            joined = None
        elif event.name == "joined" and is_first:
            is_first = False
        elif event.name == "joined":
            if joined is not None:
                found = [old for old in found if old is not joined]
                told = _united(joined, event)
            joined = told
        found.append(told)
    return found


def _united(one: Event, later: Event) -> Event:
    ranks = parse_idset(one.context["ranks"]) | parse_idset(later.context["ranks"])
    return Event(later.timestamp, later.name, {"ranks": format_idset(ranks)})
