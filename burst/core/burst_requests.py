# SPDX-License-Identifier: MIT
"""`burst request`: nodes ahead of jobs, an isolated burst, or a burst for a job.

A request may accept fewer nodes if not all can be had. The nodes that standing minimums
lack are requested like this, too. Pure, like the tick.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

import msgspec

from burst.core.job_report import unknown_job
from burst.core.jobs.job_rules import JobRules
from burst.core.money.accounts import keep_accounts
from burst.core.plan.demands import Demand
from burst.core.plan.plan_demands import plan_demands, unread_use
from burst.core.plan.slot_ranks import run_of
from burst.core.plan.slots import RankSlot
from burst.core.records import RecordsView, Transaction, unread_leases
from burst.core.resize_request import WantedSize, resize_burst
from burst.core.standing import minimums_at
from burst.errors import BurstError, JobspecError
from burst.model.burst import BurstId, Isolated, State
from burst.model.constraint import MOST_HOSTS, canonical
from burst.model.decision import Decision, count_nodes
from burst.model.hold import HELD_BY_US, Hold, HoldState
from burst.model.jobid import JobId, format_f58
from burst.model.lead import PENDING, JobView
from burst.model.ranks import format_hostlist, parse_hostlist
from burst.model.reason import Reason
from burst.model.request import BurstPreferences, ResourceRequest

LONGEST_COMMAND = 2**14
"""The longest command of an isolated burst, in bytes; the burst's record keeps it."""
_UNREAD = (
    "record burst/{0} cannot be read; its nodes count as some of this minimum: burst"
    " down {0} deletes them, and others are made"
)


def request_nodes(nodes: int, provider: str = "", slot: str = "") -> Demand:
    """Return the demand of `burst request -N`: whole nodes, ahead of any job.

    `slot` is a hostlist that must contain the nodes; empty for any nodes. Raises
    BurstError.
    """
    if nodes < 1:
        raise BurstError(f"{nodes} nodes cannot be requested", "request 1 or more")
    constraint = ""
    if slot:
        try:
            parse_hostlist(slot, MOST_HOSTS)
            constraint = canonical({"hostlist": [slot]})
        except (ValueError, JobspecError) as error:
            raise BurstError(
                f"--slot: {error}", "give hosts of a rank slot: burst-0-[0-3]"
            ) from None
    request = ResourceRequest(
        nodes=nodes,
        slots=nodes,
        cores_per_slot=1,
        exclusive=True,
        constraint=constraint,
    )
    preferences = BurstPreferences(provider, mode="joined")
    return Demand(job=None, userid=None, request=request, preferences=preferences)


def check_slot(text: str, nodes: int, slots: Sequence[RankSlot]) -> None:
    """Raise BurstError unless bursts can ever have that number of these hosts.

    A burst can use any hosts of a slot, as for jobs; but if hosts of the slot join
    through another host, only the first ones. `text` is a hostlist that `request_nodes`
    accepted.
    """
    there = ", ".join(format_hostlist(slot.hosts) for slot in slots) or "none"
    advice = f"the lead's rank slots are {there}"
    hosts = set(parse_hostlist(text, MOST_HOSTS))
    if not hosts:
        raise BurstError("--slot: the list of hosts is empty", advice)
    unknown = hosts.difference(*(slot.hosts for slot in slots))
    if unknown:
        names = format_hostlist(sorted(unknown))
        raise BurstError(f"--slot: no rank slot has {names}", advice)
    usable = sum(_usable(slot, hosts) for slot in slots)
    if usable < nodes:
        raise BurstError(
            f"--slot: bursts can have {count_nodes(usable)} of {text}, and {nodes}"
            " are requested",
            f"{advice}; if its hosts join through another host, a burst can only have"
            " the first ones",
        )


def _usable(slot: RankSlot, hosts: Set[str]) -> int:
    """Return how many of these hosts of a slot bursts can use."""
    there = {
        rank for rank, host in zip(slot.ranks, slot.hosts, strict=True) if host in hosts
    }
    return len(there) if slot.divisible else run_of(slot, there)


