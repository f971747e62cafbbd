# SPDX-License-Identifier: MIT
"""The commands of a person, as changes of the records. Pure, like the tick.

A person may take down a burst whose record cannot be read. A new record of the burst
then replaces the unreadable one. The burst ends like any other burst: its ranks are
drained, what runs on them continues to its end, and its provider is called to delete it
until nothing is left.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from burst.core.actions import ReleaseJobs
from burst.core.burst_actions import take_down
from burst.core.isolated.decision import lost_isolated_jobs
from burst.core.job_report import unknown_job
from burst.core.obstacles import end_housekeeping_now, housekeeping_of
from burst.core.plan.slots import DRAIN_TAG, hosts_named_after
from burst.core.records import RecordChanges, RecordsView, Transaction
from burst.core.world import World
from burst.errors import BurstError, LeadError
from burst.model.burst import ISOLATED_STEM, BurstId, Isolated, Lease, State
from burst.model.hold import HELD_BY_US, Hold, HoldState
from burst.model.jobid import JobId, format_f58
from burst.model.lead import LeadView
from burst.model.shape import Shape


class TakeDown(msgspec.Struct, frozen=True):
    """A burst that a person wants taken down."""

    burst: str
    note: str = "taken down by hand"
    provider: str = ""
    """The provider; needed if its record cannot be read and several providers may have
    it."""
    force: bool = False
    """Whether to end housekeeping on its nodes at once."""


def take_down_burst(tx: RecordChanges, burst_id: str, note: str) -> None:
    """Take a burst down; what runs on it continues to its end. Raises BurstError."""
    burst = tx.find(burst_id)
    if burst.state is State.INACTIVE:
        raise BurstError(f"burst {burst_id} has ended", "burst status --all shows it")
    take_down(tx, burst, note)


def has_housekeeping(records: RecordsView, burst_id: BurstId, world: World) -> bool:
    """Tell whether housekeeping, and no job, runs on some nodes of a burst."""
    burst = records.bursts.get(burst_id)
    return burst is not None and bool(housekeeping_of(burst, world))


def take_down_any(tx: Transaction, down: TakeDown) -> None:
    """Take a burst down, even one whose record cannot be read. Raises BurstError."""
    burst = BurstId(down.burst)
    own, jobs = f"burst/{burst}", f"job/{burst}/"
    keys = {key for key in tx.unreadable if key == own or key.startswith(jobs)}
    if not keys:
        take_down_burst(tx, down.burst, down.note)
        if down.force:
            end_housekeeping_now(tx, burst)
        return
    if own in keys or burst in lost_isolated_jobs(tx).values():
        lease = lease_of_unreadable(tx, tx.world, burst, down.provider, tx.now)
        tx.add_burst(lease, jobs_of_lost(lease, tx.world))
    tx.unreadable = {key: why for key, why in tx.unreadable.items() if key not in keys}
    known = tx.bursts.get(burst)
    if known is not None and known.live:
        take_down(tx, known, down.note)
    elif known is not None and known.quarantined:
        # An isolated burst that has ended: its job, which may have run, ends now.
        tx.record(burst, "unquarantine", {"note": down.note})


def release_jobs(
    tx: RecordChanges, jobs: list[JobId], lead: LeadView | None = None
) -> None:
    """Give held jobs their urgency back, and never hold them again.

    A job that was released before but still has urgency 0 is released again: the first
    request may have been lost. Raises BurstError for any other job that is not held.
    """
    urgencies: dict[JobId, int] = {}
    for job in jobs:
        hold = tx.holds.get(job)
        if hold is None and lead is not None and job not in lead.jobs:
            raise unknown_job(job)
        if hold is None or not (hold.state in HELD_BY_US or _was_lost(job, hold, lead)):
            name = format_f58(job)
            raise LeadError(
                f"{name} is not held by burst",
                f"if its user holds it, flux job urgency {name} default releases it",
            )
        tx.set_hold_state(job, HoldState.TAKEN_BACK)
        urgencies[job] = hold.urgency
    if urgencies:
        tx.actions.append(ReleaseJobs(urgencies))


def _was_lost(job: JobId, hold: Hold, lead: LeadView | None) -> bool:
    """Tell whether a job has urgency 0 although it was released."""
    view = lead.jobs.get(job) if lead else None
    return hold.state is HoldState.TAKEN_BACK and view is not None and view.urgency == 0


def held_jobs(records: RecordsView) -> list[JobId]:
    """Return the jobs that the daemon holds now."""
    return sorted(
        job for job, hold in records.holds.items() if hold.state in HELD_BY_US
    )


def enable_provider(tx: RecordChanges, provider: str) -> None:
    """Forget all failures of a provider. Raises BurstError."""
    if provider not in tx.health:
        raise BurstError(
            f"provider {provider} has no failures to forget",
            "burst status shows which providers are disabled",
        )
    del tx.health[provider]


def lease_of_unreadable(
    records: RecordsView, world: World, burst: BurstId, provider: str, now: float
) -> Lease:
    """Return a lease of all ranks that the burst may have.

    These are the ranks of its slot, by the names of the slot and of its hosts, as slots
    may have been declared anew since; the ranks of followers that the provider shows;
    and the ranks that were drained for it. Ranks of other bursts are left out, also of
    those that only providers show, as their records may be unreadable, too.
    If `provider` is empty, it is looked up; raises BurstError if it is not found.
    """
    provider = provider or _find_provider(world, burst)
    if provider not in world.providers:
        raise BurstError(
            f"there is no provider {provider}",
            f"the settings have {', '.join(world.providers) or 'none'}",
        )
    identity = world.identity
    slot = burst.rpartition("-")[0]
    isolated = _isolated(records, burst) if slot == ISOLATED_STEM else None
    shown, others = _shown_hosts(world, burst)
    hosts = shown.union(hosts_named_after(slot, world.slots))
    ranks = {rank for rank, host in enumerate(identity.hosts) if host in hosts}
    ranks.update(r for known in world.slots if known.name == slot for r in known.ranks)
    drained = world.lead.drained if world.lead else {}
    tag = f"{DRAIN_TAG}{burst} "
    ranks.update(rank for rank, why in drained.items() if why.startswith(tag))
    ranks.difference_update(*(other.lease.ranks for other in records.live))
    ranks = {rank for rank in ranks if identity.hosts[rank] not in others - shown}
    run = () if isolated else tuple(sorted(ranks))
    return Lease(
        id=burst,
        provider=provider,
        offer="",
        slot="" if isolated else slot,
        hosts=tuple(identity.hosts[rank] for rank in run),
        ranks=run,
        shape=identity.shapes[run[0]] if run else Shape(0),
        created=now,
        # The provider's present place: the burst was found there, or a person says so.
        place=world.places.get(provider, ""),
        isolated=isolated,
    )


def _shown_hosts(world: World, burst: BurstId) -> tuple[set[str], set[str]]:
    """Return the hosts that providers show for a burst, and for all others."""
    shown: set[str] = set()
    others: set[str] = set()
    for view in world.providers.values():
        for name, status in view.statuses.items():
            hosts = shown if name == burst else others
            hosts.update(follower.host for follower in status.followers)
    return shown, others


def jobs_of_lost(lease: Lease, world: World) -> dict[JobId, float]:
    """Return the job of a burst with this lease and its submit time; {} for none."""
    job = lease.isolated_job
    if job is None:
        return {}
    view = world.lead.jobs.get(job) if world.lead else None
    return {job: view.t_submit if view else lease.created}


def _isolated(records: RecordsView, burst: BurstId) -> Isolated:
    jobs = {its: job for job, its in lost_isolated_jobs(records).items()}
    job = jobs.get(burst)
    kind: Literal["job", "interactive"] = "interactive" if job is None else "job"
    return Isolated(kind=kind, job=job)


def _find_provider(world: World, burst: BurstId) -> str:
    shown = [name for name, view in world.providers.items() if burst in view.statuses]
    found = shown or list(world.providers)
    if len(found) != 1:
        names = ", ".join(found) or "none"
        raise BurstError(
            f"the record of {burst} cannot be read, and it is not known which provider"
            f" made it ({names})",
            f"burst down --provider NAME {burst}",
        )
    return found[0]
