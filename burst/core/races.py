# SPDX-License-Identifier: MIT
"""Which of two bursts that are raced keeps the jobs; the other is not needed any more.

Both are on record with the same `Lease.race`, and the jobs are assigned to both, until
one of them is online: so after a crash of the daemon the race goes on. Where the other
has failed, or is being taken down, what is left goes on alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from burst.core.placement.capacity import is_up, usable_nodes
from burst.core.records import ASSIGNABLE, Transaction
from burst.model.burst import RACED, Burst, State
from burst.model.jobid import format_f58
from burst.model.lead import LeadView


def settle_races(tx: Transaction, lead: LeadView) -> None:
    """Give the jobs of each race that is decided to one burst, and end the other."""
    for members in _races(tx.bursts.values()):
        winner, why = _decide(members, lead)
        if winner is None:
            continue
        if winner.racing:
            tx.record(winner.id, "raced", {"note": why})
        for burst in members:
            if burst.racing and burst is not winner:
                _lose(tx, burst, winner, lead)


def race_words(burst: Burst, bursts: Sequence[Burst]) -> str:
    """Return with what a burst of a job is raced; nothing if with none of these."""
    others = [
        f"{other.id} of {other.lease.provider}"
        for other in bursts
        if burst.racing and other.lease.race == burst.lease.race and other is not burst
    ]
    return f"; it is raced with {', '.join(others)}" if others else ""


def _races(bursts: Iterable[Burst]) -> list[list[Burst]]:
    """Return the bursts of each race that is not decided, without those that end."""
    races: dict[str, list[Burst]] = {}
    for burst in bursts:
        if burst.lease.race and burst.state in ASSIGNABLE and not burst.quarantined:
            races.setdefault(burst.lease.race, []).append(burst)
    return [race for race in races.values() if any(each.racing for each in race)]


def _decide(members: list[Burst], lead: LeadView) -> tuple[Burst | None, str]:
    """Return the burst that keeps the jobs and why, None while that is open.

    The first that is online with all its nodes. Of two in one tick the one with the
    most nodes, then the cheaper, then the one that was planned first.
    """
    decided = [burst for burst in members if not burst.racing]
    if decided:
        # The other was in quarantine when this one went on alone.
        return decided[0], ""
    if not any(burst.jobs for burst in members):
        return None, ""
    if len(members) == 1:
        return members[0], "the other burst of its race has ended; it goes on alone"

    def rank(burst: Burst) -> tuple[int, bool, float, float, bool]:
        lease, nodes = burst.lease, usable_nodes(burst, lead)
        return -nodes, not is_up(burst), lease.price, lease.fee, lease.id != lease.race

    started = [burst for burst in members if burst.started]
    if started:
        return min(started, key=rank), "a job runs on it, so it has won its race"
    online = [burst for burst in members if burst.state is State.ONLINE]
    whole = [
        burst
        for burst in online
        if is_up(burst) and usable_nodes(burst, lead) == burst.lease.nodes
    ]
    if not whole and len(online) < len(members):
        return None, ""
    winner = min(whole or online, key=rank)
    return winner, "it has won its race: it was online first, and keeps the jobs"


def _lose(tx: Transaction, burst: Burst, winner: Burst, lead: LeadView) -> None:
    """Have the jobs leave a burst, and end it before it runs anything.

    One on which something runs already stays, as any burst whose jobs have left it.
    """
    lease = winner.lease
    note = f"raced: {lease.id} of {lease.provider} has won"
    for job in sorted(burst.jobs - burst.started):
        tx.record(burst.id, "job-leave", {"id": format_f58(job), "note": note})
    if burst.started or not lead.allocated.isdisjoint(burst.lease.ranks):
        stays = f"{note}, but something runs here, which goes on to its end"
        tx.record(burst.id, "raced", {"note": stays})
    else:
        tx.fail(burst.id, RACED, note)