def request_isolated(nodes: int, provider: str, isolated: Isolated) -> Demand:
    """Return the demand of `burst request --isolated`. Raises BurstError."""
    size = sum(len(word.encode()) for word in isolated.command)
    if size > LONGEST_COMMAND:
        raise BurstError(
            f"the {isolated.kind} has {size} bytes; {LONGEST_COMMAND} is the limit",
            "put it into a script in the container image",
        )
    empty = isolated.kind in ("command", "batch") and not isolated.command
    if isolated.kind == "job" or empty:
        raise BurstError(
            f"an isolated burst of kind {isolated.kind} cannot be requested like this",
            "burst request --isolated [--service | --batch FILE | -- COMMAND]",
        )
    demand = request_nodes(nodes, provider)
    preferences = BurstPreferences(provider, mode="isolated")
    return msgspec.structs.replace(demand, preferences=preferences, isolated=isolated)


def make_requested_burst(
    tx: Transaction, demand: Demand
) -> tuple[Decision, list[BurstId]]:
    """Make bursts for a request ahead of jobs.

    Return the decision about it, and the new bursts. Raises Unreadable.
    """
    tx.world.read_lead()
    plan = plan_demands(tx, [demand])
    for proposal in plan.proposals:
        tx.plan_burst(proposal.lease, {})
    keep_accounts(tx)
    return plan.decisions[None], sorted(each.lease.id for each in plan.proposals)


def describe_request(decision: Decision, demand: Demand) -> str:
    """Return a sentence with the result of a request ahead of jobs."""
    if decision.reason is Reason.PROPOSED:
        return decision.text().replace(" for it as", " as")
    guest = demand.userid is not None
    details = "; ".join(
        f"{r.offer}: {r.guests_text() if guest else r.text()}"
        for r in decision.refusals
    )
    return f"{count_nodes(demand.request.nodes)}: {decision.text()}" + (
        f" ({details})" if details else ""
    )


def usable_idle_bursts(records: RecordsView, demand: Demand) -> str:
    """Return a sentence on bursts that are idle already; empty if there are none."""
    wanted = demand.preferences.provider
    if demand.isolated:
        return ""
    idle = [
        f"{burst.id} ({count_nodes(burst.lease.nodes)} of {burst.lease.provider})"
        for burst in records.live
        if burst.state is State.ONLINE
        and burst.idle_since is not None
        and not burst.lease.isolated
        and burst.lease.tag == demand.tag
        and demand.userid in (None, burst.lease.requester)
        and wanted in {"", burst.lease.provider}
    ]
    return f"already idle and ready for jobs: {', '.join(idle)}" if idle else ""


class MoreNodes(msgspec.Struct, frozen=True, kw_only=True):
    """A request for nodes ahead of jobs, or for an isolated burst."""

    demand: Demand
    least: int = 0
    """The number of nodes to accept if no more can be had; 0 for all or none."""
    grow: bool = False
    """Whether a burst with the same tag grows, if one can, in place of a new burst."""
    note: str = ""
    """The reason, for the record of a burst that grows."""


class NodesMade(NamedTuple):
    """The answer to a request for nodes."""

    bursts: list[BurstId]
    """The new bursts, or the burst that grows; empty if nothing can be had."""
    text: str
    """One sentence for a person: what was made, or why nothing could be made."""
    why: str
    """Why not all nodes could be had; empty if they could."""


