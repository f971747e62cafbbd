# SPDX-License-Identifier: MIT
"""What a person or a file has ensembles begin, do and end, as changes of records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from burst.core.plan.slots import kept_for, may_lease
from burst.errors import BurstError
from burst.model.burst import Tag
from burst_ensemble.algorithm import SUBMIT_MOST
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core import controller
from burst_ensemble.core.over import books_of_earlier_run, is_over
from burst_ensemble.core.record import (
    EnsembleRecord,
    EnsembleRecords,
    EnsembleStart,
    EnsembleState,
    MemberBook,
    Seen,
)
from burst_ensemble.core.sizes import resized
from burst_ensemble.core.wishes import Wish, give_jobs

KEPT_ENDED = 20
"""Ensembles that have ended and are still on record, beside those that are kept."""


def begin_ensemble(seen: Seen, new: EnsembleStart) -> EnsembleRecords:
    """Put an ensemble on record; its members are made by its first step.

    `new` is without slots: each member gets one in which it can have its `max`. Raises
    BurstError.
    """
    spec, (ensembles, nodes, now) = new.spec, seen
    before = ensembles.states.get(spec.name)
    pending = nodes.tags_waiting()
    if before is not None and not is_over(ensembles, spec.name, nodes, pending):
        raise BurstError(
            f"an ensemble {spec.name} is there already",
            f"burst ensemble down {spec.name} ends it, burst ensemble status shows it",
        )
    began = now
    if before is not None and int(before.record.started) == int(now):
        began = int(now) + 1.0  # it is in the names of jobs, by which they are found
    slots = _choose_slots(seen, spec)
    file = msgspec.structs.replace(new, slots=slots)
    books = {
        **_without(ensembles.books, [spec.name]),
        **books_of_earlier_run(nodes, file),
    }
    state = EnsembleState(record=controller.new_record(spec, began))
    after = EnsembleRecords(
        states={**ensembles.states, spec.name: state},
        starts={**ensembles.starts, spec.name: file},
        books=books,
    )
    return _forget_oldest(seen._replace(ensembles=after), pending, spec.name)


def begin_once(seen: Seen, new: EnsembleStart) -> EnsembleRecords:
    """Put an ensemble on record for good, unless one of its name is there or was.

    Raises BurstError.
    """
    if new.tables["name"] in seen.ensembles.states:
        return seen.ensembles
    return begin_ensemble(seen, msgspec.structs.replace(new, is_kept=True))


def take_down_ensemble(
    ensembles: EnsembleRecords, name: str, why: str, now: float
) -> EnsembleRecords:
    """Have all members of an ensemble end, for good. Raises BurstError."""
    state = ensembles.states.get(name)
    if state is None:
        names = ", ".join(sorted(ensembles.states)) or "none"
        raise BurstError(f"there is no ensemble {name}", f"known ones: {names}")
    ended = controller.end_all(state.record, why, now)
    return with_record(ensembles, name, ended)


def submit_jobs(
    ensembles: EnsembleRecords, name: str, member: str, group: str, count: int
) -> EnsembleRecords:
    """Give further jobs of an entry of `jobs` to a member. Raises BurstError."""
    state = _running(ensembles, name, member)
    spec = ensembles.starts[name].spec
    known = [job.name for job in (*spec.member(member).jobs, *spec.jobs)]
    if group not in known:
        raise BurstError(
            f"{name}/{member} has no jobs {group}",
            f"it has {', '.join(known) or 'none'}",
        )
    if state.record.members[member].unconfirmed:
        raise BurstError(
            f"earlier jobs of {name}/{member} are not submitted yet",
            "burst ensemble status says why, if it lasts",
        )
    if not 0 < count <= SUBMIT_MOST:
        raise BurstError(f"{count} jobs cannot be submitted", f"1 to {SUBMIT_MOST}")
    wish = Wish(submit=((group, False),) * count, memory={})
    record = give_jobs(spec, state.record, member, wish)
    given = len(record.members[member].unconfirmed)
    if given < count:
        raise BurstError(
            f"of {group} the file has {given} jobs left, not {count}",
            "count = 0 in the file is for as many as are submitted",
        )
    return with_record(ensembles, name, record)


def resize_member(
    ensembles: EnsembleRecords, name: str, member: str, nodes: int, now: float
) -> EnsembleRecords:
    """Have a member grow or shrink now; its algorithm may change that again.

    Raises BurstError.
    """
    state = _running(ensembles, name, member)
    spec = ensembles.starts[name].spec.member(member)
    if spec.has_agent:
        raise BurstError(
            f"the size of {name}/{member} is not the daemon's: it is an instance of its"
            " own",
            "resize it where it was made",
        )
    if not spec.min <= nodes <= spec.max:
        raise BurstError(
            f"{nodes} nodes cannot be had for {name}/{member}",
            f"the file allows {spec.min} to {spec.max}",
        )
    before = state.record.members[member]
    after = resized(before, nodes, "resized by hand", now)
    members = {**state.record.members, member: after}
    record = msgspec.structs.replace(state.record, members=members)
    return with_record(ensembles, name, record)


def _running(ensembles: EnsembleRecords, name: str, member: str) -> EnsembleState:
    """Return the state of an ensemble of which a member runs. Raises BurstError."""
    state = ensembles.states.get(name)
    known = state.record.members if state else {}
    if state is None or member not in known:
        names = ", ".join(f"{name}/{each}" for each in known) or "none"
        raise BurstError(f"there is no {name}/{member}", f"known ones: {names}")
    if known[member].ended is not None:
        raise BurstError(f"{name}/{member} has ended: {known[member].why}")
    return state


def _choose_slots(seen: Seen, spec: EnsembleSpec) -> dict[str, tuple[str, ...]]:
    """Return for each member the hosts of a rank slot that no other ensemble has."""
    ensembles, nodes, _ = seen
    pending = nodes.tags_waiting()
    taken = {
        hosts
        for name, file in ensembles.starts.items()
        if not is_over(ensembles, name, nodes, pending)
        for hosts in file.slots.values()
    }
    chosen: dict[str, tuple[str, ...]] = {}
    # The largest first, so that small members leave the large slots to them.
    joined = (member for member in spec.members if member.mode == "joined")
    for member in sorted(joined, key=lambda each: -each.max):
        fit = [
            slot
            for slot in nodes.slots
            if slot.size >= member.max
            and slot.hosts not in taken
            and may_lease(member.provider, kept_for(slot, nodes.offers.keys()))
        ]
        if not fit:
            raise BurstError(
                f"member {member.name}: no rank slot of {member.max} nodes is left for"
                f" it on provider {member.provider}; each member has a slot of its own",
                "burst lead add-slot adds one; or a smaller max",
            )
        slot = min(fit, key=lambda each: (each.size, each.ranks))
        taken.add(slot.hosts)
        chosen[member.name] = slot.hosts
    return chosen


def _without(
    books: Mapping[str, MemberBook], names: Iterable[str]
) -> dict[str, MemberBook]:
    gone = tuple(f"{name}/" for name in names)
    return {key: book for key, book in books.items() if not key.startswith(gone)}


def _forget_oldest(seen: Seen, pending: Collection[Tag], but: str) -> EnsembleRecords:
    """Forget ensembles that have ended, but for the last of them."""
    ensembles = seen.ensembles
    over = [
        name
        for name, start in ensembles.starts.items()
        if name != but
        and is_over(ensembles, name, seen.nodes, pending)
        and not start.is_kept
    ]
    over.sort(key=lambda name: ensembles.states[name].record.ended or 0.0)
    gone = over[: max(0, len(over) - KEPT_ENDED)]
    return EnsembleRecords(
        states={k: v for k, v in ensembles.states.items() if k not in gone},
        starts={k: v for k, v in ensembles.starts.items() if k not in gone},
        books=_without(ensembles.books, gone),
    )


def with_record(
    ensembles: EnsembleRecords, name: str, record: EnsembleRecord
) -> EnsembleRecords:
    """Return the records with another record of an ensemble."""
    return with_state(ensembles, name, record=record)


def with_state(
    ensembles: EnsembleRecords, name: str, **changes: object
) -> EnsembleRecords:
    """Return the records with these fields of an ensemble's state changed."""
    before = ensembles.states[name]
    state = msgspec.structs.replace(before, **changes)
    if state == before:
        return ensembles
    states = {**ensembles.states, name: state}
    return msgspec.structs.replace(ensembles, states=states)
