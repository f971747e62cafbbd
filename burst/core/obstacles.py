# SPDX-License-Identifier: MIT
"""What keeps nodes of a burst from being deleted, and the deadlines for it.

Flux's housekeeping runs after a job, and its nodes get no job meanwhile but still cost
money. Flux does not free them before it has ended, and has no deadline for it
(flux-housekeeping(1)). After 10 minutes (`DeadlineSettings.housekeeping`) it is sent
SIGTERM, and SIGKILL from then on. A burst that is taken down does not wait for
housekeeping that even SIGKILL does not end.

An epilog cannot be sent signals: a burst that is taken down does not wait for an epilog
longer than the same deadline. An epilog that Flux runs on the nodes of its job ends
with these nodes.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Set

import msgspec

from burst.config import DeadlineSettings
from burst.core.actions import DrainBurst, EndHousekeeping
from burst.core.observation import ranks_of
from burst.core.provider_calls import is_gone
from burst.core.records import Transaction
from burst.core.world import World
from burst.model.burst import Burst, BurstId, State
from burst.model.decision import exact_moment, name_ranks
from burst.model.fsd import format_fsd
from burst.model.lead import LeadView
from burst.model.ranks import format_idset, parse_idset

AGAIN_S = 60.0
"""Seconds until housekeeping that was sent a signal and still runs is sent another."""


def end_late_housekeeping(tx: Transaction, burst: Burst) -> None:
    """Send a signal to housekeeping that runs for too long on the ranks of a burst.

    Housekeeping that was sent SIGTERM before and has not ended is sent SIGKILL.
    """
    limit = tx.settings.deadlines.housekeeping
    known = housekeeping_of(burst, tx.world)
    late = {rank for rank, began in known.items() if tx.now - began > limit}
    why = f"it has run for longer than {format_fsd(limit)}"
    sent, again = last_signal(burst, known)
    if again and tx.now - sent < AGAIN_S:
        return
    if again:
        _send(tx, burst, late | again, signal.SIGKILL, "it has not ended")
        return
    if late:
        _send(tx, burst, late, signal.SIGTERM, why)


def end_housekeeping_now(tx: Transaction, burst_id: BurstId) -> None:
    """Send SIGTERM to housekeeping on a burst's ranks; later ticks send SIGKILL."""
    burst = tx.bursts[burst_id]
    if there := housekeeping_of(burst, tx.world).keys():
        _send(tx, burst, there, signal.SIGTERM, "burst down --force")


def housekeeping_of(burst: Burst, world: World) -> Mapping[int, float]:
    """Return the ranks of a burst on which only housekeeping runs, and since when."""
    found = world.lead.housekeeping if world.lead is not None else {}
    ours = ranks_of(burst, world)
    return {rank: began for rank, began in found.items() if rank in ours}


def last_signal(
    burst: Burst, known: Mapping[int, float]
) -> tuple[float, frozenset[int]]:
    """Return when housekeeping was last sent a signal, and on which ranks it goes on.

    `known` has since when it runs on each rank; if it began after the signal, it was
    not sent one.
    """
    asked = [e for e in burst.events if e.name == "housekeeping-kill"]
    if not asked:
        return 0.0, frozenset()
    told, last = parse_idset(asked[-1].context["ranks"]), asked[-1].timestamp
    return last, frozenset(r for r, at in known.items() if at < last and r in told)


def _send(
    tx: Transaction, burst: Burst, to: Set[int], signum: signal.Signals, why: str
) -> None:
    ranks = frozenset(to)
    context = {"ranks": format_idset(ranks), "note": f"{why}; it is sent {signum.name}"}
    tx.record(burst.id, "housekeeping-kill", context)
    tx.actions.append(EndHousekeeping(ranks, int(signum)))


def holding_ranks(
    ranks: frozenset[int], lead: LeadView, deadlines: DeadlineSettings, now: float
) -> frozenset[int]:
    """Return the ranks that must not be deleted yet, as something uses them.

    That is a job, an epilog before its deadline, or housekeeping until 2 * AGAIN_S
    after its deadline: by then it was sent SIGTERM and SIGKILL.
    """
    last = now - deadlines.housekeeping - 2 * AGAIN_S
    stuck = {rank for rank, began in lead.housekeeping.items() if began < last}
    late = now - deadlines.housekeeping
    stuck |= {rank for rank, began in lead.epilogs.items() if began < late}
    return lead.allocated & ranks - stuck


