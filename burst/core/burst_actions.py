# SPDX-License-Identifier: MIT
"""The active half of a burst's life: what to do with it in the state it is in."""

from __future__ import annotations

import math

from burst.config import Settings
from burst.core import isolated, provider_health
from burst.core.actions import DrainRanks, ProvisionBurst, ReapBurst, UndrainRanks
from burst.core.observation import is_in_reach, provider_message, ranks_of
from burst.core.placement.run_time import drain_time
from burst.core.placement.slots import DRAIN_TAG
from burst.core.provider_health import Outcome, Verb
from burst.core.records import Transaction
from burst.core.world import World, repeat_at
from burst.model.burst import Burst, Result, State
from burst.model.fsd import format_fsd
from burst.model.ranks import format_idset

# What followers that do not join, and whose provider has no more to say, may have.
_SILENT = (
    "nobody says why. A wrong address or port, or a wall between, shows as silence:"
    " burst doctor checks them"
)

_UP = (State.NEW, State.PROVISION, State.JOIN, State.ONLINE)
_NEEDLESS = "no job needs it any more"
# What an isolated burst may have that does not come up; nothing of ours is in its way.
_MUTE = "its provider does not say why"


def act_on_burst(
    tx: Transaction, burst: Burst, world: World, settings: Settings
) -> None:
    """Do what is due for one burst; nothing that rests on what could not be read."""
    if burst.lease.isolated:
        isolated.advance(tx, burst, world, settings)
    elif burst.state in _UP and len(ranks_of(burst, world)) < burst.lease.nodes:
        # Its followers know other ranks than the lead has by now.
        tx.fail(burst.id, "lost", "the lead has other hosts at its ranks by now")
    elif burst.state is State.NEW:
        tx.start_provision(burst.id)
    if tx.bursts[burst.id].state is burst.state:
        _stay(tx, burst, world, settings)
    burst = tx.bursts[burst.id]
    if burst.state is State.REAP and world.lead is not None:
        # In the tick in which it failed, too: its ranks are to get no job from now on.
        _reap(tx, burst, world, settings)


def _stay(tx: Transaction, burst: Burst, world: World, settings: Settings) -> None:
    """Do what is due for a burst in the state in which it is."""
    if burst.state is State.PROVISION:
        _provision(tx, burst, world, settings)
    elif world.lead is None:
        return
    elif burst.state is State.JOIN:
        _join(tx, burst, world, settings)
    elif burst.state is State.ONLINE and not burst.lease.isolated:
        _online(tx, burst, settings)
    elif burst.state is State.DRAIN:
        _drain(tx, burst, world, settings)
    elif burst.state is State.INACTIVE and burst.drained:
        _undrain(tx, burst, world)


def next_deadline(burst: Burst, settings: Settings) -> float:
    """Return when a waiting state of the burst ends; math.inf if none does."""
    limits_of = settings.deadlines
    entered = {
        State.PROVISION: burst.since + settings.provision_limit(burst.lease.provider),
        State.JOIN: burst.since + limits_of.join,
    }
    ends = [entered.get(burst.state, math.inf)]
    if burst.lease.isolated:
        return min([*ends, isolated.next_change(burst, settings)])
    if burst.state is State.ONLINE:
        ends.append(_drained_from(burst, settings))
    if burst.state is State.ONLINE and burst.idle_since is not None:
        ends.append(burst.idle_since + limits_of.idle)
    if burst.state is State.ONLINE and burst.lost_since is not None:
        ends.append(burst.lost_since + limits_of.rejoin)
    return min(ends)


def take_down(tx: Transaction, burst: Burst, note: str) -> None:
    """End a burst because a person said so, or because nobody needs it any more.

    What runs on it goes on to its end.
    """
    if burst.quarantined:
        burst = tx.record(burst.id, "acquit", {"note": note})
    if burst.state is State.ONLINE and not burst.lease.isolated:
        _begin_drain(tx, burst, Result.CANCELED, note)
    elif burst.state not in {State.DRAIN, State.REAP, State.INACTIVE}:
        tx.fail(burst.id, "canceled", note)


def drain_for_job(tx: Transaction, burst: Burst) -> None:
    """Drain an idle burst that is in the way of a job that waits.

    Its lease ends before the job would, and Flux must not start the job on it; or its
    rank slot is kept for the job.
    """
    if burst.state is State.ONLINE:
        note = "it makes way for a job that cannot use it as it is"
        _begin_drain(tx, burst, Result.COMPLETED, note)


