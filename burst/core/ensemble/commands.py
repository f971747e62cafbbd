# SPDX-License-Identifier: MIT
"""What begins, steps and ends ensembles, as changes of the records.

Each is stored as a whole before anything of it is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from burst.config import Settings
from burst.config.ensemble import EnsembleSpec, MemberSpec
from burst.core.actions import FailJob
from burst.core.burst_actions import take_down
from burst.core.commands import (
    describe_request,
    make_requested_burst,
    request_member,
)
from burst.core.ensemble import controller
from burst.core.ensemble.answers import Wish
from burst.core.ensemble.giving import give_jobs
from burst.core.ensemble.intents import (
    SUBMIT_MOST,
    EndMember,
    Intent,
    ResizeMember,
)
from burst.core.ensemble.read_members import (
    bursts_of,
    usable_bursts,
    wanted_nodes,
)
from burst.core.ensemble.record import EnsembleRecord
from burst.core.ensemble.sizes import resized
from burst.core.ensemble.stored import (
    EnsembleStart,
    EnsembleState,
    MemberBook,
    spec_tables,
)
from burst.core.placement.slots import RankSlot
from burst.core.records import ASSIGNABLE, Records, Transaction
from burst.core.resize_request import WantedSize, resize_burst
from burst.core.tick import TickResult
from burst.core.world import World
from burst.errors import BurstError, Unreadable
from burst.model.burst import Burst, Membership
from burst.model.lead import JobState
from burst.model.ranks import format_hostlist

KEPT_ENDED = 20
"""Ensembles that have ended and are still on record, beside those that are kept."""
_PENDING = (JobState.DEPEND, JobState.PRIORITY, JobState.SCHED)


class NewEnsemble(msgspec.Struct, frozen=True, kw_only=True):
    """An ensemble to be started."""

    spec: EnsembleSpec
    userid: int
    environment: Mapping[str, str]
    is_kept: bool = False
    """See `EnsembleStart`."""


class StepTaken(msgspec.Struct, frozen=True, kw_only=True):
    """What a step came to, and what was read of the members for it."""

    before: EnsembleRecord
    """On which the step rests."""
    record: EnsembleRecord
    books: Mapping[str, MemberBook]
    intents: tuple[Intent, ...]


def begin_ensemble(
    records: Records, world: World, new: NewEnsemble, now: float
) -> TickResult:
    """Put an ensemble on record; its members are made by its first step.

    Each member gets a rank slot in which it can have its `max`. Raises BurstError.
    """
    spec = new.spec
    before = records.ensembles.get(spec.name)
    if before is not None and not is_over(records, spec.name):
        raise BurstError(
            f"an ensemble {spec.name} is there already",
            f"burst ensemble down {spec.name} ends it, burst ensemble status shows it",
        )
    slots = _choose_slots(records, world, spec)
    file = EnsembleStart(
        tables=spec_tables(spec),
        userid=new.userid,
        environment=new.environment,
        slots=slots,
        is_kept=new.is_kept,
    )
    books = _without(records.ensemble_books, [spec.name])
    after = msgspec.structs.replace(
        records,
        ensembles={
            **records.ensembles,
            spec.name: EnsembleState(record=controller.new_record(spec, now)),
        },
        ensemble_starts={**records.ensemble_starts, spec.name: file},
        ensemble_books=books,
    )
    return _result(Transaction(_forget_oldest(after, spec.name), now))


def begin_once(
    records: Records, world: World, new: NewEnsemble, now: float
) -> TickResult:
    """Put an ensemble on record for good, unless one of its name is there or was.

    Raises BurstError.
    """
    if new.spec.name in records.ensembles:
        return _result(Transaction(records, now))
    kept = msgspec.structs.replace(new, is_kept=True)
    return begin_ensemble(records, world, kept, now)


def take_down_ensemble(records: Records, name: str, why: str, now: float) -> TickResult:
    """Have all members of an ensemble end, for good. Raises BurstError."""
    state = records.ensembles.get(name)
    if state is None:
        names = ", ".join(sorted(records.ensembles)) or "none"
        raise BurstError(f"there is no ensemble {name}", f"known ones: {names}")
    ended = controller.end_all(state.record, why, now)
    return _result(Transaction(_with_record(records, name, ended), now))


def submit_jobs(
    records: Records, name: str, member: str, group: str, count: int
) -> Records:
    """Give further jobs of an entry of `jobs` to a member. Raises BurstError."""
    state = _running(records, name, member)
    spec = records.ensemble_starts[name].spec
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
    return _with_record(records, name, record)


def resize_member(
    records: Records, name: str, member: str, nodes: int, now: float
) -> Records:
    """Have a member grow or shrink now; its algorithm may change that again.

    Raises BurstError.
    """
    state = _running(records, name, member)
    spec = records.ensemble_starts[name].spec.member(member)
    if not spec.min <= nodes <= spec.max:
        raise BurstError(
            f"{nodes} nodes cannot be had for {name}/{member}",
            f"the file allows {spec.min} to {spec.max}",
        )
    before = state.record.members[member]
    after = resized(before, nodes, "resized by hand", now)
    members = {**state.record.members, member: after}
    record = msgspec.structs.replace(state.record, members=members)
    return _with_record(records, name, record)


def unchanged(records: Records) -> TickResult:
    """Return the result that has these records, and nothing to be done."""
    return _result(Transaction(records, 0.0))


def is_outdated(records: Records, step: StepTaken) -> bool:
    """Tell whether a person has changed the ensemble since a step was begun.

    Such a step is not applied: it would take that back.
    """
    state = records.ensembles.get(step.record.name)
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
    books = {f"{name}/{member}": book for member, book in step.books.items()}
    kept = {
        key: records.ensemble_books.get(key) if key not in books else books[key]
        for key in {**records.ensemble_books, **books}
    }
    same = {
        key: records.ensemble_books[key]
        if records.ensemble_books.get(key) == book
        else book
        for key, book in kept.items()
        if book is not None
    }
    records = msgspec.structs.replace(
        _with_record(records, name, step.record), ensemble_books=same
    )
    results = [_result(Transaction(records, now))]
    refused: dict[str, str] = {}
    file = records.ensemble_starts[name]
    spec = file.spec
    for intent in step.intents:
        records = results[-1].records
        membership = file.membership(intent.member)
        if isinstance(intent, EndMember):
            results.append(_end_member(records, world, membership, intent.why, now))
        elif isinstance(intent, ResizeMember):
            resize = _Resize(spec.member(intent.member), membership, file, intent)
            made, why = resize.apply(records, _Now(world, settings, now))
            results.append(made)
            if why:
                refused[intent.member] = why
    return _with_refused(_joined(results), name, refused)


def confirm_intents(
    records: Records,
    name: str,
    intents: Iterable[Intent],
    refused: Mapping[str, str],
    now: float,
) -> TickResult:
    """Record that jobs were submitted and commands run.

    `refused` is why the lead did not take a job, by member.
    """
    record = records.ensembles[name].record
    for intent in intents:
        record = controller.confirm(record, intent)
    records = _with_record(records, name, record)
    state = msgspec.structs.replace(records.ensembles[name], jobs_refused=refused)
    records = msgspec.structs.replace(
        records, ensembles={**records.ensembles, name: state}
    )
    return _result(Transaction(records, now))


def is_over(records: Records, name: str) -> bool:
    """Tell whether an ensemble has ended and nothing of it is left."""
    state = records.ensembles[name]
    if state.record.ended is None:
        return False
    return not any(_is_of(burst, name) for burst in records.live)


def lost_members(records: Records) -> list[Burst]:
    """Return the live bursts of ensembles that are not on record.

    Their record was lost or cannot be read: nobody would ever end them.
    """
    return [
        burst
        for burst in records.live
        if burst.lease.member is not None
        and burst.lease.member.name.partition("/")[0] not in records.ensembles
        and burst.state in ASSIGNABLE
        and not burst.quarantined
    ]


def take_down_lost(records: Records, now: float) -> TickResult:
    """Take down bursts of ensembles that are not on record."""
    tx = Transaction(records, now)
    for burst in lost_members(records):
        take_down(tx, burst, "its ensemble is not on record any more")
    return _result(tx)


def _running(records: Records, name: str, member: str) -> EnsembleState:
    """Return the state of an ensemble of which a member runs. Raises BurstError."""
    state = records.ensembles.get(name)
    known = state.record.members if state else {}
    if state is None or member not in known:
        names = ", ".join(f"{name}/{each}" for each in known) or "none"
        raise BurstError(f"there is no {name}/{member}", f"known ones: {names}")
    if known[member].ended is not None:
        raise BurstError(f"{name}/{member} has ended: {known[member].why}")
    return state


class _Now(NamedTuple):
    """By what a step changes bursts."""

    world: World
    settings: Settings
    now: float


class _Resize:
    """Makes a member larger or smaller.

    Where its provider can resize a burst, one that is online is. Else, or where that
    cannot be, a member grows by further bursts in the rest of its rank slot, and
    shrinks by whole bursts on which nothing runs.
    """

    def __init__(
        self, member: MemberSpec, of: Membership, start: EnsembleStart, to: ResizeMember
    ) -> None:
        self._member, self._of = member, of
        self._slot = format_hostlist(start.slots.get(member.name, ()))
        self._nodes, self._why = to.nodes, to.why

    def apply(self, records: Records, at: _Now) -> tuple[TickResult, str]:
        """Return what is changed, and why it is not as large as it should be."""
        live = usable_bursts(records, self._of)
        more = self._nodes - sum(map(wanted_nodes, live))
        if more <= 0:
            return self._shrink(records, -more, at), ""
        # Nodes that leave are paid until they are gone.
        paid = sum(burst.lease.nodes for burst in bursts_of(records, self._of))
        more = min(more, self._member.max - paid)
        if more <= 0:
            return unchanged(records), "nodes that it gives back are not gone yet"
        return self._grow(records, more, at)

    def _grow(self, records: Records, more: int, at: _Now) -> tuple[TickResult, str]:
        """Have a burst grow, or request one; of fewer nodes where need be."""
        offer, why = (self._member.provider, self._member.offer), ""
        nodes = more
        while nodes:
            for burst in usable_bursts(records, self._of):
                grown = self._resize(records, burst, nodes, at)
                if grown is not None:
                    return grown, why
            demand = request_member(nodes, offer, self._slot, self._of)
            made, decision = make_requested_burst(
                records, at.world, at.settings, demand, at.now
            )
            if made.records.bursts.keys() != records.bursts.keys():
                return made, why
            why = why or describe_request(decision, demand)
            nodes //= 2
        return made, why

    def _shrink(self, records: Records, fewer: int, at: _Now) -> TickResult:
        """Take down whole bursts, the newest first; then have one shrink."""
        tx = Transaction(records, at.now)
        for burst in reversed(usable_bursts(records, self._of)):
            if burst.lease.nodes <= fewer and not burst.jobs:
                take_down(tx, burst, self._why)
                fewer -= burst.lease.nodes
        result = _result(tx)
        for burst in reversed(usable_bursts(result.records, self._of)):
            if 0 < fewer < wanted_nodes(burst):
                shrunk = self._resize(result.records, burst, -fewer, at)
                if shrunk is not None:
                    return _joined([result, shrunk])
        return result

    def _resize(
        self, records: Records, burst: Burst, more: int, at: _Now
    ) -> TickResult | None:
        """Have a burst grow or shrink; None where that cannot be now."""
        wanted = WantedSize(burst.id, wanted_nodes(burst) + more, self._why)
        try:
            return resize_burst(records, at.world, at.settings, wanted, at.now)[0]
        except BurstError:
            return None


def _end_member(
    records: Records, world: World, of: Membership, why: str, now: float
) -> TickResult:
    """Take its bursts down, and cancel its jobs that wait; what runs goes on."""
    assert world.lead is not None
    tx = Transaction(records, now)
    for burst in bursts_of(records, of):
        take_down(tx, burst, why)
    tx.actions += [
        FailJob(job.id, f"{of.name} has ended: {why}")
        for job in world.lead.jobs.values()
        if job.preferences.member == of.name
        and job.userid == of.userid
        and job.state in _PENDING
    ]
    return _result(tx)


def _choose_slots(
    records: Records, world: World, spec: EnsembleSpec
) -> dict[str, tuple[str, ...]]:
    """Return for each member the hosts of a rank slot that no other ensemble has."""
    taken = {
        hosts
        for name, file in records.ensemble_starts.items()
        if name in records.ensembles and not is_over(records, name)
        for hosts in file.slots.values()
    }
    chosen: dict[str, tuple[str, ...]] = {}
    # The largest first, so that small members leave the large slots to them.
    for member in sorted(spec.members, key=lambda each: -each.max):
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


def _is_of(burst: Burst, name: str) -> bool:
    member = burst.lease.member
    return member is not None and member.name.startswith(f"{name}/")


def _with_record(records: Records, name: str, record: EnsembleRecord) -> Records:
    state = msgspec.structs.replace(records.ensembles[name], record=record)
    if state == records.ensembles[name]:
        return records
    return msgspec.structs.replace(
        records, ensembles={**records.ensembles, name: state}
    )


def _with_refused(
    result: TickResult, name: str, refused: Mapping[str, str]
) -> TickResult:
    state = result.records.ensembles[name]
    if state.refused == refused:
        return result
    changed = msgspec.structs.replace(state, refused=refused)
    records = msgspec.structs.replace(
        result.records, ensembles={**result.records.ensembles, name: changed}
    )
    return msgspec.structs.replace(result, records=records)


def _without(
    books: Mapping[str, MemberBook], names: Iterable[str]
) -> dict[str, MemberBook]:
    gone = tuple(f"{name}/" for name in names)
    return {key: book for key, book in books.items() if not key.startswith(gone)}


def _forget_oldest(records: Records, but: str) -> Records:
    """Forget ensembles that have ended, but for the last of them."""
    over = [
        name
        for name in records.ensembles
        if name != but
        and is_over(records, name)
        and not records.ensemble_starts[name].is_kept
    ]
    over.sort(key=lambda name: records.ensembles[name].record.ended or 0.0)
    gone = over[: max(0, len(over) - KEPT_ENDED)]
    if not gone:
        return records
    return msgspec.structs.replace(
        records,
        ensembles={k: v for k, v in records.ensembles.items() if k not in gone},
        ensemble_starts={
            k: v for k, v in records.ensemble_starts.items() if k not in gone
        },
        ensemble_books=_without(records.ensemble_books, gone),
    )


def _joined(results: list[TickResult]) -> TickResult:
    """Return what all of these decided, one after the other."""
    return TickResult(
        records=results[-1].records,
        events=tuple(event for result in results for event in result.events),
        actions=tuple(action for result in results for action in result.actions),
        decisions={},
    )


def _result(tx: Transaction) -> TickResult:
    return TickResult(
        records=tx.result(),
        events=tuple(tx.events),
        actions=tuple(tx.actions),
        decisions={},
    )
