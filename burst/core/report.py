# SPDX-License-Identifier: MIT
"""The answer to `burst status`: plain objects, ready for JSON.

Times are in seconds, ids are as people write them (f58, idset, hostlist).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from burst.core.behaviour import behaviour_of
from burst.core.burst_story import begin_time, state_times, timeline
from burst.core.cooldowns import refused_specs
from burst.core.cost import cost, per_hour
from burst.core.losses import cause_of_loss
from burst.core.observation import (
    ProviderPhase,
    is_enabled,
    provider_message,
    provider_phase,
    ranks_of,
    status_of,
)
from burst.core.obstacles import describe_cleaning, describe_delay, describe_obstacle
from burst.core.orphans import Orphan, orphan_row
from burst.core.plan.offers import price_of
from burst.core.plan.online_times import OnlineTimes
from burst.core.plan.slots import RankSlot, drained_by_hand, slot_holders
from burst.core.provider_calls import is_overdue, is_paused
from burst.core.provider_health import Health
from burst.core.records import Records, unread_leases
from burst.core.resizing import describe_resize
from burst.core.world import ProviderView, World
from burst.model.burst import Burst, BurstId, State
from burst.model.hold import HELD_BY_US
from burst.model.jobid import JobId, format_f58, parse_jobid
from burst.model.lead import ALLOCATED, LeadView
from burst.model.ranks import format_hostlist, format_idset
from burst.provider import Offer

Row = dict[str, Any]
JobsByRank = Mapping[int, AbstractSet[JobId]]

STARTED_AGAIN = "all its followers run again, but not all have joined the lead"
"""The note on a burst that has lost ranks, if its provider reports nothing else."""
NOT_ENABLED = "is not enabled, so the burst cannot be seen or deleted"
"""Said of the provider of a live burst, after its name."""
ENABLE_AGAIN = "enable it again until the burst is gone"
# Events whose note says why a burst ended.
_ENDS = ("exception", "drain", "finish", "quarantine")


def burst_row(
    burst: Burst, world: World, now: float, running: JobsByRank | None = None
) -> Row:
    """Return one burst as a row.

    `running` has the jobs that run on each rank; it saves time if many rows are made.
    """
    lease, resize = burst.lease, burst.resize
    running = _running(world) if running is None else running
    idle = burst.state is State.ONLINE and burst.idle_since is not None
    return {
        "id": burst.id,
        "provider": lease.provider,
        "offer": lease.offer,
        "state": burst.shown_state,
        "age": round(now - burst.since, 3),
        "nodes": lease.nodes,
        "online": behaviour_of(burst).nodes_up(burst, world),
        "ranks": format_idset(lease.ranks),
        "hosts": format_hostlist(lease.hosts),
        "jobs": [format_f58(job) for job in sorted(_jobs_on(burst, running))],
        "result": burst.result.value if burst.result else None,
        "isolated": lease.isolated.kind if lease.isolated else None,
        "tag": lease.tag.name if lease.tag else "",
        "standing": lease.standing,
        "exit_status": burst.exit_status,
        "access": _access(burst, world),
        "idle": round(now - (burst.idle_since or now), 3) if idle else None,
        "per_hour": round(per_hour(burst), 4),
        "priced_by": lease.priced_by,
        "resize": resize
        and {"kind": resize.kind, "before": resize.before, "nodes": resize.nodes},
        "note": burst_note(burst, world),
        "t_submit": begin_time(burst),
        "timeline": timeline(burst),
        "states": state_times(burst),
    }


def status(
    records: Records,
    world: World,
    orphans: tuple[Orphan, ...],
    prices: Mapping[str, float],
    now: float,
) -> Row:
    """Return the answer to `burst status`; `prices` are the site's `[prices]`."""
    times = OnlineTimes(records.times)
    identity, running = world.identity, _running(world)
    bursts = sorted(records.bursts.values(), key=lambda burst: burst.lease.created)
    return {
        "now": now,
        "lead": {
            "uri": identity.uri,
            "kind": identity.kind,
            "version": identity.version,
            "owner": identity.owner,
            "hosts": format_hostlist(identity.hosts),
            "endpoint": identity.endpoint,
            "trouble": world.trouble,
            "halt": world.halt.text() if world.halt else "",
        },
        "bursts": [
            burst_row(burst, world, now, running)
            | {"cost": round(cost(records, burst, now), 4)}
            for burst in bursts
        ],
        "slots": slot_rows(records, world),
        "providers": [
            _provider_row(name, view, records.health.get(name, Health()), prices, times)
            for name, view in world.providers.items()
        ],
        "held": [
            format_f58(job)
            for job, hold in sorted(records.holds.items())
            if hold.state in HELD_BY_US
        ],
        "orphans": [orphan_row(orphan) for orphan in orphans],
        "unreadable": dict(records.unreadable),
    }


