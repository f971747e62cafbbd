# SPDX-License-Identifier: MIT
"""What a person may command, as changes of the records. Pure, like the tick."""

from __future__ import annotations

from collections.abc import Sequence, Set

import msgspec

from burst.config import Settings
from burst.core.actions import ReleaseJobs
from burst.core.burst_actions import take_down
from burst.core.isolated.decision import lost_isolated_jobs
from burst.core.obstacles import end_housekeeping_now, housekeeping_of
from burst.core.orphans import Orphan
from burst.core.plan.demands import Demand
from burst.core.plan.plan_demands import plan_demands
from burst.core.plan.slot_ranks import run_of
from burst.core.plan.slots import RankSlot
from burst.core.records import Records, Transaction
from burst.core.tick import TickResult, result_of
from burst.core.unreadable_records import (
    forget_unreadable,
    is_unreadable,
    jobs_of_lost,
    lease_of_unreadable,
)
from burst.core.world import World
from burst.core.worth.accounts import keep_accounts
from burst.errors import BurstError, JobspecError, LeadError
from burst.model.burst import BurstId, Isolated, State
from burst.model.constraint import MOST_HOSTS, canonical
from burst.model.decision import Decision, count_nodes
from burst.model.hold import HELD_BY_US, Hold, HoldState
from burst.model.jobid import JobId, format_f58
from burst.model.lead import LeadView
from burst.model.ranks import format_hostlist, parse_hostlist
from burst.model.reason import Reason
from burst.model.request import BurstPreferences, ResourceRequest


class TakeDown(msgspec.Struct, frozen=True):
    """A burst that a person wants taken down."""

    burst: str
    note: str = "taken down by hand"
    provider: str = ""
    """Its provider; needed where its record cannot be read and several may have it."""
    force: bool = False
    """Whether housekeeping on its nodes is ended at once."""


LONGEST_COMMAND = 2**14
"""Bytes of the command of an isolated burst; it is kept in the burst's record."""


def request_nodes(nodes: int, provider: str = "", slot: str = "") -> Demand:
    """Return the demand of `burst request -N`: whole nodes, ahead of any job.

    `slot` is a hostlist that they must be in, empty for any. Raises BurstError.
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
    """Raise BurstError unless bursts of so many nodes can ever be in these hosts.

    They have any of them, as for jobs, but where hosts of a slot join through another:
    then the first ones. `text` is a hostlist that `request_nodes` took.
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
            f"--slot: of {text} bursts can have {count_nodes(usable)}, and {nodes}"
            " are requested",
            f"{advice}; of one whose hosts join through another a burst has the first",
        )


def _usable(slot: RankSlot, hosts: Set[str]) -> int:
    """Return how many of these hosts bursts can have in a slot."""
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
    records: Records, world: World, settings: Settings, demand: Demand, now: float
) -> tuple[TickResult, Decision]:
    """Make bursts for a request ahead of jobs, or say why not. Raises Unreadable."""
    world.read_lead()
    tx = Transaction(records, now)
    plan = plan_demands(tx, world, settings, [demand])
    for proposal in plan.proposals:
        tx.plan_burst(proposal.lease, {})
    keep_accounts(tx, world, settings)
    return result_of(tx), plan.decisions[None]


def take_down_burst(
    records: Records,
    burst_id: str,
    note: str,
    now: float,
    forced_in: World | None = None,
) -> TickResult:
    """Take a burst down. What runs on it goes on to its end. Raises BurstError.

    With `forced_in`, housekeeping that runs there on its nodes is ended.
    """
    burst = records.find(burst_id)
    if burst.state is State.INACTIVE:
        raise BurstError(f"burst {burst_id} has ended", "burst status --all shows it")
    tx = Transaction(records, now)
    take_down(tx, burst, note)
    if forced_in is not None:
        end_housekeeping_now(tx, tx.bursts[burst.id], forced_in)
    return result_of(tx)


def has_housekeeping(records: Records, burst_id: BurstId, world: World) -> bool:
    """Tell whether housekeeping runs on nodes of a burst, and no job does."""
    burst = records.bursts.get(burst_id)
    return burst is not None and bool(housekeeping_of(burst, world))


