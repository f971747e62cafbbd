# SPDX-License-Identifier: MIT
"""The commands that begin, change and end ensembles, as changes of their records."""

from __future__ import annotations

import msgspec

from burst.core.plan.slots import may_lease, only_for
from burst.core.tagged_nodes import TaggedNodes
from burst.errors import BurstError
from burst.model.decision import count_nodes
from burst_ensemble.algorithm import SUBMIT_MOST, MemberDecision
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core import controller
from burst_ensemble.core.read_members import is_over, with_earlier_run
from burst_ensemble.core.record import (
    Ensemble,
    EnsembleRecord,
    EnsembleRecords,
    EnsembleStart,
)
from burst_ensemble.core.sizes import resized
from burst_ensemble.core.wishes import give_jobs

KEPT_ENDED = 20
"""How many ended ensembles stay on record, not counting those with `is_kept`."""


def begin_ensemble(
    ensembles: EnsembleRecords, nodes: TaggedNodes, new: EnsembleStart, now: float
) -> EnsembleRecords:
    """Put an ensemble on record; its first step makes the members.

    `new` has no slots: each member gets a rank slot that is large enough for its `max`.
    An ensemble with `is_kept` begins only once. Raises BurstError.
    """
    spec = new.spec
    if new.is_kept and spec.name in ensembles:
        return ensembles
    before = ensembles.get(spec.name)
    pending = nodes.tags_waiting()
    if before is not None and not is_over(before, nodes, pending):
        raise BurstError(
            f"an ensemble {spec.name} is there already",
            f"burst ensemble down {spec.name} ends it, burst ensemble status shows it",
        )
    began = now
    if before is not None and int(before.record.started) == int(now):
        began = int(now) + 1.0  # job names have it, and jobs are found by name
    start = msgspec.structs.replace(new, slots=_choose_slots(ensembles, nodes, spec))
    one = with_earlier_run(Ensemble(start, controller.new_record(spec, began)), nodes)
    after = {**ensembles, spec.name: one}
    return _without_oldest(after, nodes, spec.name)


def find_ensemble(ensembles: EnsembleRecords, name: str) -> Ensemble:
    """Return the ensemble of that name. Raises BurstError."""
    if name not in ensembles:
        names = ", ".join(sorted(ensembles)) or "none"
        raise BurstError(f"there is no ensemble {name}", f"known ones: {names}")
    return ensembles[name]


def submit_jobs(one: Ensemble, member: str, group: str, count: int) -> EnsembleRecord:
    """Give further jobs of an entry of `jobs` to a member. Raises BurstError."""
    whose, spec = _running(one, member), one.start.spec
    known = [job.name for job in (*spec.member(member).jobs, *spec.jobs)]
    if group not in known:
        raise BurstError(
            f"{whose} has no jobs {group}", f"it has {', '.join(known) or 'none'}"
        )
    waits = one.record.members[member].waits_with_jobs
    if waits:
        raise BurstError(
            f"{whose} gets no jobs now: {waits}",
            "try again later; burst ensemble status says what it waits for",
        )
    if not 0 < count <= SUBMIT_MOST:
        raise BurstError(f"{count} jobs cannot be submitted", f"1 to {SUBMIT_MOST}")
    wish = MemberDecision(submit=(group,) * count)
    record = give_jobs(spec, one.record, member, wish)
    given = len(record.members[member].unconfirmed)
    if given < count:
        raise BurstError(
            f"of jobs {group} the file has {given} left, not {count}",
            "set count = 0 in the file to allow any number",
        )
    return record


def resize_member(one: Ensemble, member: str, nodes: int, now: float) -> EnsembleRecord:
    """Have a member grow or shrink now; its algorithms may change the size again.

    Raises BurstError.
    """
    whose, spec = _running(one, member), one.start.spec.member(member)
    if spec.is_external:
        raise BurstError(
            f"the daemon does not set the size of {whose}: it is an instance of its"
            " own",
            "resize it where it was made",
        )
    if not spec.min <= nodes <= spec.max:
        raise BurstError(
            f"{whose} cannot have {count_nodes(nodes)}",
            f"the file allows {spec.min} to {spec.max}",
        )
    return resized(one.record, member, nodes, "resized by hand", now)


def _running(one: Ensemble, member: str) -> str:
    """Return ENSEMBLE/MEMBER of a member that runs. Raises BurstError for others."""
    name, known = one.record.name, one.record.members
    if member not in known:
        names = ", ".join(f"{name}/{each}" for each in known)
        raise BurstError(f"there is no {name}/{member}", f"known ones: {names}")
    if known[member].ended is not None:
        raise BurstError(f"{name}/{member} has ended: {known[member].why}")
    return f"{name}/{member}"


def _choose_slots(
    ensembles: EnsembleRecords, nodes: TaggedNodes, spec: EnsembleSpec
) -> dict[str, tuple[str, ...]]:
    """Return by member the hosts of a rank slot that no other ensemble uses."""
    pending = nodes.tags_waiting()
    taken = {
        hosts
        for one in ensembles.values()
        if not is_over(one, nodes, pending)
        for hosts in one.start.slots.values()
    }
    chosen: dict[str, tuple[str, ...]] = {}
    # The largest first, so that small members leave the large slots to them.
    joined = (member for member in spec.members if member.mode == "joined")
    for member in sorted(joined, key=lambda each: -each.max):
        left = [
            slot
            for slot in nodes.slots
            if slot.hosts not in taken
            and may_lease(member.provider, only_for(slot, nodes.offers.keys()))
        ]
        fit = [slot for slot in left if slot.size >= member.max]
        if not fit:
            most = max((slot.size for slot in left), default=0)
            smaller = f", or set max to {most} or less" if left else ""
            raise BurstError(
                f"member {member.name}: no rank slot of {count_nodes(member.max)} is"
                f" left for it on provider {member.provider}; each member has a slot of"
                " its own",
                f"add one with burst lead add-slot{smaller}",
            )
        slot = min(fit, key=lambda each: (each.size, each.ranks))
        taken.add(slot.hosts)
        chosen[member.name] = slot.hosts
    return chosen


def _without_oldest(
    ensembles: EnsembleRecords, nodes: TaggedNodes, but: str
) -> EnsembleRecords:
    """Return the ensembles without the oldest ended ones: the last KEPT_ENDED stay."""
    pending = nodes.tags_waiting()
    over = [
        name
        for name, one in ensembles.items()
        if name != but and is_over(one, nodes, pending) and not one.start.is_kept
    ]
    over.sort(key=lambda name: ensembles[name].record.ended or 0.0)
    gone = over[: max(0, len(over) - KEPT_ENDED)]
    return {name: one for name, one in ensembles.items() if name not in gone}
