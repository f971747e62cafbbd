# SPDX-License-Identifier: MIT
"""Which jobs of the file a member gets, by what its algorithms submit."""

from __future__ import annotations

import msgspec

from burst_ensemble.algorithm import SUBMIT_MOST
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core.answers import Wish
from burst_ensemble.core.intents import JobRef
from burst_ensemble.core.record import EnsembleRecord

COMMANDS_MOST = 20
"""Commands of a member that wait to be run, at most."""


def give_jobs(
    spec: EnsembleSpec, record: EnsembleRecord, name: str, wish: Wish
) -> EnsembleRecord:
    """Return the record in which jobs and commands of a wish are the member's.

    While earlier jobs are not confirmed it gets none, so that their number is bounded.
    """
    member = record.members[name]
    own, shared = dict(member.submitted), dict(record.shared)
    of_member = {job.name: job for job in spec.member(name).jobs}
    of_all = {job.name: job for job in spec.jobs}
    given: list[JobRef] = []
    for group, again in () if member.unconfirmed else wish.submit:
        if len(given) == SUBMIT_MOST:
            break
        is_own = group in of_member
        total = (of_member if is_own else of_all)[group].total
        numbers = own if is_own else shared
        number = numbers.get(group, 0)
        if total and number >= total and not again:
            continue
        numbers[group] = number + 1
        given.append(JobRef(group, number, not is_own))
    waiting = member.unconfirmed_commands
    new = wish.custom[: max(0, COMMANDS_MOST - len(waiting))]
    numbered = tuple(enumerate(new, member.commands))
    changed = msgspec.structs.replace(
        member,
        submitted=own,
        unconfirmed=(*member.unconfirmed, *given),
        commands=member.commands + len(new),
        unconfirmed_commands=(*waiting, *numbered),
    )
    return msgspec.structs.replace(
        record, shared=shared, members={**record.members, name: changed}
    )
