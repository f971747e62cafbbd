# SPDX-License-Identifier: MIT
"""Merge the answers of a member's algorithms, and give it the jobs they ask for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from burst.decode import from_plain
from burst.model.event import cut
from burst.provider_answers import storable
from burst_ensemble.algorithm import MEMORY_MOST, SUBMIT_MOST, MemberDecision
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core.intents import JobRef
from burst_ensemble.core.record import EnsembleRecord


class AlgorithmFault(msgspec.Struct, frozen=True):
    """An algorithm gave no answer that can be used: it raised, or took too long."""

    why: str


Answer = MemberDecision | AlgorithmFault


class Wish(msgspec.Struct, frozen=True):
    """What the algorithms of a member want together."""

    decision: MemberDecision
    """Its memory is that of each algorithm, by name."""
    fault: str = ""
    """The first fault of one. Then the member stays as it is, unless it is to end."""


def merge_answers(
    answers: Mapping[str, Answer], groups: Collection[str], commands: Collection[str]
) -> Wish:
    """Return what all algorithms of a member want.

    `groups` and `commands` are the names that a decision may contain.
    """
    nodes: int | None = None
    sized = ended = ""
    submit: list[str] = []
    again: list[str] = []
    custom: list[str] = []
    memory: dict[str, Mapping[str, Any]] = {}
    faults = {name: _fault_of(each, groups, commands) for name, each in answers.items()}
    fault = next((f"{name}: {what}" for name, what in faults.items() if what), "")
    for name, answer in answers.items():
        if faults[name] or not isinstance(answer, MemberDecision):
            continue
        if answer.end:
            ended = ended or answer.why or f"{name} decided to end it"
        elif fault and _asks(answer):
            continue  # its memory would tell it that this was done
        if nodes is None and answer.nodes is not None:
            nodes, sized = answer.nodes, answer.why
        submit += answer.submit
        again += answer.again
        custom += answer.custom
        memory[name] = msgspec.json.decode(msgspec.json.encode(answer.memory))
    decision = MemberDecision(
        nodes=nodes,
        submit=tuple(submit),
        again=tuple(again),
        end=bool(ended),
        custom=tuple(custom),
        memory=memory,
        why=storable(cut(ended or sized, 300)),
    )
    return Wish(decision, storable(cut(fault, 300)))


def _asks(answer: MemberDecision) -> bool:
    """Tell whether an answer changes the member."""
    return answer.nodes is not None or bool(
        answer.submit or answer.again or answer.custom
    )


def _fault_of(
    answer: object, groups: Collection[str], commands: Collection[str]
) -> str:
    """Return what is wrong with an answer; empty if it can be used."""
    if isinstance(answer, AlgorithmFault):
        return answer.why
    if not isinstance(answer, MemberDecision):
        return f"it returned {type(answer).__name__}, not a MemberDecision"
    try:
        from_plain(msgspec.structs.asdict(answer), MemberDecision)
        size = len(msgspec.json.encode(answer.memory))
    except (TypeError, ValueError, RecursionError) as error:
        return f"its decision cannot be used: {error}"
    if size > MEMORY_MOST:
        return f"its memory has {size} bytes, and the limit is {MEMORY_MOST}"
    jobs = [f"a job {n}" for n in (*answer.submit, *answer.again) if n not in groups]
    unknown = jobs + [f"a command {n}" for n in answer.custom if n not in commands]
    if unknown:
        return f"it asks for {unknown[0]}, which the file does not have"
    return ""


COMMANDS_MOST = 20
"""The maximum number of commands of a member that wait to be run."""


def give_jobs(
    spec: EnsembleSpec, record: EnsembleRecord, name: str, wish: MemberDecision
) -> EnsembleRecord:
    """Return the record in which the member has the jobs of a wish.

    It gets no jobs while `MemberRecord.waits_with_jobs` says so.
    """
    member = record.members[name]
    own, shared = dict(member.submitted), dict(record.shared)
    of_member = {job.name: job for job in spec.member(name).jobs}
    of_all = {job.name: job for job in spec.jobs}
    given: list[JobRef] = []
    wanted = () if member.waits_with_jobs else (*wish.submit, *wish.again)
    for place, group in enumerate(wanted):
        if len(given) == SUBMIT_MOST:
            break
        is_own = group in of_member
        total = (of_member if is_own else of_all)[group].total
        numbers = own if is_own else shared
        number = numbers.get(group, 0)
        if total and number >= total and place < len(wish.submit):
            continue
        numbers[group] = number + 1
        given.append(JobRef(group, number, not is_own))
    given_out = msgspec.structs.replace(record, shared=shared)
    return given_out.with_member(
        name,
        submitted=own,
        unconfirmed=(*member.unconfirmed, *given),
    )


def give_commands(
    record: EnsembleRecord, name: str, commands: Sequence[str]
) -> EnsembleRecord:
    """Return the record in which the member has these commands, too.

    They are run also if the member ends at this check: a command may save its results.
    """
    member = record.members[name]
    waiting = member.unconfirmed_commands
    new = commands[: max(0, COMMANDS_MOST - len(waiting))]
    numbered = tuple(enumerate(new, member.commands))
    return record.with_member(
        name,
        commands=member.commands + len(new),
        unconfirmed_commands=(*waiting, *numbered),
    )
