# SPDX-License-Identifier: MIT
"""Applies a step of an ensemble: it is stored, and bursts begin what it asks of them.

Its jobs are submitted and its commands run after that, and confirmed then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from burst.config import Settings
from burst.core.actions import FailJob
from burst.core.burst_actions import take_down
from burst.core.records import Records, Transaction
from burst.core.tick import TickResult, joined, result_of
from burst.core.world import World
from burst.errors import Unreadable
from burst.model.burst import NOT_HELD, Burst, State, Tag
from burst.model.jobid import JobId
from burst_ensemble.config.spec import JobSpec
from burst_ensemble.core import controller
from burst_ensemble.core.commands import with_record, with_state
from burst_ensemble.core.intents import EndMember, Intent, JobRef, ResizeMember
from burst_ensemble.core.isolated_member import IsolatedMember
from burst_ensemble.core.member_job import find_group
from burst_ensemble.core.member_size import MemberResize, StepTime
from burst_ensemble.core.on_record import (
    books_of,
    ensembles_of,
    starts_of,
    with_ensembles,
)
from burst_ensemble.core.over import is_pending_of
from burst_ensemble.core.read_members import bursts_of, is_usable
from burst_ensemble.core.record import EnsembleRecord
from burst_ensemble.core.stored import KnownJob, MemberBook


class StepTaken(msgspec.Struct, frozen=True, kw_only=True):
    """What a step came to, and what was read of the members for it."""

    before: EnsembleRecord
    """On which the step rests."""
    record: EnsembleRecord
    books: Mapping[str, MemberBook]
    intents: tuple[Intent, ...]
    waiting: Mapping[str, Collection[JobId]] = {}
    """Of each isolated member the jobs that wait for nothing but a burst."""


def is_outdated(records: Records, step: StepTaken) -> bool:
    """Tell whether a person has changed the ensemble since a step was begun.

    Such a step is not applied: it would take that back.
    """
    state = ensembles_of(records).get(step.record.name)
    return state is None or state.record != step.before


def apply_step(
    records: Records, world: World, settings: Settings, step: StepTaken, now: float
) -> TickResult:
    """Record a step, and begin what it asks of bursts. Raises Unreadable.

    Jobs are submitted and commands run after it is stored, and confirmed then.
    """
    if world.lead is None:
        raise Unreadable(f"the lead cannot be read: {world.trouble}")
    name = step.record.name
    before = books_of(records)
    books = {f"{name}/{member}": book for member, book in step.books.items()}
    # Whatever is another object is written, also where it is equal.
    changed = {key: book for key, book in books.items() if before.get(key) != book}
    records = with_ensembles(
        with_record(records, name, step.record), books={**before, **changed}
    )
    results = [result_of(Transaction(records, now))]
    refused: dict[str, str] = {}
    file = starts_of(records)[name]
    spec = file.spec
    for intent in step.intents:
        records = results[-1].records
        membership = file.membership(intent.member)
        if isinstance(intent, EndMember):
            results.append(_end_member(records, world, membership, intent.why, now))
        elif isinstance(intent, ResizeMember):
            at, member = StepTime(world, settings, now), spec.member(intent.member)
            if member.is_isolated:
                waiting = step.waiting.get(intent.member, ())
                made, why = IsolatedMember(
                    member=member, of=membership, nodes=intent.nodes, waiting=waiting
                ).start(records, at)
            else:
                resize = MemberResize(member, membership, file, intent)
                made, why = resize.apply(records, at)
            results.append(made)
            if why:
                refused[intent.member] = why
    result = joined(results)
    records = with_state(result.records, name, refused=refused)
    return msgspec.structs.replace(result, records=records)


class IntentsDone(msgspec.Struct, frozen=True, kw_only=True):
    """What was done of a step's intents."""

    intents: Sequence[Intent]
    """Of jobs those that the member has."""
    refused: Mapping[str, str]
    """Why the lead did not take a job, by member."""
    ids: Mapping[str, Mapping[JobRef, JobId]]
    """Jobs of the lead, by member."""


def confirm_intents(
    records: Records, name: str, done: IntentsDone, now: float
) -> TickResult:
    """Record that jobs were submitted and commands run.

    Jobs are in the member's book from now on: one that ends before anybody looks again
    is asked for then.
    """
    record = ensembles_of(records)[name].record
    for intent in done.intents:
        record = controller.confirm(record, intent)
    books, spec = dict(books_of(records)), starts_of(records)[name].spec
    for member, ids in done.ids.items():
        book = books.get(f"{name}/{member}", MemberBook())
        new = {
            job: _given(find_group(spec, member, ref), now)
            for ref, job in ids.items()
            if job not in book.jobs
        }
        if new:  # else the book would be written to the store as it is there already
            books[f"{name}/{member}"] = msgspec.structs.replace(
                book, jobs={**book.jobs, **new}
            )
    records = with_ensembles(
        with_state(records, name, record=record, jobs_refused=done.refused),
        books=books,
    )
    return result_of(Transaction(records, now))


def _given(group: JobSpec, now: float) -> KnownJob:
    """Return a job that was submitted and has not been seen."""
    return KnownJob(group.name, group.nodes, counted="", submitted=now, seen=now)


def _end_member(
    records: Records, world: World, of: Tag, why: str, now: float
) -> TickResult:
    """Take its bursts down, and cancel its jobs that wait; what runs goes on.

    A job in an isolated burst waits, as the lead shows it: it ends with its burst.
    """
    assert world.lead is not None
    tx = Transaction(records, now)
    for burst in bursts_of(records, of):
        _end_burst(tx, burst, why)
    elsewhere = {
        burst.lease.isolated_job
        for burst in tx.bursts.values()
        if burst.lease.tag == of and (is_usable(burst) or burst.may_have_run)
    }
    tx.actions += [
        FailJob(job.id, f"{of.name} has ended: {why}")
        for job in world.lead.jobs.values()
        if is_pending_of(job, of) and job.id not in elsewhere
    ]
    return result_of(tx)


def _end_burst(tx: Transaction, burst: Burst, why: str) -> None:
    """Take a burst of a member that ends down; not while it runs a job elsewhere."""
    if burst.lease.isolated is None:
        take_down(tx, burst, why)
    elif burst.state is State.NEW and not burst.quarantined:
        # Its provider was not called, so its job is known not to have run.
        tx.fail(burst.id, NOT_HELD, why)
    elif burst.state is not State.ONLINE:
        take_down(tx, burst, why)
