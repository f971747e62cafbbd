# SPDX-License-Identifier: MIT
"""Keeps bursts within the limits of flux-accounting.

The plugin of flux-accounting checks a job's limits once, when the job is submitted, and
counts running jobs. A job that waits for a burst has passed that check and does not
run, so each of a hundred such jobs would be let through. So they are counted here: a
job for which there is a burst uses its nodes as if it ran.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from burst.core.money.ledger import Entry
from burst.core.plan.plan_demands import unread_entries
from burst.core.records import RecordsView
from burst.core.world import World
from burst.model.accounting import (
    AssociationLimits,
    AssociationUse,
    QueueLimits,
    describe_limits,
)
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import ALLOCATED, JobState, JobView
from burst.model.reason import Reason
from burst.model.request import ResourceRequest

_Key = tuple[int, str, str]
"""User id, bank, queue."""


class LimitsInUse:
    """What associations use of their limits; grows as jobs of a tick are decided on."""

    def __init__(self, records: RecordsView, world: World) -> None:
        """The lead can be read. A job of a live burst counts as if it ran.

        So does a job of a burst whose record cannot be read.
        """
        assert world.lead is not None
        self._jobs = world.lead.jobs
        self._records = records
        self._banks = world.banks
        self._facts = world.accounting

    def decide(
        self, job: JobView, request: ResourceRequest, enters: str = ""
    ) -> Decision | None:
        """Return why no burst is made for a job, None if one may be.

        `enters` is the queue that it is moved to, empty for none. flux-accounting gives
        a job priority 0 in a queue that its user may not use, so that it never starts.
        """
        if self._facts is None:
            return None
        key = self._key(job)
        limits = self._facts.associations.get(key[:2])
        if limits is None:
            return None
        allowed, known = limits.queues, self._facts.queues
        if allowed is not None and enters in known and enters not in allowed:
            return Decision(Reason.QUEUE_REFUSED, {"queue": enters, "bank": key[1]})
        return self._exceeded(key, limits, use_of(request))

    def count(self, job: JobView, request: ResourceRequest) -> None:
        """Count a job from now on as one for which there is a burst."""
        if self._facts is not None:
            key, more = self._key(job), use_of(request)
            self._coming[key] = self._coming.get(key, AssociationUse()).plus(more)

    def nodes_in_use(self, userid: int, bank: str) -> int:
        """Return how many nodes count against a user in a bank, where limits are known.

        Nodes of bursts that the user requested count, too, unless jobs use them; also
        those of bursts for the user whose records cannot be read.
        """
        limits = self._facts and self._facts.associations.get((userid, bank))
        running = limits.running.nodes if limits else 0
        coming = (
            use.nodes for key, use in self._coming.items() if key[:2] == (userid, bank)
        )
        theirs: list[tuple[int, Iterable[JobId]]] = [
            (burst.lease.nodes, burst.jobs)
            for burst in self._records.live
            if burst.lease.requester == userid
        ]
        theirs += [
            (entry.nodes, _jobs_of(entry))
            for entry in unread_entries(self._records)
            if any(payer.userid == userid for payer in entry.payers)
        ]
        spare = (max(0, nodes - self._nodes_used(jobs)) for nodes, jobs in theirs)
        return running + sum(coming) + sum(spare)

    def _nodes_used(self, jobs: Iterable[JobId]) -> int:
        shown = (self._jobs[job] for job in self._jobs.keys() & jobs)
        going = (job for job in shown if job.state is not JobState.INACTIVE)
        return sum(use_of(job.request).nodes for job in going if job.request)

    def _key(self, job: JobView) -> _Key:
        return job.userid, self._banks.bank_of(job), job.queue

    def _exceeded(
        self, key: _Key, limits: AssociationLimits, more: AssociationUse
    ) -> Decision | None:
        assert self._facts is not None
        queue = key[2]
        of_queue = self._facts.queues.get(queue, QueueLimits())
        in_all = limits.running.plus(more)
        in_queue = limits.by_queue.get(queue, AssociationUse()).plus(more)
        for other, use in self._coming.items():
            if other[:2] == key[:2]:
                in_all = in_all.plus(use)
                in_queue = in_queue.plus(use) if other == key else in_queue
        bank, its_queue = f"bank {key[1]}", f"queue {queue}"
        running, nodes = of_queue.max_running_jobs, of_queue.max_nodes_per_assoc
        for name, whose, most, used, need in (
            ("max_running_jobs", bank, limits.max_running_jobs, in_all.jobs, 1),
            ("max_nodes", bank, limits.max_nodes, in_all.nodes, more.nodes),
            ("max_cores", bank, limits.max_cores, in_all.cores, more.cores),
            ("max_running_jobs", its_queue, running, in_queue.jobs, 1),
            ("max_nodes_per_assoc", its_queue, nodes, in_queue.nodes, more.nodes),
        ):
            if used > most:
                facts = {"limit": name, "most": most, "whose": whose}
                facts |= {"used": used - need, "need": need}
                return Decision(Reason.ACCOUNTING_LIMIT, facts)
        return None

    @cached_property
    def _coming(self) -> dict[_Key, AssociationUse]:
        """Return what jobs use that flux-accounting does not count as running."""
        assert self._facts is not None
        read_at = self._facts.read_at
        helped = {job for burst in self._records.live for job in burst.jobs}
        helped.update(*map(_jobs_of, unread_entries(self._records)))
        found: dict[_Key, AssociationUse] = {}
        for job in self._jobs.values():
            if job.request is None or job.state is JobState.INACTIVE:
                continue
            if _is_uncounted(job, read_at) if _has_started(job) else job.id in helped:
                key = self._key(job)
                found[key] = found.get(key, AssociationUse()).plus(use_of(job.request))
        return found


def _jobs_of(entry: Entry) -> set[JobId]:
    return {share.job for share in entry.shares if share.job is not None}


def _has_started(job: JobView) -> bool:
    return job.state in ALLOCATED


def _is_uncounted(job: JobView, read_at: float) -> bool:
    """Tell whether flux-accounting may have answered before it counted a job.

    A job that got its nodes just before the answer is counted twice until the next one.
    So fewer nodes are rented, not more.
    """
    return not 0.0 < job.t_start < read_at


def use_of(request: ResourceRequest) -> AssociationUse:
    """Return what a job uses, as `jj_get_counts` of flux-accounting computes it."""
    return AssociationUse(1, request.nodes or 1, request.slots * request.cores_per_slot)


def decide_on_dependencies(job: JobView, world: World) -> Decision:
    """Return the decision on a job in state DEPEND."""
    if not job.dependencies:
        return Decision(Reason.NOT_READY, {"what": "dependencies"})
    bank, facts = world.banks.bank_of(job), world.accounting
    limits = describe_limits(
        job.dependencies,
        bank,
        job.queue,
        facts.associations.get((job.userid, bank)) if facts else None,
        facts.queues.get(job.queue) if facts else None,
    )
    return Decision(Reason.ACCOUNTING_HOLD, {"limits": limits})
