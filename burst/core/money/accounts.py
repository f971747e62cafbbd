# SPDX-License-Identifier: MIT
"""Keeps the ledger in each transaction: reserves for new bursts, settles ended ones.

`keep_accounts` is the last step of a tick before its records are stored, and a step of
each command that makes bursts. So a burst and what is reserved for it are written
together, and so are its end and its cost. It looks at live bursts only.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Set

import msgspec

from burst.core.lifecycle import BEFORE_ONLINE
from burst.core.money import ledger, periods
from burst.core.money.budget import Budgets, commitment_of
from burst.core.money.ledger import Entry, Payer, Phase, Use, open_entry
from burst.core.money.life import (
    Life,
    lives_until,
    node_seconds,
    payer_of,
    unbook,
)
from burst.core.money.money import Money, format_money
from burst.core.observation import status_of
from burst.core.provider_calls import is_resize_taken
from burst.core.records import Transaction
from burst.core.world import World
from burst.model.burst import RECLAIMED, Burst, State
from burst.model.jobid import JobId
from burst.model.lead import ALLOCATED, JobState, JobView
from burst.provider import Failure
from burst.provider import Phase as FollowerPhase

KEPT_SETTLED = 1000
"""How many settled bursts are on record one by one; all others are only in the sums."""
MOST_SETTLED = 2000
"""The most settled bursts on record, if earlier ones could not be archived yet."""
# For a burst that is kept for a standing minimum, money is reserved for so many seconds
# at a time: each time is a write to the store.
_KEPT_LONGER_S = 600.0
_PHASES: dict[State, Phase] = {
    State.NEW: "",
    State.PROVISION: "boot",
    State.JOIN: "boot",
    State.ONLINE: "idle",
    State.DRAIN: "idle",
    State.REAP: "teardown",
}


def keep_accounts(tx: Transaction) -> None:
    """Reserve money for bursts, count their use, and settle those that ended.

    A record that cannot be read is left as it is; its burst may still cost something.
    """
    accounts = _Accounts(tx)
    live = tx.live
    for burst in live:
        if burst.id in tx.entries:
            accounts.keep(tx.entries[burst.id], burst, tx.new_jobs(burst))
        elif f"entry/{burst.id}" not in tx.unreadable:
            accounts.keep(accounts.open(burst), burst)
    ids = {burst.id for burst in live}
    for name, entry in [each for each in tx.entries.items() if each[0] not in ids]:
        if f"burst/{name}" not in tx.unreadable:
            _settle(tx, entry)
        elif (grown := ledger.outlive(entry, tx.now)) is not entry:
            # It has no record in which that could be an event.
            tx.entries[name] = grown
    _drop_settled(tx)
    tx.periods = periods.merge_old(tx.periods, tx.unreadable, tx.now)


def reserve_longer(tx: Transaction, burst: Burst) -> bool:
    """Reserve money for an idle burst that is kept; tell whether the budgets allow it.

    It is reserved for longer than the burst takes to end, so that it can end in time.
    What this tick has bought before is reserved first.
    """
    entry, lease = tx.entries.get(burst.id), burst.lease
    life = Life(provider=lease.provider, lease_end=lease.end, online=True)
    ends = lives_until(life, tx.settings, tx.now)
    if entry is None or ends <= entry.until:
        return True
    keep_accounts(tx)
    entry = tx.entries[burst.id]
    before = commitment_of(entry, tx.now)
    until = ends + _KEPT_LONGER_S
    after = msgspec.structs.replace(before, until=until)
    budgets = Budgets(tx.settings.budget, tx, tx.world.userids, tx.now)
    if budgets.refusing([after], before) is not None:
        return False
    tx.entries[burst.id] = ledger.extend(entry, until, {})
    return True


class _Accounts:
    """The entries of live bursts in one transaction."""

    def __init__(self, tx: Transaction) -> None:
        self._tx, self._world = tx, tx.world
        self._jobs = tx.world.lead.jobs if tx.world.lead else {}

    @functools.cached_property
    def _running(self) -> list[JobView]:
        jobs = self._jobs.values()
        return [job for job in jobs if job.state in ALLOCATED and job.ranks]

    def open(self, burst: Burst) -> Entry:
        """Reserve money for a burst that has no entry, and for all its jobs."""
        lease, now = burst.lease, self._tx.now
        until = max(now, self._until(burst, burst.jobs))
        payers = self._payers(burst.jobs)
        entry = open_entry(lease, until, payers, now)
        self._tx.entries[burst.id] = entry
        return entry

    def keep(self, entry: Entry, burst: Burst, given: Set[JobId] = frozenset()) -> None:
        """Count what a burst's nodes did, and reserve money for the jobs `given` to it.

        These are the jobs for which no money is reserved yet.
        """
        after, now, use = entry, self._tx.now, self._use(entry, burst)
        if self._world.unread and not burst.lease.isolated:
            after = self._count_ended(entry, burst, use)
        # The lease of a burst whose record could not be read has all ranks of its slot.
        if burst.lease.offer and burst.lease.nodes != entry.nodes:
            after = ledger.resize(after, burst.lease.nodes, now)
        begun = dict(use.jobs).keys() - dict(entry.use.jobs)
        if begun | given:
            # Up to now each job has the share that it had.
            after = ledger.counted(after, now)
            # Flux may have started a job by itself, on nodes that are there anyway.
            new = frozenset(job for job in given if not self._has_started(job))
            until = self._until(burst, new) if new else after.until
            booked = {job: self._booked(burst, job, until) for job in new}
            payers = self._payers(new) | self._payers(begun | given)
            after = ledger.extend(after, until, payers, booked)
        after = unbook(after, burst.jobs)
        use = self._with_others(after, use)
        # A program may begin and end between two looks.
        ended = burst.exit_status is not None
        joined = burst.state in (State.ONLINE, State.DRAIN) or ended
        after = ledger.count(after, use, now, joined=joined)
        grown = ledger.outlive(after, now)
        if grown is not after:
            more = format_money(Money(grown.grown - after.grown))
            note = f"it outlives its reservation; {more} more is reserved"
            self._tx.record(burst.id, "outlived", {"note": note})
        if grown is not entry:
            self._tx.entries[burst.id] = grown

    def _booked(self, burst: Burst, job: JobId, until: float) -> float:
        """Return how many node-seconds of a standing minimum's burst a job may use."""
        view = self._jobs.get(job)
        if view is None or not burst.lease.standing:
            return 0.0
        rest = until - self._tx.now
        return node_seconds(view.request, view.duration, burst.lease.nodes, rest)

    def _has_started(self, job: JobId) -> bool:
        view = self._jobs.get(job)
        return view is not None and bool(view.has_or_had)

    def _count_ended(self, entry: Entry, burst: Burst, use: Use) -> Entry:
        """Return the entry with no work counted for jobs beyond their end.

        These jobs ended while the lead was not read, and Flux tells when. While it was
        read, the nodes were theirs until Flux gave them back. Jobs that Flux no longer
        knows count only until the lead was last read. `use` is the use now.
        """
        mine = frozenset(burst.lease.ranks)
        seen = max(entry.at, self._tx.now - self._world.unread)
        views = {job: self._jobs.get(job) for job, _ in entry.use.jobs}
        ran = {job: v.has_or_had & mine for job, v in views.items() if v}
        ends = {
            job: max(seen, self._jobs[job].t_finish)
            if self._jobs[job].state is JobState.INACTIVE
            else math.inf
            for job in ran
        }
        # Nodes on which something unknown ran, and still runs.
        others = entry.use.busy - _count(ran.values())
        still = use.busy - _count(job.ranks & mine for job in self._running)
        rest = max(0, min(others, still))
        for at in sorted({seen, *ends.values()}):
            if at < self._tx.now:
                left = {job: ranks for job, ranks in ran.items() if ends[job] > at}
                jobs = tuple(each for each in entry.use.jobs if each[0] in left)
                busy = rest + _count(left.values())
                then = msgspec.structs.replace(entry.use, busy=busy, jobs=jobs)
                then = self._with_others(entry, then)
                entry = ledger.count(entry, then, at, joined=entry.joined)
        return entry

    def _until(self, burst: Burst, names: Set[JobId]) -> float:
        lease = burst.lease
        run_times = tuple(self._jobs[job].duration for job in names & self._jobs.keys())
        if lease.isolated is not None:
            run_times = (lease.isolated.duration,) if lease.isolated.ends else ()
        life = Life(
            provider=lease.provider,
            lease_end=lease.end,
            run_times=run_times,
            # If a burst grows for a job, the job waits for the further nodes.
            online=burst.state not in BEFORE_ONLINE and not burst.coming,
        )
        return lives_until(life, self._tx.settings, self._tx.now)

    def _payers(self, names: Set[JobId]) -> dict[JobId, Payer]:
        known = sorted(names & self._jobs.keys())
        rules, banks = self._tx.rules, self._world.banks
        return {
            job: payer_of(self._jobs[job], banks, rules.get(job, "")) for job in known
        }

    def _with_others(self, entry: Entry, use: Use) -> Use:
        rest = dict(use.jobs).keys() - {share.job for share in entry.shares}
        others = ledger.others_of(entry, use.jobs, self._payers(rest)) if rest else ()
        return msgspec.structs.replace(use, others=others)

    def _use(self, entry: Entry, burst: Burst) -> Use:
        """Return what the nodes of a burst do; what cannot be read stays as it was."""
        lead, busy, jobs = self._world.lead, entry.use.busy, entry.use.jobs
        if burst.lease.isolated:
            works = burst.state is State.ONLINE
            busy = burst.lease.nodes if works else 0
            job = burst.lease.isolated_job
            jobs = ((job, busy),) if works and job is not None else ()
        elif lead is not None:
            ranks = frozenset(burst.lease.ranks)
            busy = 0 if burst.state is State.NEW else len(lead.in_use & ranks)
            found = ((each.id, len(each.ranks & ranks)) for each in self._running)
            jobs = tuple((job, nodes) for job, nodes in found if busy and nodes)
        shown = _shown(entry.use.shown, burst, self._world)
        return Use(
            phase=_PHASES[burst.state],
            busy=busy,
            jobs=jobs,
            others=entry.use.others,
            shown=shown,
            **self._moving(burst, shown),
        )

    def _moving(self, burst: Burst, shown: int) -> dict[str, int]:
        """Return how many nodes boot, go and are absent in a burst that is resized.

        If nodes were only asked for, or a growth broke off, as many count as the
        provider shows as there: it may have made nothing at all.
        """
        if burst.resize is None:
            return {}
        lead = self._world.lead
        if burst.resize.kind == "grow":
            up = len(lead.online.intersection(burst.coming)) if lead else 0
            there = max(up, shown - burst.resize.before)
            if is_resize_taken(burst, self._world):
                there = len(burst.coming)
            return {"boot": there - up, "absent": len(burst.coming) - there}
        last = len(burst.leaving)
        used = len(lead.in_use.intersection(burst.leaving)) if lead else 0
        there = min(last, max(used, shown - burst.resize.nodes))
        free = there - used if burst.resize.called is not None else 0
        return {"teardown": free, "absent": last - there}


