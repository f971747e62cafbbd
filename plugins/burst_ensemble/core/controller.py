# SPDX-License-Identifier: MIT
"""One step of an ensemble as a function: from a record and readings to intents.

At each check (`EnsembleSpec.check`) the daemon calls `look`, writes the `record` of the
step that it returns, then does the `intents` in their order. An intent that is not done
comes again in the next step: sizes and ends while readings differ from the record, jobs
and commands until `confirm`. A member that cannot be read stays as it is; one of whose
algorithms failed, too, unless another ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from burst.model.fsd import format_fsd
from burst_ensemble.algorithm import MemberView, Memory
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core.intents import (
    Done,
    EndMember,
    Intent,
    ResizeMember,
    RunCustom,
    SubmitJobs,
)
from burst_ensemble.core.job_rows import MemberState, SizedReading, count_never_taken
from burst_ensemble.core.member_job import find_group
from burst_ensemble.core.record import EnsembleRecord, KnownJob, MemberRecord
from burst_ensemble.core.sizes import decide_sizes
from burst_ensemble.core.views import make_views, take_in
from burst_ensemble.core.wishes import (
    Answer,
    Wish,
    give_commands,
    give_jobs,
    merge_answers,
)

_STEP_FAILED = "its step failed: "
"""How the fault of members begins of which the daemon could not take the step."""


class EnsembleStep(msgspec.Struct, frozen=True):
    """The result of one step of an ensemble."""

    record: EnsembleRecord
    """The next record. It must be written before the intents are done."""
    intents: tuple[Intent, ...]
    """Members that end, then those that shrink, then those that grow, then jobs and
    commands."""


def new_record(spec: EnsembleSpec, now: float) -> EnsembleRecord:
    """Return the record of an ensemble that begins."""
    members = {each.name: MemberRecord(started=now) for each in spec.members}
    return EnsembleRecord(name=spec.name, started=now, members=members)


def look(
    spec: EnsembleSpec,
    record: EnsembleRecord,
    read: Mapping[str, MemberState],
    ask: Callable[[MemberView, Mapping[str, Memory]], Mapping[str, Answer]],
    now: float,
) -> EnsembleStep:
    """Update the record from the readings, call the members' algorithms, take a step.

    `ask` gets a member and the memory of each of its algorithms, by name. It returns
    the answer of each algorithm, in the order of the file.
    """
    readings = {name: state.reading for name, state in read.items()}
    known = take_in(record, read)
    answers = {
        name: ask(view, known.members[name].memory)
        for name, view in make_views(spec, known, readings).items()
    }
    return take_step(spec, known, readings, answers, now)


def take_step(
    spec: EnsembleSpec,
    record: EnsembleRecord,
    readings: Mapping[str, SizedReading],
    answers: Mapping[str, Mapping[str, Answer]],
    now: float,
) -> EnsembleStep:
    """Return the next record and the intents. A member that has ended stays ended.

    A member that could not be read has no reading and no answers.
    """
    wishes = _wishes(spec, record, answers)
    record = record.with_members(
        {
            name: msgspec.structs.replace(member, fault="")
            for name, member in record.members.items()
            if member.fault.startswith(_STEP_FAILED)
        }
    )
    for name, wish in wishes.items():
        memory = {**record.members[name].memory, **wish.decision.memory}
        record = record.with_member(name, fault=wish.fault, memory=memory)
        record = give_commands(record, name, wish.decision.custom)
    record = _end_members(spec, record, wishes, readings, now)
    usable = {
        name: wish.decision
        for name, wish in wishes.items()
        if not wish.fault and record.members[name].ended is None
    }
    record = decide_sizes(spec, record, readings, usable, now)
    for name, decision in usable.items():
        record = give_jobs(spec, record, name, decision)
    record = _end_of_all(record, now)
    return EnsembleStep(record, tuple(_intents(record, readings)))


def end_all(record: EnsembleRecord, why: str, now: float) -> EnsembleRecord:
    """Return the record in which all members end, as for `burst ensemble down`."""
    for name in record.members:
        record = _ended(record, name, why, now)
    return _end_of_all(record, now, why)


def confirm(
    spec: EnsembleSpec,
    record: EnsembleRecord,
    done: Sequence[tuple[Intent, Done]],
    now: float,
) -> EnsembleRecord:
    """Return the record after the intents of a step were done or refused.

    The submitted jobs are known from now on: if one ends before the next reading, the
    next step asks for its outcome. Those that the lead will never accept have failed.
    Sizes and ends need no confirmation.
    """
    refused = dict.fromkeys(record.members, "")
    for intent, what in done:
        name = intent.member
        member = count_never_taken(record.members[name], what.never_taken)
        record = record.with_members({name: member})
        groups = {job: find_group(spec, name, ref) for ref, job in what.jobs.items()}
        new = {
            job: KnownJob(group.name, group.nodes, counted="", submitted=now)
            for job, group in groups.items()
        }
        ran = None
        if isinstance(intent, RunCustom) and not what.refused:
            ran = intent.number
        record = record.with_member(
            name,
            jobs={**new, **member.jobs},
            unconfirmed=tuple(
                job for job in member.unconfirmed if job not in what.jobs
            ),
            unconfirmed_commands=tuple(
                each for each in member.unconfirmed_commands if each[0] != ran
            ),
        )
        refused[name] = refused[name] or what.refused
    for name, why in refused.items():
        record = record.with_member(name, refused=why)
    return record


def note_failure(record: EnsembleRecord, error: BaseException) -> EnsembleRecord:
    """Return the record that says that a step failed, until one does not."""
    fault = f"{_STEP_FAILED}{type(error).__name__}, which the log has in full"
    members = {
        name: msgspec.structs.replace(member, fault=fault)
        for name, member in record.members.items()
        if member.ended is None
    }
    return record.with_members(members)


def _wishes(
    spec: EnsembleSpec,
    record: EnsembleRecord,
    answers: Mapping[str, Mapping[str, Answer]],
) -> dict[str, Wish]:
    shared = {job.name for job in spec.jobs}
    found = {}
    for each in spec.members:
        if each.name in answers and record.members[each.name].ended is None:
            groups = shared | {job.name for job in each.jobs}
            found[each.name] = merge_answers(answers[each.name], groups, spec.custom)
    return found


def _end_members(
    spec: EnsembleSpec,
    record: EnsembleRecord,
    wishes: Mapping[str, Wish],
    readings: Mapping[str, SizedReading],
    now: float,
) -> EnsembleRecord:
    limit = _limit_reached(spec, record, readings, now)
    if limit:
        return end_all(record, limit, now)
    for name, wish in wishes.items():
        if wish.decision.end:
            record = _ended(record, name, wish.decision.why, now)
    return record


def _limit_reached(
    spec: EnsembleSpec,
    record: EnsembleRecord,
    readings: Mapping[str, SizedReading],
    now: float,
) -> str:
    """Return why a limit ends the ensemble now; empty if none does."""
    limits = spec.limits
    if now - record.started >= limits.time:
        return f"[limits] time: {format_fsd(limits.time)} have passed"
    if not limits.money:
        return ""
    spent = record.spent
    # Money for nodes until the next check is spent, whatever that check decides.
    per_hour = sum(each.nodes_paid * each.price for each in readings.values())
    if spent + per_hour * spec.check / 3600 >= limits.money:
        return f"[limits] money: {spent:.2f} of {limits.money:g} are spent"
    return ""


def _ended(record: EnsembleRecord, name: str, why: str, now: float) -> EnsembleRecord:
    if record.members[name].ended is not None:
        return record
    return record.with_member(
        name,
        ended=now,
        why=why,
        unconfirmed=(),
        fault="",
    )


def _end_of_all(record: EnsembleRecord, now: float, why: str = "") -> EnsembleRecord:
    if record.ended is not None or any(
        member.ended is None for member in record.members.values()
    ):
        return record
    return msgspec.structs.replace(
        record, ended=now, why=why or "all members have ended"
    )


def _intents(
    record: EnsembleRecord, readings: Mapping[str, SizedReading]
) -> list[Intent]:
    ends: list[Intent] = []
    shrinks: list[Intent] = []
    grows: list[Intent] = []
    jobs: list[Intent] = []
    commands: list[Intent] = []
    for name, reading in readings.items():
        member = record.members[name]
        commands += [
            RunCustom(member=name, command=command, number=number)
            for number, command in member.unconfirmed_commands
        ]
        if member.ended is not None:
            if reading.nodes_paid or reading.queue.active:
                ends.append(EndMember(member=name, why=member.why))
            continue
        if reading.size != member.nodes:
            resize = ResizeMember(member=name, nodes=member.nodes, why=member.why)
            (grows if member.nodes > reading.size else shrinks).append(resize)
        if member.unconfirmed:
            jobs.append(SubmitJobs(member=name, jobs=member.unconfirmed))
    return [*ends, *shrinks, *grows, *jobs, *commands]
