# SPDX-License-Identifier: MIT
"""Grows and shrinks bursts while they are online.

A growth leases further ranks and then calls the provider. It has ended once these are
online. A growth that fails, is late, or is not needed any more is undone by a shrink. A
shrink drains the last ranks and waits until no job has any of them. Then the provider
is called until it lists none of their followers and none of the ranks is online. Only
then are they free for other bursts.

A burst shrinks by itself if its last nodes are idle while others work or have to stay.
The time since when nodes are idle is kept from tick to tick, but not on record: it
begins anew after a restart of the daemon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import msgspec

from burst.config import Settings
from burst.core.actions import DrainBurst, ResizeBurst, UndrainBurst
from burst.core.cost import idle_limit
from burst.core.event_changes import size_context
from burst.core.observation import (
    ProviderPhase,
    failed_before,
    provider_message,
    provider_phase,
    ranks_of,
    status_of,
)
from burst.core.obstacles import drain_until_empty, why_in_use
from burst.core.plan.growth import may_be_resized
from burst.core.plan.slots import DRAIN_TAG
from burst.core.provider_calls import is_resize_taken, may_resize, report_overdue
from burst.core.records import Transaction
from burst.core.standing import nodes_needed_of
from burst.core.world import World
from burst.model.burst import Burst, BurstId, Lease
from burst.model.decision import count_nodes
from burst.model.fsd import format_fsd
from burst.model.ranks import format_idset
from burst.provider import BurstStatus, Phase

_LEAD_MOVED = "the address of the lead has changed since it began to grow"
_LEAD_ANEW = "the lead was restarted while it grew"
_NOT_NEEDED = "no waiting job needs its added nodes any more"


def begin_growth(tx: Transaction, larger: Lease, note: str, *, requested: bool) -> None:
    """Lease further ranks for an online burst; a later tick calls its provider.

    `larger` is what `with_ranks` returns.
    """
    burst = tx.bursts[larger.id]
    begun = {"before": burst.lease.nodes, "requested": requested, "note": note}
    online = format_idset(burst.expected)
    facts = {"nodes": larger.nodes, **begun, "online": online}
    tx.record(burst.id, "grow", size_context(burst, larger, **facts))


def begin_shrink(
    tx: Transaction, burst: Burst, nodes: int, note: str, *, requested: bool = False
) -> None:
    """Begin to shrink an online burst to its first `nodes` nodes."""
    lease = burst.lease
    begun = {"before": lease.nodes, "requested": requested, "note": note}
    online = format_idset(burst.expected.intersection(lease.ranks[:nodes]))
    facts = {"nodes": nodes, **begun, "online": online}
    tx.record(burst.id, "shrink", size_context(burst, lease, **facts))


def act_on_resize(tx: Transaction, burst: Burst) -> None:
    """Do what is due for an online burst that is growing or shrinking."""
    if burst.coming:
        _grow(tx, burst)
        burst = tx.bursts[burst.id]
    if burst.leaving:
        _shrink(tx, burst)


def growth_limit(burst: Burst, settings: Settings) -> float:
    """Return how many seconds a growth may take: as long as a new burst."""
    return settings.provision_limit(burst.lease.provider) + settings.deadlines.join


def growth_end(burst: Burst, settings: Settings) -> float:
    """Return when a growth is given up; math.inf if there is none."""
    if burst.resize is None or not burst.coming:
        return math.inf
    return burst.resize.since + growth_limit(burst, settings)


def describe_resize(burst: Burst, world: World) -> str:
    """Return how a burst grows or shrinks, and what it waits for; else empty."""
    resize = burst.resize
    if resize is None:
        return ""
    waits = resize.kind == "shrink" and resize.called is None
    if waits and world.lead is not None:
        why = why_in_use(burst, _leaving_ranks(burst, world), world)
    else:
        why = provider_message(burst, world)
    text = f"{resize.kind}s from {resize.before} to {count_nodes(resize.nodes)}"
    return f"{text}: {why}" if why else text


def _grow(tx: Transaction, burst: Burst) -> None:
    lead, resize, lease = tx.lead, burst.resize, burst.lease
    assert resize is not None
    limit = growth_limit(burst, tx.settings)
    if lead.online.issuperset(burst.coming):
        online = format_idset(burst.expected.union(burst.coming))
        facts = {"nodes": lease.nodes, "note": resize.why, "online": online}
        context = size_context(burst, lease, **facts, growth_failed=False)
        tx.record(burst.id, "grown", context)
    elif not resize.requested and not burst.unstarted:
        give_back(tx, burst, _NOT_NEEDED)
    elif resize.since < tx.world.identity.moved:
        give_back(tx, burst, _LEAD_MOVED)
    elif why := _why_failed(tx, burst):
        _fail(tx, burst, why)
    elif tx.now - resize.since > limit:
        words = provider_message(burst, tx.world) or "its provider does not say why"
        late = f"the added nodes were not online within {format_fsd(limit)}: {words}"
        _fail(tx, burst, late)
    elif not tx.world.rents_nothing and may_resize(tx, burst):
        tx.actions.append(ResizeBurst(burst.id))


def give_back(tx: Transaction, burst: Burst, why: str) -> None:
    """Undo a growth: the nodes that it added leave the burst, the others stay."""
    assert burst.resize is not None
    begin_shrink(tx, burst, burst.resize.before, why)


def fail_growth(tx: Transaction, burst: Burst, why: str) -> None:
    """Undo a growth, and set the offer aside for bursts of that many nodes or more.

    The cause may concern only this burst, such as a Job that Kueue has labelled. So
    from then on jobs get further bursts, as if this one could not grow.
    """
    tx.cool_down(burst, why, len(burst.coming))
    give_back(tx, msgspec.structs.replace(burst, growth_failed=True), why)


def _fail(tx: Transaction, burst: Burst, why: str) -> None:
    """Undo a growth that failed or is late.

    If the lead was started again meanwhile, that has ended followers that were coming
    up, and the failure does not count against the offer.
    """
    assert burst.resize is not None
    if burst.resize.since < tx.world.identity.started:
        give_back(tx, burst, _LEAD_ANEW)
    else:
        fail_growth(tx, burst, why)


def _why_failed(tx: Transaction, burst: Burst) -> str:
    """Return why a growth has failed according to the provider; empty if it has not."""
    status = _listed_since_call(tx, burst)
    if status is None or status.phase is not Phase.FAILED:
        return ""
    if failed_before(burst, status):
        return ""
    return status.why or "the provider reports a failure"


def _shrink(tx: Transaction, burst: Burst) -> None:
    resize, lead = burst.resize, tx.lead
    assert resize is not None
    ranks = _leaving_ranks(burst, tx.world)
    drain = DrainBurst(ranks, f"{DRAIN_TAG}{burst.id} shrinks")
    empty = partial(drain_until_empty, tx, drain, resize.since)
    if resize.called is None:
        if not empty():
            note = f"shrink: {why_in_use(burst, ranks, tx.world)}"
            report_overdue(tx, burst, tx.settings.deadlines.drain, note, resize.since)
            return
        burst = tx.record(burst.id, "shrink-start", {"ranks": format_idset(ranks)})
    elif _is_gone(tx, burst) and not ranks & lead.online:
        _end_shrink(tx, burst, ranks)
        return
    elif not empty():
        return
    if may_resize(tx, burst):
        tx.actions.append(ResizeBurst(burst.id))
    assert burst.resize is not None
    words = provider_message(burst, tx.world)
    note = f"shrink: {words or 'the provider is still deleting the nodes'}"
    since = burst.resize.called or tx.now
    report_overdue(tx, burst, tx.settings.deadlines.reap, note, since)


def _end_shrink(tx: Transaction, burst: Burst, ranks: frozenset[int]) -> None:
    """Undrain the ranks that left; once that is done, end their lease.

    A drain outlives the broker. If a person has replaced the drain, theirs stays.
    """
    drained = tx.lead.drained
    ours = {r for r in ranks if drained.get(r, "").startswith(DRAIN_TAG)}
    if ours:
        tx.actions.append(UndrainBurst(burst.id, frozenset(ours)))
        return
    assert burst.resize is not None
    nodes, why, lease = burst.resize.nodes, burst.resize.why, burst.lease
    lease = msgspec.structs.replace(
        lease, hosts=lease.hosts[:nodes], ranks=lease.ranks[:nodes]
    )
    facts = {"nodes": nodes, "note": why, "online": format_idset(burst.expected)}
    tx.record(burst.id, "shrunk", size_context(burst, lease, **facts))


def _is_gone(tx: Transaction, burst: Burst) -> bool:
    """Tell whether the provider lists none of the followers that leave any more."""
    status = _listed_since_call(tx, burst)
    if status is None:
        return False
    assert burst.resize is not None
    left = set(burst.lease.hosts[burst.resize.nodes :])
    return left.isdisjoint(follower.host for follower in status.followers)


def _listed_since_call(tx: Transaction, burst: Burst) -> BurstStatus | None:
    """Return the status that was read after `resize` returned; None if not yet read."""
    world, status = tx.world, status_of(burst, tx.world)
    if status is None or not is_resize_taken(burst, world):
        return None
    read_at = world.providers[burst.lease.provider].read_at
    unread = provider_phase(burst, world) is ProviderPhase.UNREAD
    return None if unread or read_at < world.calls[burst.id].taken_at else status


def _leaving_ranks(burst: Burst, world: World) -> frozenset[int]:
    """Return the ranks that leave in a shrink and still belong to the burst."""
    return ranks_of(burst, world).intersection(burst.leaving)


class IdlePart(msgspec.Struct, frozen=True):
    """The idle nodes of a burst after its last node in use or of a minimum."""

    nodes: int
    """The number of nodes before them."""
    since: float


def shrink_idle(
    tx: Transaction, before: Mapping[BurstId, IdlePart], *, jobs_wait: bool
) -> Mapping[BurstId, IdlePart]:
    """Shrink bursts whose last nodes are idle for too long; return the idle nodes.

    `before` is what the previous tick returned. `jobs_wait` tells whether a job waits
    that can have no nodes now: it may get these nodes with others that become free. No
    nodes of a burst count as idle while an assigned job has not started, nor do those
    that a standing minimum needs. A burst of idle nodes alone is taken down instead.
    """
    lead = tx.lead
    found: dict[BurstId, IdlePart] = {}
    for burst in tx.live:
        waited_for = burst.unstarted or burst.id in tx.awaited
        if waited_for or not may_be_resized(burst, tx.world, tx.settings.plan):
            continue
        needed = nodes_needed_of(tx, burst)
        in_use = lead.in_use.intersection(burst.lease.ranks)
        used = [n for n, rank in enumerate(burst.lease.ranks, 1) if rank in in_use]
        # Up to the last one on which something runs.
        kept = max([needed, *used])
        if not 0 < kept < burst.lease.nodes:
            continue
        known = before.get(burst.id, IdlePart(0, tx.now))
        part = IdlePart(max(kept, known.nodes), known.since)
        found[burst.id] = part
        limit = idle_limit(burst, tx.settings, awaited=jobs_wait)
        stays = burst.expected.intersection(burst.lease.ranks[: part.nodes])
        if stays and tx.now - part.since > limit:
            note = f"its last nodes were idle for {format_fsd(limit)}"
            begin_shrink(tx, burst, part.nodes, note)
    return found