def take_down_any(
    records: Records, world: World, down: TakeDown, now: float
) -> tuple[TickResult, BurstId]:
    """Take a burst down, even one whose record cannot be read. Raises BurstError."""
    burst = BurstId(down.burst)
    if not is_unreadable(records, burst):
        forced_in = world if down.force else None
        made = take_down_burst(records, down.burst, down.note, now, forced_in)
        return made, burst
    tx = Transaction(forget_unreadable(records, burst), now)
    is_lost = burst in lost_isolated_jobs(records).values()
    if f"burst/{burst}" in records.unreadable or is_lost:
        lease = lease_of_unreadable(records, world, burst, down.provider, now)
        tx.add_burst(lease, jobs_of_lost(lease, world))
    known = tx.bursts.get(burst)
    if known is not None and known.live:
        take_down(tx, known, down.note)
    elif known is not None and known.quarantined:
        # An isolated one that has ended: its job, which it may have run, ends now.
        tx.record(burst, "unquarantine", {"note": down.note})
    return result_of(tx), burst


def take_down_orphan(
    records: Records, world: World, orphan: Orphan, now: float
) -> tuple[TickResult, None]:
    """Put an orphan on record, to be taken down as a burst. Raises BurstError.

    So its ranks are drained before it is deleted: no job can start on them meanwhile.
    """
    tx = Transaction(forget_unreadable(records, orphan.burst), now)
    lease = lease_of_unreadable(records, world, orphan.burst, orphan.provider, now)
    tx.add_burst(lease, jobs_of_lost(lease, world))
    take_down(tx, tx.bursts[lease.id], f"an orphan: {orphan.why}")
    return result_of(tx), None


def release_jobs(
    records: Records, jobs: list[JobId], now: float, lead: LeadView | None = None
) -> TickResult:
    """Give held jobs their urgency back, and never hold them again.

    A job that was released before, but that the lead shows with urgency 0, is released
    again: the first request may have been lost. Raises LeadError for any other job that
    is not held.
    """
    tx = Transaction(records, now)
    urgencies: dict[JobId, int] = {}
    for job in jobs:
        hold = records.holds.get(job)
        if hold is None or not (hold.state in HELD_BY_US or _was_lost(job, hold, lead)):
            raise LeadError(
                f"{format_f58(job)} is not held by burst",
                "if its user holds it, flux job urgency JOBID 16 releases it",
            )
        tx.set_hold_state(job, HoldState.TAKEN_BACK)
        urgencies[job] = hold.urgency
    if urgencies:
        tx.actions.append(ReleaseJobs(urgencies))
    return result_of(tx)


def _was_lost(job: JobId, hold: Hold, lead: LeadView | None) -> bool:
    """Tell whether a job has urgency 0 although it was released."""
    view = lead.jobs.get(job) if lead else None
    return hold.state is HoldState.TAKEN_BACK and view is not None and view.urgency == 0


def held_jobs(records: Records) -> list[JobId]:
    """Return the jobs that are held by us now."""
    return sorted(
        job for job, hold in records.holds.items() if hold.state in HELD_BY_US
    )


def enable_provider(records: Records, provider: str, now: float) -> TickResult:
    """Forget all failures of a provider. Raises BurstError."""
    if provider not in records.health:
        raise BurstError(
            f"provider {provider} has no failures to forget",
            "burst status shows which providers are disabled",
        )
    tx = Transaction(records, now)
    del tx.health[provider]
    return result_of(tx)


def describe_request(decision: Decision, demand: Demand) -> str:
    """Return a sentence that says what a request ahead of jobs led to."""
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


def usable_idle_bursts(records: Records, demand: Demand) -> str:
    """Return a sentence on bursts that are idle already; empty if there are none."""
    wanted = demand.preferences.provider
    if demand.isolated:
        return ""
    idle = [
        f"{burst.id} ({burst.lease.nodes} nodes of {burst.lease.provider})"
        for burst in records.live
        if burst.state is State.ONLINE
        and burst.idle_since is not None
        and not burst.lease.isolated
        and demand.userid in (None, burst.lease.requester)
        and wanted in {"", burst.lease.provider}
    ]
    return f"already idle and ready for jobs: {', '.join(idle)}" if idle else ""
