# SPDX-License-Identifier: MIT
"""What jobs pay of nodes that a standing minimum pays for, while these nodes live.

Such a burst may live for weeks, and costs users only what their jobs use. So their
budgets count what jobs have used, and what is booked for jobs that have nodes or get
them.
"""

from __future__ import annotations

from collections.abc import Set

import msgspec

from burst.core.worth.ledger import STANDING, Entry, Payer, counted
from burst.model.jobid import JobId
from burst.model.request import ResourceRequest


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