def _count(ranks: Iterable[frozenset[int]]) -> int:
    """Return how many ranks these are together."""
    return len(frozenset().union(*ranks))


def _shown(before: int, burst: Burst, world: World) -> int:
    """Return how many nodes of a burst its provider shows as there."""
    view = world.providers.get(burst.lease.provider)
    if view is None or view.trouble or not view.read_at:
        return before
    status = status_of(burst, world)
    if status is None:
        return 0
    if status.has_nodes and burst.resize is None:
        return burst.lease.nodes
    without = {FollowerPhase.PENDING}
    if status.failure is Failure.CAPACITY:
        without.add(FollowerPhase.FAILED)
    followers = status.followers
    shown = sum(each.has_node or each.phase not in without for each in followers)
    return min(shown, burst.lease.nodes)


def _settle(tx: Transaction, entry: Entry) -> None:
    """Remove the entry and add what the burst has cost; do both or nothing."""
    period = periods.day_of(entry.made)
    name = entry.burst
    if {f"ledger/{period}", f"settled/{name}"} & tx.unreadable.keys():
        return
    burst = tx.bursts.get(name)
    why = burst.exception if burst is not None else ""
    settled = ledger.settle(entry, tx.now, reclaimed=why == RECLAIMED)
    del tx.entries[name]
    tx.settled[name] = settled
    known = tx.periods.get(period, periods.Period())
    tx.periods[period] = known.plus(periods.groups_of(settled), 1)


def _drop_settled(tx: Transaction) -> None:
    """Drop the oldest rows beyond KEPT_SETTLED, each only once it is archived.

    If the archive cannot be written, rows beyond MOST_SETTLED are dropped all the same,
    so that the records are bounded.
    """
    archived, spare = tx.world.archived, len(tx.settled) - KEPT_SETTLED
    if spare <= 0:
        return
    oldest = sorted(tx.settled.values(), key=lambda row: row.ended)[:spare]
    for row in oldest:
        kept = archived is None or archived.get(row.burst) == row.made
        if kept or len(tx.settled) > MOST_SETTLED:
            del tx.settled[row.burst]
