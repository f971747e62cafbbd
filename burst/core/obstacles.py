# SPDX-License-Identifier: MIT
"""What keeps nodes of a burst that are to go, or that no job uses, in words."""

from __future__ import annotations

from burst.core.housekeeping import AGAIN_S, housekeeping_of, last_signal
from burst.core.observation import ranks_of
from burst.core.provider_health import Outcome, Verb
from burst.core.world import World
from burst.model.burst import Burst
from burst.model.decision import clock_time
from burst.model.ranks import format_idset


def describe_obstacle(burst: Burst, world: World) -> str:
    """Return why a burst that is taken down is not gone yet, by what the lead shows.

    Empty where it waits for its provider alone. Jobs that Flux itself cannot end, such
    as some after a crash of its lead, count too: `flux jobs` shows them, `flux cancel`
    ends them. A job that has lost some of its nodes may well run on the others.
    """
    lead = world.lead
    assert lead is not None
    ranks = ranks_of(burst, world)
    if why := why_in_use(burst, ranks, world):
        return why
    call = world.calls.get(burst.id)
    online = lead.online & ranks
    gone = (Verb.REAP, Outcome.NOT_FOUND)
    if online and call is not None and (call.verb, call.outcome) == gone:
        return (
            f"nothing of it is left at the provider, but ranks {format_idset(online)}"
            " are online; see flux overlay status"
        )
    return ""


def why_in_use(burst: Burst, ranks: frozenset[int], world: World) -> str:
    """Return what keeps ranks of a burst that are to leave; empty if nothing does."""
    lead = world.lead
    assert lead is not None
    if open_ranks := ranks - lead.closed:
        return f"ranks {format_idset(open_ranks)} are not drained yet"
    busy = lead.in_use & ranks
    if up := busy & lead.online:
        # Also an instance of `flux batch` that goes on without nodes it has lost.
        return f"jobs still run on ranks {format_idset(up)}; they are not killed"
    if busy:
        return (
            f"Flux still has jobs on ranks {format_idset(busy)}, which are offline;"
            " flux cancel ends those that run on no other node"
        )
    return describe_cleaning(burst, ranks, world)


def describe_cleaning(burst: Burst, ranks: frozenset[int], world: World) -> str:
    """Return on which of these ranks an epilog or housekeeping runs; empty if none."""
    told = (
        _describe_epilogs(ranks, world),
        _describe_housekeeping(burst, ranks, world),
    )
    return "; ".join(filter(None, told))


def _describe_epilogs(ranks: frozenset[int], world: World) -> str:
    lead = world.lead
    assert lead is not None
    there = ranks & lead.epilogs.keys()
    if not there:
        return ""
    since = min(lead.epilogs[rank] for rank in there)
    last = max(lead.epilogs[rank] for rank in there)
    end = clock_time(last + world.deadlines.housekeeping)
    return (
        f"an epilog has been running on ranks {format_idset(there)} since"
        f" {clock_time(since)}, and its job has ended (flux jobs -f cleanup); a burst"
        f" that is taken down waits for it until {end} ([deadlines] housekeeping)"
    )


def _describe_housekeeping(burst: Burst, ranks: frozenset[int], world: World) -> str:
    there = {r: at for r, at in housekeeping_of(burst, world).items() if r in ranks}
    if not there:
        return ""
    since = min(there.values())
    told = (
        f"Flux's housekeeping has been running on ranks {format_idset(there)} since"
        f" {clock_time(since)}, and no job runs there (flux housekeeping list);"
    )
    sent, to = last_signal(burst, there)
    if to:
        return (
            f"{told} it was sent a signal at {clock_time(sent)}, and is sent SIGKILL at"
            f" {clock_time(sent + AGAIN_S)} if it has not ended"
        )
    end = clock_time(since + world.deadlines.housekeeping)
    return f"{told} it is ended at {end} ([deadlines] housekeeping)"