def slot_rows(records: Records, world: World) -> list[Row]:
    """Return a row for each rank slot: its state, and the bursts that lease it."""
    leased = slot_holders(world.slots, records.live, unread_leases(records))
    return [
        _slot_row(slot, leased.get(slot.name, ""), records, world)
        for slot in world.slots
    ]


def _running(world: World) -> JobsByRank:
    """Return the jobs that have an allocation on each rank."""
    found: dict[int, set[JobId]] = defaultdict(set)
    for job in world.lead.jobs.values() if world.lead else ():
        for rank in job.ranks if job.state in ALLOCATED else ():
            found[rank].add(job.id)
    return found


def _jobs_on(burst: Burst, running: JobsByRank) -> AbstractSet[JobId]:
    """Return the jobs that are assigned to a burst or run on it."""
    if not burst.live:
        return burst.jobs
    ranks = burst.lease.ranks
    return set(burst.jobs).union(*(running.get(rank, ()) for rank in ranks))


def find_isolated(records: Records, name: str) -> Burst | None:
    """Return the isolated burst with that id, or the last one of the job with that id.

    None if there is none.
    """
    known = records.bursts.get(BurstId(name))
    if known is not None:
        return known if known.lease.isolated else None
    try:
        job = parse_jobid(name)
    except ValueError:
        return None
    found = [
        burst for burst in records.bursts.values() if burst.lease.isolated_job == job
    ]
    return max(found, key=lambda burst: burst.lease.created, default=None)


def _access(burst: Burst, world: World) -> str:
    """Return how a person reaches an isolated burst that is online; else empty."""
    seen = status_of(burst, world)
    if burst.state is not State.ONLINE or not (seen and seen.instance):
        return ""
    return seen.instance.access


def burst_note(burst: Burst, world: World) -> str:
    """Return why a burst is in its state, and what it waits for."""
    if burst.quarantined:
        return burst.quarantined
    if burst.live and not is_enabled(burst.lease, world):
        return f"provider {burst.lease.provider} {NOT_ENABLED}; {ENABLE_AGAIN}"
    note, obstacle = _last_note(burst, world), describe_resize(burst, world)
    if burst.state is State.DRAIN and burst.lost_since is not None:
        note = "; ".join(filter(None, (note, cause_of_loss(burst))))
    if burst.state in {State.DRAIN, State.REAP} and world.lead is not None:
        # The note of a burst that failed does not say what its deletion waits for.
        waits = is_overdue(burst) or (burst.exception and is_paused(burst, world))
        describe = describe_delay if waits else describe_obstacle
        obstacle = describe(burst, world)
    elif burst.state is State.ONLINE and world.lead is not None and not obstacle:
        obstacle = describe_cleaning(burst, ranks_of(burst, world), world)
    return "; ".join(filter(None, (note, obstacle)))