def drain_until_empty(tx: Transaction, drain: DrainBurst, since: float) -> bool:
    """Drain ranks; tell whether nothing runs or can start there any more.

    `since` is when they began to leave.
    """
    lead = tx.lead
    if open_ranks := drain.ranks - lead.closed:
        tx.actions.append(msgspec.structs.replace(drain, ranks=open_ranks))
        return False
    busy = holding_ranks(drain.ranks, lead, tx.settings.deadlines, tx.now)
    if tx.now - since > tx.settings.deadlines.rejoin:
        # Nothing runs on a node whose broker is gone. Flux ends its jobs, except an
        # instance of `flux batch` that continues without the node and, in flux-core
        # 0.88, a job whose start was on its way to that broker. These do not use the
        # offline ranks any more, so the burst does not wait for them.
        busy &= lead.online
    return not busy


def describe_obstacle(burst: Burst, world: World) -> str:
    """Return why a burst that is taken down is not gone yet, from what the lead shows.

    Empty if it only waits for its provider. Jobs that Flux itself does not end, such as
    some after a crash of the lead, count, too: `flux jobs` shows them, `flux cancel`
    ends them. A job that has lost some of its nodes may still run on the others.
    """
    lead = world.read_lead()
    ranks = ranks_of(burst, world)
    if why := why_in_use(burst, ranks, world):
        return why
    online = lead.online & ranks
    if online and is_gone(burst, world):
        return (
            "the provider does not show it any more, but the lead shows"
            f" {name_ranks(format_idset(online))} as online; see flux overlay status"
        )
    return ""


def describe_delay(burst: Burst, world: World) -> str:
    """Return what a burst that is taken down waits for, its provider included."""
    if (why := describe_obstacle(burst, world)) or burst.state is not State.REAP:
        return why
    call = world.calls.get(burst.id)
    return (call and call.told) or "the provider is still deleting it"


def why_in_use(burst: Burst, ranks: frozenset[int], world: World) -> str:
    """Return what keeps leaving ranks of a burst in use; empty if nothing does."""
    lead = world.read_lead()
    if open_ranks := ranks - lead.closed:
        return f"waiting for {name_ranks(format_idset(open_ranks))} to be drained"
    busy = lead.in_use & ranks
    if up := busy & lead.online:
        # Including an instance of `flux batch` that continues without its lost nodes.
        where = name_ranks(format_idset(up))
        return f"jobs still run on {where}; they are not killed"
    if busy:
        return (
            f"Flux still has jobs on offline {name_ranks(format_idset(busy))};"
            " flux cancel ends those that run on no other node"
        )
    return describe_cleaning(burst, ranks, world)


def describe_cleaning(burst: Burst, ranks: frozenset[int], world: World) -> str:
    """Return which epilog or housekeeping runs on these ranks; empty if none does."""
    told = (
        _describe_epilogs(ranks, world),
        _describe_housekeeping(burst, ranks, world),
    )
    return "; ".join(filter(None, told))


def _describe_epilogs(ranks: frozenset[int], world: World) -> str:
    lead = world.read_lead()
    there = ranks & lead.epilogs.keys()
    if not there:
        return ""
    since = min(lead.epilogs[rank] for rank in there)
    last = max(lead.epilogs[rank] for rank in there)
    end = exact_moment(last + world.deadlines.housekeeping)
    return (
        f"an epilog has been running on {name_ranks(format_idset(there))} since"
        f" {exact_moment(since)}, and its job has ended (flux jobs -f cleanup); a burst"
        f" that is taken down waits for it until {end}"
    )


def _describe_housekeeping(burst: Burst, ranks: frozenset[int], world: World) -> str:
    there = {r: at for r, at in housekeeping_of(burst, world).items() if r in ranks}
    if not there:
        return ""
    since = min(there.values())
    told = (
        f"Flux's housekeeping has been running on {name_ranks(format_idset(there))}"
        f" since {exact_moment(since)}, and no job runs there (flux housekeeping list);"
    )
    sent, to = last_signal(burst, there)
    if to:
        return (
            f"{told} housekeeping was sent a signal at {exact_moment(sent)}, and is"
            f" sent SIGKILL at {exact_moment(sent + AGAIN_S)} if it has not ended"
        )
    end = exact_moment(since + world.deadlines.housekeeping)
    return f"{told} housekeeping is ended at {end}"
