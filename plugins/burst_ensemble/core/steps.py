# SPDX-License-Identifier: MIT
"""Records a step of an ensemble before it is done, and what was done of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from burst.model.jobid import JobId
from burst_ensemble.config.spec import JobSpec
from burst_ensemble.core import controller
from burst_ensemble.core.commands import with_record, with_state
from burst_ensemble.core.intents import Intent, JobRef
from burst_ensemble.core.member_job import find_group
from burst_ensemble.core.record import (
    EnsembleRecord,
    EnsembleRecords,
    KnownJob,
    MemberBook,
)


class StepTaken(msgspec.Struct, frozen=True, kw_only=True):
    """What a step came to, and what was read of the members for it."""

    before: EnsembleRecord
    """On which the step rests."""
    record: EnsembleRecord
    books: Mapping[str, MemberBook]


def is_outdated(ensembles: EnsembleRecords, step: StepTaken) -> bool:
    """Tell whether a person has changed the ensemble since a step was begun.

    Such a step is not applied: it would take that back.
    """
    state = ensembles.states.get(step.record.name)
    return state is None or state.record != step.before


def record_step(ensembles: EnsembleRecords, step: StepTaken) -> EnsembleRecords:
    """Record a step."""
    name, before = step.record.name, ensembles.books
    books = {f"{name}/{member}": book for member, book in step.books.items()}
    # Whatever is another object is written, also where it is equal.
    changed = {key: book for key, book in books.items() if before.get(key) != book}
    return msgspec.structs.replace(
        with_record(ensembles, name, step.record), books={**before, **changed}
    )


class IntentsDone(msgspec.Struct, frozen=True, kw_only=True):
    """What was done of a step's intents."""

    intents: Sequence[Intent]
    """Of jobs those that the member has."""
    resized: Mapping[str, str]
    """Why a member is not as large as it should be, by member."""
    refused: Mapping[str, str]
    """Why the lead did not take a job, by member."""
    ids: Mapping[str, Mapping[JobRef, JobId]]
    """Jobs of the lead, by member."""


def confirm_intents(
    ensembles: EnsembleRecords, before: EnsembleRecord, done: IntentsDone, now: float
) -> EnsembleRecords:
    """Record that jobs were submitted and commands run, of the run of `before`.

    Jobs are in the member's book from now on: one that ends before anybody looks again
    is asked for then. Where the ensemble was forgotten or started again meanwhile,
    nothing is recorded.
    """
    name = before.name
    state = ensembles.states.get(name)
    if state is None or state.record.started != before.started:
        return ensembles
    record = state.record
    for intent in done.intents:
        record = controller.confirm(record, intent)
    books, spec = dict(ensembles.books), ensembles.starts[name].spec
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
    after = with_state(
        ensembles,
        name,
        record=record,
        refused=done.resized,
        jobs_refused=done.refused,
    )
    return msgspec.structs.replace(after, books=books)


def _given(group: JobSpec, now: float) -> KnownJob:
    """Return a job that was submitted and has not been seen."""
    return KnownJob(group.name, group.nodes, counted="", submitted=now, seen=now)