def _last_note(burst: Burst, world: World) -> str:
    failed = any(event.name == "exception" for event in burst.events)
    moving = burst.state in {State.PROVISION, State.JOIN, State.REAP}
    # While a failed burst is deleted, its failure matters more than provider messages.
    if moving and not failed and (words := provider_message(burst, world)):
        return words
    if burst.state is State.ONLINE and burst.resize is None:
        # If it has lost followers, its provider starts them again.
        lost = behaviour_of(burst).nodes_up(burst, world) != burst.lease.nodes
        if lost and (words := _on_its_way_back(burst, world)):
            return words
    noted: tuple[str, ...] = _ENDS
    if burst.state not in {State.DRAIN, State.REAP} and is_overdue(burst):
        noted = (*noted, "overdue")
    if burst.lost_since is not None and burst.state is State.ONLINE:
        noted = (*noted, "lost")
    for event in reversed(burst.events):
        if event.name in noted:
            return str(event.context.get("note", ""))
    return ""


def _on_its_way_back(burst: Burst, world: World) -> str:
    """Return what is known about the return of lost followers; empty for nothing."""
    phase, words = provider_phase(burst, world), provider_message(burst, world)
    if phase is ProviderPhase.PENDING:
        return words
    if phase is not ProviderPhase.RUNNING or burst.lost_since is None:
        return ""
    return "; ".join(filter(None, (cause_of_loss(burst), words or STARTED_AGAIN)))


def _is_apart(burst: Burst, slot: RankSlot) -> bool:
    """Tell whether a burst has neither ranks nor hosts of a slot."""
    ranks, hosts = set(slot.ranks), set(slot.hosts)
    return ranks.isdisjoint(burst.lease.ranks) and hosts.isdisjoint(burst.lease.hosts)


def _slot_row(slot: RankSlot, who: str, records: Records, world: World) -> Row:
    """Return one slot as a row; `who` is the burst or record that holds it, if any."""
    burst = who if who in records.bursts else ""
    if burst:
        has = (b for b in records.live if not _is_apart(b, slot))
        burst = ", ".join(sorted(b.id for b in has))
    if burst:
        state = "leased"
    else:
        state = "quarantined" if who else _unleased(frozenset(slot.ranks), world.lead)
    lead = world.lead
    by_hand = {} if lead is None else drained_by_hand(lead.drained, slot.ranks)
    return {
        "name": slot.name,
        "ranks": format_idset(slot.ranks),
        "hosts": format_hostlist(slot.hosts),
        "shape": str(slot.shape),
        "state": state,
        "burst": burst,
        "drained": {why: format_idset(ranks) for why, ranks in by_hand.items()},
    }


def _unleased(ranks: frozenset[int], lead: LeadView | None) -> str:
    """Return the state of a slot that no burst leases, from the state of its ranks."""
    if lead is None:
        return "unknown"
    if (lead.online | lead.allocated) & ranks:
        return "occupied"
    if lead.unfreed & ranks:
        return "unfreed"
    if not ranks <= lead.closed:
        return "free"
    return "drained" if lead.drained.keys() & ranks else "unscheduled"


def _provider_row(
    name: str,
    view: ProviderView,
    health: Health,
    prices: Mapping[str, float],
    times: OnlineTimes,
) -> Row:
    return {
        "name": name,
        "offers": [
            _offer_row(name, offer, health, prices, times)
            for offer in view.offers or ()
        ],
        "trouble": "; ".join(filter(None, (view.trouble, view.no_offers))),
        "disabled": health.disabled,
        "breaker_until": health.until or None,
    }


def _offer_row(
    provider: str,
    offer: Offer,
    health: Health,
    prices: Mapping[str, float],
    times: OnlineTimes,
) -> Row:
    price, priced_by = price_of(provider, offer, prices)
    until, why = health.set_aside(offer.name)
    online = times.of_offer(provider, offer.name)
    return {
        "name": offer.name,
        "shape": str(offer.shape),
        "spot": offer.spot,
        "max_nodes": offer.max_nodes,
        "modes": list(offer.modes),
        "own_images": offer.own_images,
        "price": price,
        "fee": offer.fee,
        "priced_by": priced_by,
        "online": None if online is None else msgspec.structs.asdict(online),
        "set_aside_until": until or None,
        "set_aside_why": why,
        "refused": refused_specs(health, offer.name),
    }
