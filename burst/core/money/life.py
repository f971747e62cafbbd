# SPDX-License-Identifier: MIT
"""How long a burst may live, and for whom: the basis for reserving money.

The burst of a standing minimum may live for weeks, and costs users only what their jobs
use. So their budgets count what jobs have used, and what is booked for jobs that have
nodes or get them.
"""

from __future__ import annotations

import math
from collections.abc import Set

import msgspec

from burst.config import Settings
from burst.core.money.ledger import STANDING, Entry, Payer, counted
from burst.model.banks import Banks
from burst.model.jobid import JobId
from burst.model.lead import JobView
from burst.model.request import ResourceRequest

_FOR_EVER = 10 * 365 * 86400.0


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds the life of a burst."""

    provider: str
    lease_end: float
    """Seconds since the epoch; 0 for never."""
    run_times: tuple[float, ...] = ()
    """Time limits of its jobs in seconds, 0 for none; empty without jobs."""
    online: bool = False


def lives_until(life: Life, settings: Settings, now: float) -> float:
    """Return until when a burst may live, if it begins or gets such jobs now.

    If its lease has an end, it lives until then, and until it is deleted. Else it lives
    for as long as its states may take by their deadlines: to come online, for Flux to
    start the job, for the job's time limit (`[deadlines] run` without one), idle, and
    to be deleted. A deadline without end counts as `[deadlines] run`.
    """
    return now + sum(life_parts(life, settings, now).values())


def life_parts(life: Life, settings: Settings, now: float) -> dict[str, float]:
    """Return the parts of the rest of a burst's life by their names, in seconds."""
    limits = settings.deadlines
    reap = {"reap": _bounded(limits.reap, settings)}
    if life.lease_end:
        return {"lease": life.lease_end - now, **reap}
    boot = 0.0 if life.online else boot_limit(life.provider, settings)
    run = max((time or limits.run for time in life.run_times), default=0.0)
    named = life.run_times and all(life.run_times)
    start = limits.release if life.run_times else 0.0
    return {
        "provision and join": boot,
        "Flux's start": start,
        "the job's time limit" if named else "run": min(run, _FOR_EVER),
        "idle": _bounded(limits.idle, settings),
        **reap,
    }


def boot_limit(provider: str, settings: Settings) -> float:
    """Return how many seconds nodes may boot, by the limits provision and join."""
    provision = settings.provision_limit(provider)
    return _bounded(provision, settings) + _bounded(settings.deadlines.join, settings)


def _bounded(seconds: float, settings: Settings) -> float:
    unbounded = math.isinf(seconds)
    return min(settings.deadlines.run, _FOR_EVER) if unbounded else seconds


def payer_of(job: JobView, banks: Banks, rule: str = "") -> Payer:
    """Return for whom a job's nodes are bought, and by which rule."""
    bank = banks.bank_of(job)
    return Payer(userid=job.userid, bank=bank, queue=job.queue, rule=rule)


def node_seconds(
    request: ResourceRequest | None, duration: float, nodes: int, rest: float
) -> float:
    """Return what a job may use of a burst of so many nodes, in node-seconds.

    `duration` is the job's time limit, 0 for none; `rest` is how long the burst may
    live. Both are in seconds.
    """
    its = min(nodes, request.nodes or nodes) if request is not None else nodes
    return its * (duration or max(0.0, rest))


def unbook(entry: Entry, jobs: Set[JobId]) -> Entry:
    """Return the entry with nothing booked for other jobs than these."""
    if all(share.job in jobs for share in entry.shares if share.booked):
        return entry
    shares = tuple(
        share if share.job in jobs else msgspec.structs.replace(share, booked=0.0)
        for share in entry.shares
    )
    return msgspec.structs.replace(entry, shares=shares)


def booked(entry: Entry) -> tuple[float, ...]:
    """Return what is booked for jobs, in node-seconds for each."""
    return tuple(share.booked for share in entry.shares if share.booked)


def borne(entry: Entry, now: float) -> dict[Payer, float] | None:
    """Return by payer the node-seconds that jobs use of a standing minimum's burst.

    Of each job the larger number counts: what it has used, or what is booked for it.
    None for a burst that its jobs pay for alone.
    """
    if STANDING not in entry.payers:
        return None
    found: dict[Payer, float] = {}
    for share in counted(entry, now).shares:
        seconds = max(share.node_seconds, share.booked)
        found[share.payer] = found.get(share.payer, 0.0) + seconds
    return found