def _provision(tx: Transaction, burst: Burst, world: World, settings: Settings) -> None:
    if not burst.jobs and burst.lease.userids:
        tx.fail(burst.id, "canceled", _NEEDLESS)
        return
    limit = settings.provision_limit(burst.lease.provider)
    if tx.now - burst.since > limit and world.lead is not None:
        why = provider_message(burst, world) or _MUTE
        note = f"not all followers were started within {format_fsd(limit)}: {why}"
        _give_up(tx, burst, note, settings)
        return
    if _may_ask(world, burst, Verb.PROVISION, tx):
        tx.actions.append(ProvisionBurst(burst.id))


def _join(tx: Transaction, burst: Burst, world: World, settings: Settings) -> None:
    assert world.lead is not None
    if not burst.jobs and burst.lease.userids:
        tx.fail(burst.id, "canceled", _NEEDLESS)
        return
    limit = settings.deadlines.join
    if tx.now - burst.since <= limit:
        return
    if burst.lease.isolated:
        note = f"its own instance was not up within {format_fsd(limit)}"
        _give_up(
            tx, burst, f"{note}: {provider_message(burst, world) or _MUTE}", settings
        )
        return
    online = world.lead.online.intersection(burst.lease.ranks)
    missing = [rank for rank in burst.lease.ranks if rank not in online]
    hosts = dict(zip(burst.lease.ranks, burst.lease.hosts, strict=True))
    names = ", ".join(hosts[rank] for rank in missing)
    if online and settings.plan.partial == "keep":
        context = {"ranks": format_idset(online), "missing": format_idset(missing)}
        tx.record(burst.id, "online", context)
        return
    note = (
        f"{len(online)} of {len(hosts)} nodes joined within {format_fsd(limit)};"
        f" missing {names}: {provider_message(burst, world) or _SILENT}"
    )
    _give_up(tx, burst, note, settings)


def _online(tx: Transaction, burst: Burst, settings: Settings) -> None:
    now, deadlines = tx.now, settings.deadlines
    if burst.lost_since is not None and now - burst.lost_since > deadlines.rejoin:
        note = f"ranks were lost and not back within {format_fsd(deadlines.rejoin)}"
        tx.fail(burst.id, "lost", note)
    elif _is_needless(burst):
        # Its jobs started elsewhere, ended or were canceled. Who would come for it may
        # not come at all, and nobody has shown a wish for it.
        _begin_drain(tx, burst, Result.CANCELED, _NEEDLESS)
    elif burst.idle_since is not None and now - burst.idle_since > deadlines.idle:
        note = f"idle for {format_fsd(deadlines.idle)}"
        _begin_drain(tx, burst, Result.COMPLETED, note)
    elif now > _drained_from(burst, settings):
        ahead = burst.lease.end - _drained_from(burst, settings)
        note = f"its lease ends; it is drained {format_fsd(round(ahead))} before"
        _begin_drain(tx, burst, Result.COMPLETED, note)
        if burst.lease.userids and not burst.served:
            # It came up too late for any job, and so would the next.
            _hold_against(tx, burst, settings)


def _is_needless(burst: Burst) -> bool:
    """Tell whether an online burst was made for jobs, and never had to serve any."""
    idle = burst.idle_since is not None
    return idle and not burst.served and bool(burst.lease.userids)


def _drained_from(burst: Burst, settings: Settings) -> float:
    """Return when it is drained whoever needs it, as its lease ends."""
    lease = burst.lease
    return drain_time(lease.created, lease.end, settings.deadlines.drain)


def _drain(tx: Transaction, burst: Burst, world: World, settings: Settings) -> None:
    ranks = ranks_of(burst, world)
    if _quiet(tx, burst, world):
        tx.record(burst.id, "drained", {"ranks": format_idset(ranks)})
        return
    assert world.lead is not None
    busy = world.lead.allocated & ranks
    limit = settings.deadlines.drain
    what = (
        f"jobs still run on ranks {format_idset(busy)}" if busy else "not drained yet"
    )
    _report_overdue(tx, burst, limit, f"drain: {what}; they are not killed")


