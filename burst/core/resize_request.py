# SPDX-License-Identifier: MIT
"""`burst resize`: a request that a burst grows or shrinks."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from burst.core.money.accounts import keep_accounts
from burst.core.plan.capacity import job_nodes
from burst.core.plan.growth import free_above, growing, growth_portion, with_ranks
from burst.core.plan.plan_demands import plan_context
from burst.core.records import Transaction
from burst.core.resizing import begin_growth, begin_shrink, give_back
from burst.errors import BurstError
from burst.model.burst import Burst, BurstId, State
from burst.model.decision import count_nodes
from burst.model.jobid import format_f58
from burst.model.lead import PENDING


class WantedSize(msgspec.Struct, frozen=True):
    """The number of nodes that a burst should have."""

    burst: str
    nodes: int
    note: str = "by request"
    """The reason, for the record."""


class ResizeAnswer(NamedTuple):
    """The result of a request for another size."""

    burst: BurstId
    before: int
    """The number of nodes it has, or had before a change that is under way."""
    nodes: int
    """The number of nodes it will have."""
    text: str
    """One sentence for a person."""


def resize_burst(tx: Transaction, wanted: WantedSize) -> ResizeAnswer:
    """Grow or shrink an online burst to a number of nodes, within its rank slot.

    What runs on nodes that leave continues to its end. A request for the number of
    nodes before a growth that is under way undoes that growth. A repeated request
    changes nothing. Raises BurstError with the reason for a refusal, and Unreadable.
    """
    burst, nodes, note = _find(tx, wanted.burst), wanted.nodes, wanted.note
    before = burst.resize.before if burst.resize else burst.lease.nodes
    target = burst.resize.nodes if burst.resize else burst.lease.nodes
    if nodes < 1:
        raise BurstError(
            f"{burst.id} cannot have {nodes} nodes", f"burst down {burst.id} ends it"
        )
    verb = "grows" if nodes > before else "shrinks"
    text = f"{burst.id} {verb} from {before} to {count_nodes(nodes)}"
    if nodes == target:
        if burst.resize is None:
            text = f"{burst.id} has {count_nodes(nodes)}"
    elif burst.coming and nodes == before:
        give_back(tx, burst, note)
        text = f"{burst.id} keeps {count_nodes(nodes)}; its growth is canceled"
    elif burst.resize is not None:
        raise BurstError(
            f"{burst.id} {burst.resize.kind}s from {before} to {count_nodes(target)}",
            "ask again once it has; burst status shows that",
        )
    elif nodes < before:
        _check_shrink(tx, burst, nodes)
        begin_shrink(tx, burst, nodes, note, requested=True)
    else:
        more = _find_further(tx, burst, nodes - before)
        larger = with_ranks(burst.lease, more, tx.world.identity)
        begin_growth(tx, larger, note, requested=True)
    keep_accounts(tx)
    return ResizeAnswer(burst.id, before, nodes, text)


def _find(tx: Transaction, burst_id: str) -> Burst:
    """Return the burst if it can be resized now. Raises BurstError, Unreadable."""
    tx.world.read_lead()
    burst = tx.find(burst_id)
    provider = burst.lease.provider
    if burst.lease.isolated is not None:
        raise BurstError(
            f"{burst.id} is isolated and cannot be resized",
            "burst request --isolated makes another one",
        )
    if burst.quarantined or burst.state is not State.ONLINE:
        raise BurstError(
            f"{burst.id} is {burst.shown_state}; only an online burst can be resized",
            f"burst explain {burst.id}",
        )
    if provider not in tx.world.resizable:
        raise BurstError(
            f"provider {provider} cannot resize its bursts",
            "burst request makes another burst, burst down ends one",
        )
    return burst


def _check_shrink(tx: Transaction, burst: Burst, nodes: int) -> None:
    """Raise BurstError if the shrink would leave nothing of use.

    That is if none of the nodes that stay ever joined, or if a job that is about to
    start needs nodes that would leave, so that others would be bought for it.
    """
    if not burst.expected.intersection(burst.lease.ranks[:nodes]):
        raise BurstError(
            f"none of the first {nodes} nodes of {burst.id} ever joined",
            f"burst down {burst.id} ends it",
        )
    lead, leaving = tx.lead, frozenset(burst.lease.ranks[nodes:])
    without = msgspec.structs.replace(lead, excluded=lead.excluded | leaving)
    bursts_of = tx.bursts_by_job()
    for job in sorted(burst.unstarted):
        view, its = lead.jobs.get(job), bursts_of.get(job, [])
        if view is None or view.request is None or view.state not in PENDING:
            continue
        if job_nodes(view.request, its, without).missing:
            raise BurstError(
                f"{format_f58(job)} is to start on nodes that would leave {burst.id}",
                "ask again once it runs, or cancel it",
            )


def _find_further(tx: Transaction, burst: Burst, more: int) -> list[int]:
    """Return the ranks by which a burst can grow. Raises BurstError with the reason."""
    if tx.world.rents_nothing:
        raise BurstError(
            "the daemon stops, or its lead: no nodes are added", "start it again"
        )
    found = free_above(burst, tx.world.slots, tx, tx.lead)
    if len(found) < more:
        raise BurstError(
            f"the rank slot of {burst.id} has {len(found)} free ranks above it,"
            f" and {more} are needed",
            "burst request makes another burst in another slot; burst lead add-slot"
            " adds ranks",
        )
    plan = plan_context(tx, tx.world, tx.settings, tx.now)
    source = growing(burst, plan.catalog, tx.settings.deadlines, tx.now)
    why = plan.why_not_so_much(source, growth_portion(burst, more, charged=True))
    if why:
        raise BurstError(
            f"{burst.id} cannot have {more} more nodes: {why.offer}: {why.text()}"
        )
    return sorted(found)[:more]
