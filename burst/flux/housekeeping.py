# SPDX-License-Identifier: MIT
"""Reads on which ranks only housekeeping or epilogs run, and since when.

For each job in housekeeping, the job manager tells the ranks that are not released yet,
and when it began (housekeeping_get_stats in src/modules/job-manager/housekeeping.c). It
does not tell which cores these are: they are those of the job's R. If jobs share nodes,
other jobs may have the other cores of such a rank.

A job whose epilog runs still has all its ranks. The journal tells when it began.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from burst.errors import MALFORMED, BurstError, LeadGone, Unreadable
from burst.flux.rpc import RpcClient
from burst.model.jobid import JobId, parse_jobid
from burst.model.lead import JobState, JobView, LeadIdentity, LeadView
from burst.model.ranks import format_idset, parse_idset
from burst.model.resource_set import resource_set

_NO_FLAGS = 0


class _Running(NamedTuple):
    """Housekeeping or an epilog after one job."""

    ranks: frozenset[int]
    since: float


class Cleaned(NamedTuple):
    """The ranks that only housekeeping or epilogs have, and when these began there."""

    housekeeping: Mapping[int, float]
    epilogs: Mapping[int, float]
    """The ranks with an epilog, or with both."""


class Housekeeping:
    """Reads where housekeeping runs, and ends it."""

    def __init__(self) -> None:
        self._cores: dict[JobId, Mapping[int, int]] = {}
        """How many cores each job that is in housekeeping had, by rank."""
        self._there: frozenset[int] = frozenset()
        """The ranks that only housekeeping or epilogs had at the last read."""
        self.has_just_ended = False
        """Whether housekeeping or an epilog has left ranks that the view shows as
        allocated. If it ended after the view was read, no job has these ranks."""

    def read(
        self,
        client: RpcClient,
        view: LeadView,
        identity: LeadIdentity,
        jobs: Mapping[JobId, JobView],
    ) -> Cleaned:
        """Return the ranks that only housekeeping or epilogs have, and since when.

        `jobs` and then `view` were read before. So if housekeeping now has all that the
        view shows as allocated of a rank, no job has the rank any more. Raises
        Unreadable, LeadGone.
        """
        after = _epilogs(jobs)
        running = {**after, **_running(client)}
        self._read_cores(client, running)
        since: dict[int, float] = {}
        cores: dict[int, int] = {}
        for job, found in running.items():
            for rank in found.ranks & view.allocated:
                since[rank] = min(since.get(rank, found.since), found.since)
                cores[rank] = cores.get(rank, 0) + self._cores[job].get(rank, 0)
        alone = {
            rank: began
            for rank, began in since.items()
            if cores[rank] >= _taken(view, identity, rank)
        }
        self.has_just_ended = bool(self._there & view.allocated - alone.keys())
        self._there = frozenset(alone)
        slow = frozenset[int]().union(*(found.ranks for found in after.values()))
        return Cleaned(
            {rank: began for rank, began in alone.items() if rank not in slow},
            {rank: began for rank, began in alone.items() if rank in slow},
        )

    def _read_cores(self, client: RpcClient, running: Mapping[JobId, _Running]) -> None:
        """Read the cores of each job once; none for a job whose R cannot be read."""
        new = [job for job in running if job not in self._cores]
        answers = client.ask_all(
            ("job-info.lookup", {"id": job, "keys": ["R"], "flags": _NO_FLAGS})
            for job in new
        )
        known = dict(zip(new, map(_cores, answers), strict=True))
        kept = {job: cores for job, cores in self._cores.items() if job in running}
        self._cores = kept | known


def end_housekeeping(client: RpcClient, ranks: frozenset[int], signum: int) -> None:
    """Send housekeeping on these ranks a signal, as flux-housekeeping(1) does."""
    if ranks:
        request = {"signum": signum, "ranks": format_idset(ranks)}
        client.ask("job-manager.housekeeping-kill", request)


def _epilogs(jobs: Mapping[JobId, JobView]) -> dict[JobId, _Running]:
    return {
        job: _Running(view.ranks, min(view.epilogs.values()))
        for job, view in jobs.items()
        if view.epilogs and view.state is JobState.CLEANUP
    }


def _running(client: RpcClient) -> Mapping[JobId, _Running]:
    stats = client.ask("job-manager.stats-get")
    try:
        return {
            parse_jobid(job): _Running(
                parse_idset(found["allocated"]), float(found["t_start"])
            )
            for job, found in stats["housekeeping"]["running"].items()
        }
    except MALFORMED as error:
        raise Unreadable(
            f"the job manager's statistics cannot be read: {error!r}",
            "flux module stats job-manager shows them",
        ) from error


def _cores(answer: dict[str, Any] | BurstError) -> Mapping[int, int]:
    """Return how many cores of each rank a job had, by its R.

    Return nothing if R cannot be read, as after the job was purged: then its ranks
    count as those of a job, and are left alone.
    """
    if isinstance(answer, LeadGone | Unreadable):
        raise answer
    if isinstance(answer, BurstError):
        return {}
    try:
        groups = resource_set(msgspec.json.decode(answer["R"])).groups
    except MALFORMED:
        return {}
    return {rank: len(group.ids("core")) for group in groups for rank in group.ranks}


def _taken(view: LeadView, identity: LeadIdentity, rank: int) -> int:
    """Return how many cores of a rank are not free."""
    free = view.free.get(rank)
    return identity.shapes[rank].cores - (free.cores if free else 0)
