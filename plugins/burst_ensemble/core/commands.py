# SPDX-License-Identifier: MIT
"""What a person or a file has ensembles begin, do and end, as changes of records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from burst.core.plan.slots import RankSlot
from burst.core.records import Records
from burst.core.world import World
from burst.errors import BurstError
from burst.model.burst import Tag
from burst_ensemble.algorithm import SUBMIT_MOST
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core import controller
from burst_ensemble.core.over import books_of_earlier_run, is_over, members_with_pending
from burst_ensemble.core.record import (
    EnsembleRecord,
    EnsembleStart,
    EnsembleState,
    MemberBook,
    books_of,
    ensembles_of,
    starts_of,
    with_ensembles,
)
from burst_ensemble.core.sizes import resized
from burst_ensemble.core.wishes import Wish, give_jobs

KEPT_ENDED = 20
"""Ensembles that have ended and are still on record, beside those that are kept."""


def begin_ensemble(
    records: Records, world: World, new: EnsembleStart, now: float
) -> Records:
    """Put an ensemble on record; its members are made by its first step.

    `new` is without slots: each member gets one in which it can have its `max`. Raises
    BurstError.
    """
    spec = new.spec
    before = ensembles_of(records).get(spec.name)
    pending = members_with_pending(world.lead)
    if before is not None and not is_over(records, spec.name, pending):
        raise BurstError(
            f"an ensemble {spec.name} is there already",
            f"burst ensemble down {spec.name} ends it, burst ensemble status shows it",
        )
    began = now
    if before is not None and int(before.record.started) == int(now):
        began = int(now) + 1.0  # it is in the names of jobs, by which they are found
    slots = _choose_slots(records, world, spec)
    file = msgspec.structs.replace(new, slots=slots)
    books = {
        **_without(books_of(records), [spec.name]),
        **books_of_earlier_run(records, world.lead, file, now),
    }
    after = with_ensembles(
        records,
        ensembles={
            **ensembles_of(records),
            spec.name: EnsembleState(record=controller.new_record(spec, began)),
        },
        starts={**starts_of(records), spec.name: file},
        books=books,
    )
    return _forget_oldest(after, pending, spec.name)


def begin_once(
    records: Records, world: World, new: EnsembleStart, now: float
) -> Records:
    """Put an ensemble on record for good, unless one of its name is there or was.

    Raises BurstError.
    """
    if new.tables["name"] in ensembles_of(records):
        return records
    kept = msgspec.structs.replace(new, is_kept=True)
    return begin_ensemble(records, world, kept, now)


def take_down_ensemble(records: Records, name: str, why: str, now: float) -> Records:
    """Have all members of an ensemble end, for good. Raises BurstError."""
    state = ensembles_of(records).get(name)
    if state is None:
        names = ", ".join(sorted(ensembles_of(records))) or "none"
        raise BurstError(f"there is no ensemble {name}", f"known ones: {names}")
    ended = controller.end_all(state.record, why, now)
    return with_record(records, name, ended)


def submit_jobs(
    records: Records, name: str, member: str, group: str, count: int
) -> Records:
    """Give further jobs of an entry of `jobs` to a member. Raises BurstError."""
    state = _running(records, name, member)
    spec = starts_of(records)[name].spec
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
    return with_record(records, name, record)


def resize_member(
    records: Records, name: str, member: str, nodes: int, now: float
) -> Records:
    """Have a member grow or shrink now; its algorithm may change that again.

    Raises BurstError.
    """
    state = _running(records, name, member)
    spec = starts_of(records)[name].spec.member(member)
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
    return with_record(records, name, record)


def _running(records: Records, name: str, member: str) -> EnsembleState:
    """Return the state of an ensemble of which a member runs. Raises BurstError."""
    state = ensembles_of(records).get(name)
    known = state.record.members if state else {}
    if state is None or member not in known:
        names = ", ".join(f"{name}/{each}" for each in known) or "none"
        raise BurstError(f"there is no {name}/{member}", f"known ones: {names}")
    if known[member].ended is not None:
        raise BurstError(f"{name}/{member} has ended: {known[member].why}")
    return state


def _choose_slots(
    records: Records, world: World, spec: EnsembleSpec
) -> dict[str, tuple[str, ...]]:
    """Return for each member the hosts of a rank slot that no other ensemble has."""
    pending = members_with_pending(world.lead)
    taken = {
        hosts
        for name, file in starts_of(records).items()
        if name in ensembles_of(records) and not is_over(records, name, pending)
        for hosts in file.slots.values()
    }
    chosen: dict[str, tuple[str, ...]] = {}
    # The largest first, so that small members leave the large slots to them.
    joined = (member for member in spec.members if member.mode == "joined")
    for member in sorted(joined, key=lambda each: -each.max):
        fit = [
            slot
            for slot in world.slots
            if slot.size >= member.max
            and slot.hosts not in taken
            and _is_for(slot, member.provider, world)
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


def _is_for(slot: RankSlot, provider: str, world: World) -> bool:
    """Tell whether bursts of a provider may be in a slot; see `class_of`."""
    kept = slot.properties & world.providers.keys()
    return not kept or provider in kept


def _without(
    books: Mapping[str, MemberBook], names: Iterable[str]
) -> dict[str, MemberBook]:
    gone = tuple(f"{name}/" for name in names)
    return {key: book for key, book in books.items() if not key.startswith(gone)}


def _forget_oldest(records: Records, pending: Collection[Tag], but: str) -> Records:
    """Forget ensembles that have ended, but for the last of them."""
    over = [
        name
        for name in ensembles_of(records)
        if name != but
        and is_over(records, name, pending)
        and not starts_of(records)[name].is_kept
    ]
    over.sort(key=lambda name: ensembles_of(records)[name].record.ended or 0.0)
    gone = over[: max(0, len(over) - KEPT_ENDED)]
    if not gone:
        return records
    return with_ensembles(
        records,
        ensembles={k: v for k, v in ensembles_of(records).items() if k not in gone},
        starts={k: v for k, v in starts_of(records).items() if k not in gone},
        books=_without(books_of(records), gone),
    )


def with_record(records: Records, name: str, record: EnsembleRecord) -> Records:
    """Return the records with another record of an ensemble."""
    return with_state(records, name, record=record)


def with_state(records: Records, name: str, **changes: object) -> Records:
    """Return the records with these fields of an ensemble's state changed."""
    before = ensembles_of(records)[name]
    state = msgspec.structs.replace(before, **changes)
    if state == before:
        return records
    return with_ensembles(records, ensembles={**ensembles_of(records), name: state})