def more_nodes(tx: Transaction, wanted: MoreNodes) -> NodesMade:
    """Have a burst grow, or make bursts.

    With `least`, a refused request is repeated for half the nodes, down to `least`.
    Raises Unreadable.
    """
    refusal, nodes = "", wanted.demand.request.nodes
    while True:
        demand = _of_size(wanted.demand, nodes)
        grown = _grow(tx, demand, wanted.note) if wanted.grow else None
        if grown is not None:
            return grown._replace(why=refusal)
        decision, new = make_requested_burst(tx, demand)
        text = describe_request(decision, demand)
        if new:
            return NodesMade(new, text, refusal)
        refusal = refusal or text
        if not wanted.least or nodes <= wanted.least:
            return NodesMade([], refusal, refusal)
        nodes = max(nodes // 2, wanted.least)


def _grow(tx: Transaction, demand: Demand, note: str) -> NodesMade | None:
    """Grow the oldest burst with the tag that can grow; return None if none can."""
    its = [burst for burst in tx.live if burst.lease.tag == demand.tag]
    for burst in sorted(its, key=lambda each: (each.lease.created, each.id)):
        before = burst.resize.nodes if burst.resize else burst.lease.nodes
        nodes = before + demand.request.nodes
        try:
            answer = resize_burst(tx, WantedSize(burst.id, nodes, note or "by request"))
        except BurstError:
            continue
        return NodesMade([burst.id], answer.text, "")
    return None


def _of_size(demand: Demand, nodes: int) -> Demand:
    """Return the demand with another number of nodes."""
    request = msgspec.structs.replace(demand.request, nodes=nodes, slots=nodes)
    return msgspec.structs.replace(demand, request=request)


def request_for_job(tx: Transaction, job: JobId) -> None:
    """Have the next ticks make a burst for a pending job, whatever its worth.

    Limits, budgets, and the providers and prices of the job's rule still apply. The
    request is kept in the record of the job's hold until the job starts or ends. Raises
    BurstError, Unreadable.
    """
    view, hold = tx.lead.jobs.get(job), tx.holds.get(job)
    if view is None or not JobRules(tx.world, tx.settings, tx.now).may_burst(view):
        raise unknown_job(job)
    _check_job(view, hold)
    if hold is None:
        # The job has waited since it was submitted, and continues to wait.
        hold = Hold.released(view.urgency, view.t_submit)
    tx.holds[job] = msgspec.structs.replace(hold, requested=True)


def _check_job(view: JobView, hold: Hold | None) -> None:
    """Raise BurstError if the request would have no effect."""
    name = format_f58(view.id)
    if view.state not in PENDING:
        raise BurstError(f"{name} does not wait any more", f"burst explain {name}")
    held_by_us = hold is not None and hold.state in HELD_BY_US
    if hold is not None and hold.state is HoldState.TAKEN_BACK:
        raise BurstError(
            f"{name} was held and then released by hand, so it is left alone",
            "submit it again",
        )
    if view.urgency == 0 and not held_by_us:
        raise BurstError(
            f"{name} is held by its user",
            f"flux job urgency {name} default releases it",
        )


def keep_minimums(tx: Transaction) -> dict[str, str]:
    """Make bursts for the nodes that minimums lack, as many as can be had.

    Return, by the text of a minimum, why not all its nodes can be had. Raises
    Unreadable.
    """
    why = {}
    for minimum in minimums_at(tx.settings, tx.now):
        nodes, view = minimum.missing(tx), tx.world.providers.get(minimum.provider)
        if nodes <= 0 or view is None or view.offers is None:
            continue  # a provider that has not answered yet is no reason to warn
        if unread_leases(tx) and not view.read_at:
            continue  # it may show a burst of such a record
        for burst, use in unread_use(tx, tx.world).items():
            if minimum.may_have(burst, use):
                nodes -= use.nodes
                why[minimum.text()] = _UNREAD.format(burst)
        if nodes > 0:
            demand = request_nodes(nodes, minimum.provider)
            replace = msgspec.structs.replace
            wish = replace(demand.preferences, offer=minimum.table.offer)
            demand = replace(demand, preferences=wish, standing=minimum.text())
            made = more_nodes(tx, MoreNodes(demand=demand, least=1))
            if made.why:
                why[minimum.text()] = made.why
    return why
