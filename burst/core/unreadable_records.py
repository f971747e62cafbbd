# SPDX-License-Identifier: MIT
"""Takes down a burst whose record cannot be read.

A person decides that. The record of a burst that was taken down replaces the one that
cannot be read. Its ranks are drained, what runs on them goes on to its end, and its
provider is called to delete it until nothing is left, as with any other burst.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from burst.core.isolated.decision import lost_isolated_jobs
from burst.core.plan.slots import DRAIN_TAG, hosts_named_after
from burst.core.records import Records
from burst.core.world import World
from burst.errors import BurstError
from burst.model.burst import ISOLATED_STEM, BurstId, Isolated, Lease
from burst.model.jobid import JobId
from burst.model.shape import Shape


def is_unreadable(records: Records, burst: BurstId) -> bool:
    """Tell whether a record of that burst, or of a job of it, cannot be read."""
    return bool(_keys(records, burst))


def forget_unreadable(records: Records, burst: BurstId) -> Records:
    """Return the records without unreadable ones of a burst."""
    keys = _keys(records, burst)
    rest = {key: why for key, why in records.unreadable.items() if key not in keys}
    return msgspec.structs.replace(records, unreadable=rest) if keys else records


def lease_of_unreadable(
    records: Records, world: World, burst: BurstId, provider: str, now: float
) -> Lease:
    """Return a lease of all ranks that the burst may have.

    The ranks of its slot, by the slot's name and by those of hosts, as slots may have
    been declared anew since; those of the followers that the provider shows; those that
    were drained for it. But none that another burst leases. `provider` is empty where
    it is to be found out. Raises BurstError if it cannot be.
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
    status = world.providers[provider].statuses.get(burst)
    hosts = {follower.host for follower in status.followers} if status else set()
    hosts.update(hosts_named_after(slot, world.slots))
    ranks = {rank for rank, host in enumerate(identity.hosts) if host in hosts}
    ranks.update(r for known in world.slots if known.name == slot for r in known.ranks)
    drained = world.lead.drained if world.lead else {}
    tag = f"{DRAIN_TAG}{burst} "
    ranks.update(rank for rank, why in drained.items() if why.startswith(tag))
    ranks.difference_update(*(other.lease.ranks for other in records.live))
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
        # Where the provider is now: it was found there, or a person says so.
        place=world.places.get(provider, ""),
        isolated=isolated,
    )


def jobs_of_lost(lease: Lease, world: World) -> dict[JobId, float]:
    """Return the job that a burst with such a lease runs, and when it was submitted."""
    job = lease.isolated_job
    if job is None:
        return {}
    view = world.lead.jobs.get(job) if world.lead else None
    return {job: view.t_submit if view else lease.created}


def _isolated(records: Records, burst: BurstId) -> Isolated:
    jobs = {its: job for job, its in lost_isolated_jobs(records).items()}
    job = jobs.get(burst)
    kind: Literal["job", "interactive"] = "interactive" if job is None else "job"
    return Isolated(kind=kind, job=job)


def _keys(records: Records, burst: BurstId) -> set[str]:
    own, jobs = f"burst/{burst}", f"job/{burst}/"
    return {key for key in records.unreadable if key == own or key.startswith(jobs)}


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