def _reap(tx: Transaction, burst: Burst, world: World, settings: Settings) -> None:
    lead = world.lead
    assert lead is not None
    call = world.calls.get(burst.id)
    gone = call is not None and call.outcome is Outcome.NOT_FOUND
    ranks = ranks_of(burst, world)
    online = lead.online & ranks
    if gone and not online:
        # The only way to INACTIVE: the provider confirmed, and the lead agrees.
        tx.record(burst.id, "reaped", {})
        return
    limit = settings.deadlines.reap
    if not _quiet(tx, burst, world):
        busy = format_idset(lead.allocated & ranks)
        what = f"jobs still run on ranks {busy}" if busy else "ranks not drained yet"
        _report_overdue(tx, burst, limit, f"reap: {what}")
        return
    if gone:
        what = f"the provider has nothing, but ranks {format_idset(online)} are online"
        _report_overdue(tx, burst, limit, f"reap: {what}; flux overlay status")
    else:
        last = call.note if call and call.note else "the provider goes on deleting"
        _report_overdue(tx, burst, limit, f"reap: {last}")
    if _may_ask(world, burst, Verb.REAP, tx):
        tx.actions.append(ReapBurst(burst.id))


def _undrain(tx: Transaction, burst: Burst, world: World) -> None:
    """Take back the drains that are ours, once the brokers are gone.

    A drain outlives the broker, so the next burst on these ranks would get no job.
    One that a person put in place of ours is his. Where another host has a rank by
    now, its broker has nothing to do with us, but our drain may be on it.
    """
    lead = world.lead
    assert lead is not None
    own = ranks_of(burst, world)
    ranks = burst.drained - (lead.online & own)
    ours = {
        rank
        for rank in ranks
        if lead.drained.get(rank, "").startswith(
            DRAIN_TAG if rank in own else f"{DRAIN_TAG}{burst.id} "
        )
    }
    if ours:
        tx.actions.append(UndrainRanks(burst.id, frozenset(ours)))
    done = ranks - ours
    if done:
        tx.record(burst.id, "undrain", {"ranks": format_idset(done)})


def _begin_drain(tx: Transaction, burst: Burst, result: Result, note: str) -> None:
    context = {
        "ranks": format_idset(burst.lease.ranks),
        "result": result.value,
        "note": note,
    }
    tx.record(burst.id, "drain", context)
    tx.actions.append(_drain_action(burst, frozenset(burst.lease.ranks)))


def _drain_action(burst: Burst, ranks: frozenset[int]) -> DrainRanks:
    return DrainRanks(ranks, f"{DRAIN_TAG}{burst.id} is being taken down")


def _quiet(tx: Transaction, burst: Burst, world: World) -> bool:
    """Tell whether nothing runs on the burst's ranks nor can start there any more.

    What is not drained yet is drained, ranks that never came too: one that comes late
    must not get a job just before it is deleted. What we have drained before is noted,
    too: the record that said so may have been lost, and is to be undrained in the end.
    """
    lead = world.lead
    assert lead is not None
    ranks = ranks_of(burst, world)
    open_ranks = ranks - lead.drained.keys() - lead.excluded
    ours = {r for r in ranks if lead.drained.get(r, "").startswith(DRAIN_TAG)}
    if not open_ranks | ours <= burst.drained:
        context = {"ranks": format_idset(open_ranks | ours)}
        tx.record(burst.id, "rank-drain", context)
    if open_ranks:
        tx.actions.append(_drain_action(burst, open_ranks))
        return False
    return not lead.allocated.intersection(ranks)


def _give_up(tx: Transaction, burst: Burst, note: str, settings: Settings) -> None:
    """End a burst that did not come up in time; its offer has to wait."""
    tx.fail(burst.id, "timeout", note)
    _hold_against(tx, burst, settings)


def _hold_against(tx: Transaction, burst: Burst, settings: Settings) -> None:
    """Set its offer aside, as a burst of it was paid for in vain."""
    provider, offer = burst.lease.provider, burst.lease.offer
    known = tx.health_of(provider)
    held = provider_health.cool_down(known, offer, settings.limits, tx.now)
    tx.set_health(provider, held)


def _may_ask(world: World, burst: Burst, verb: Verb, tx: Transaction) -> bool:
    """Tell whether the provider is to be asked (again) now."""
    call = world.calls.get(burst.id)
    if not is_in_reach(burst.lease, world):
        return False
    if call is None or (call.verb is not verb and call.outcome is not Outcome.PENDING):
        return True
    if verb is Verb.PROVISION and call.outcome is Outcome.OK:
        return False
    return tx.now >= repeat_at(call)


def _report_overdue(tx: Transaction, burst: Burst, limit: float, note: str) -> None:
    """Say once a deadline that something takes longer than it should."""
    said = [event.timestamp for event in burst.events if event.name == "overdue"]
    last = max([burst.since, *said])
    if tx.now - last > limit:
        tx.record(burst.id, "overdue", {"note": note})
