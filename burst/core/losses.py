# SPDX-License-Identifier: MIT
"""Nodes that a burst loses although the daemon did not ask for it, and the cause.

The lead sees at once that a rank is gone; the provider may report the cause a moment
later, which is recorded, too. The cause stays on record after the provider has started
the follower again, for the users whose jobs ran there.

Nodes may be taken for others: by the cloud, if they are spot nodes, or by pods of a
higher priority. That is recorded when it is first reported, since its source, such as a
preempted pod, soon disappears. The burst then has the same time as any burst that lost
ranks: if its provider starts the followers elsewhere it goes on, else it ends as
reclaimed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from burst.core.actions import TellJobs
from burst.core.lifecycle import UNDER_WAY
from burst.core.observation import ProviderPhase, provider_phase, status_of
from burst.core.records import Transaction
from burst.model.burst import Burst, JobTimes, State
from burst.model.event import Event, cut
from burst.model.jobid import JobId
from burst.model.lead import ALLOCATED, JobView
from burst.model.ranks import format_hostlist, format_idset, parse_hostlist, parse_idset
from burst.provider import BurstStatus, Failure, Phase

_HostsByCause = Mapping[str, Sequence[str]]

_LATE_S = 60.0
"""The lead may see a job fail this many seconds before the provider says why."""


_LEAD_ANEW = "had to join again, as the lead was restarted"
_LEAD_ENDS = "had to end, as the lead shuts down"
_ANEW_S = 600.0
"""For how many seconds after a start of the lead a loss of its followers is attributed
to that start: longer than the daemon looks for a lead that is away."""


def record_loss(tx: Transaction, burst: Burst) -> None:
    """Record which ranks of a burst are lost and why, if that has changed."""
    gone = burst.expected - tx.lead.online
    told, seen = _why_lost(tx, burst, gone)
    context = {"ranks": format_idset(gone), "since": burst.lost_since or tx.now}
    known = last_event(burst, "lost") if burst.lost_since is not None else None
    if known is None:
        note = cut(_joined("", told or seen))
    else:
        before = known.context.get("note", "")
        # The cause of a loss is kept after that rank is back.
        note = cut(_joined(before, told) or _joined("", seen))
        if note == before and gone <= parse_idset(known.context.get("ranks", "")):
            return
    tx.record(burst.id, "lost", {**context, "note": note} if note else context)


def record_lost_pods(tx: Transaction, burst: Burst) -> Burst:
    """Record which followers of an online isolated burst were lost, but not reclaimed.

    The lead does not know them, so the provider's report is all there is; it ends when
    they run again, and their program may fail later. Return the burst after that.
    """
    status = status_of(burst, tx.world)
    if burst.state is not State.ONLINE or status is None:
        return burst
    told: dict[str, list[str]] = defaultdict(list)
    for follower in status.followers:
        if follower.lost and not follower.reclaimed:
            told[follower.lost].append(follower.host)
    before = cause_of_loss(burst)
    note = cut(_joined(before, told))
    if note == before:
        return burst
    since = burst.lost_since or tx.now
    return tx.record(burst.id, "lost", {"ranks": "", "since": since, "note": note})


def last_event(burst: Burst, name: str) -> Event | None:
    """Return the last event of that name; None if there was none."""
    found = [event for event in burst.events if event.name == name]
    return found[-1] if found else None


def cause_of_loss(burst: Burst) -> str:
    """Return what took followers of a burst away; empty if that is not known."""
    return _last_note(burst, "lost")


def _last_note(burst: Burst, name: str) -> str:
    event = last_event(burst, name)
    return event.context.get("note", "") if event else ""


def _why_lost(
    tx: Transaction, burst: Burst, ranks: AbstractSet[int]
) -> tuple[_HostsByCause, _HostsByCause]:
    """Return why these ranks were lost: as the provider reports, and as observed."""
    status = status_of(burst, tx.world)
    seen: dict[str, list[str]] = defaultdict(list)
    if lost_its_lead(tx, burst):
        ends = tx.lead.shuts_down
        hosts = zip(burst.lease.ranks, burst.lease.hosts, strict=True)
        gone = [host for rank, host in hosts if rank in ranks]
        seen[_LEAD_ENDS if ends else _LEAD_ANEW] = gone
    if status is None or provider_phase(burst, tx.world) is ProviderPhase.UNREAD:
        return {}, seen
    followers = {follower.host: follower for follower in status.followers}
    told: dict[str, list[str]] = defaultdict(list)
    for rank, host in zip(burst.lease.ranks, burst.lease.hosts, strict=True):
        follower = followers.get(host)
        if rank not in ranks:
            continue
        if follower is None:
            seen["is not shown by its provider any more"].append(host)
        elif follower.phase is Phase.ENDING:
            seen["is being deleted, and not by burst"].append(host)
        elif follower.lost:
            told[follower.lost].append(host)
    return told, seen


def lost_its_lead(tx: Transaction, burst: Burst) -> bool:
    """Tell whether the lead shuts down, or was restarted while the burst was online.

    The latter counts only until all ranks are back, and for at most _ANEW_S.
    """
    if tx.world.lead is not None and tx.world.lead.shuts_down:
        return True
    started = tx.world.identity.started
    whole = max(
        (event.timestamp for event in burst.events if event.name in ("online", "back")),
        default=burst.since,
    )
    return whole < started and tx.now < started + _ANEW_S


def _joined(before: str, causes: _HostsByCause) -> str:
    """Return a note with these causes added; hosts with the same cause are united."""
    for why, hosts in causes.items():
        known = re.search(rf"(?:(?<=; )|\A)(\S+) {re.escape(why)}(?=;|\Z)", before)
        named = _hosts_in(known[1]) if known else []
        # By number: a shorter name of the same hosts has the lower one.
        ordered = sorted({*named, *hosts}, key=lambda host: (len(host), host))
        told = f"{format_hostlist(ordered)} {why}"
        if known and named:
            before = f"{before[: known.start()]}{told}{before[known.end() :]}"
        else:
            before = f"{before}; {told}" if before else told
    return before


def _hosts_in(text: str) -> list[str]:
    """Return the hosts of a hostlist; empty if the text is not a hostlist."""
    try:
        return list(parse_hostlist(text))
    except ValueError:
        return []


def taken_from(burst: Burst, job_id: JobId, job: JobView | None) -> str:
    """Return what took a job's nodes; empty if it completed, or nothing is known.

    `job` is the lead's view of the job, which may have run on a burst that was not made
    for it; None if the lead does not show it.
    """
    known = dict(burst.sums.recent).get(job_id) or burst.times.get(job_id)
    times, had = known, frozenset[int]()
    if job is not None and (had := job.has_or_had):
        finished = job.t_finish or None
        times = JobTimes(
            submitted=0.0, started=job.t_start, finished=finished, result=job.result
        )
    said = ""
    if times is not None and burst.lease.isolated is not None:
        # Flux has the job start as its result is known. Until then the decision on the
        # job says what its provider says.
        began = burst.first("online") if times.finished else None
        times = msgspec.structs.replace(times, started=began)
        # If the burst failed, its job's end has this note.
        said = _last_note(burst, "exception")
    for event, note in _told_losses(burst):
        if times is None or not note or note in said:
            continue
        ranks = parse_idset(event.context.get("ranks", ""))
        at = event.context.get("since", event.timestamp)
        # An isolated burst has no ranks that could tell who was there.
        mine = known is not None or bool(ranks)
        if mine and _was_there(had, ranks) and _ran_until(times, at):
            return f"burst {burst.id}: {note}"
    return ""


def _told_losses(burst: Burst) -> Iterator[tuple[Event, str]]:
    """Yield the last events of lost nodes, and why those were lost as far as known.

    A burst may end before the cause of its loss is known: why it ended is the cause.
    """
    if reclaimed := last_event(burst, "reclaimed"):
        yield reclaimed, reclaimed.context["note"]
    if lost := last_event(burst, "lost"):
        later = burst.events[burst.events.index(lost) :]
        is_back = any(event.name == "back" for event in later)
        why = "" if is_back else _last_note(burst, "exception")
        yield lost, lost.context.get("note") or why


def _ran_until(times: JobTimes, at: float) -> bool:
    """Tell whether a job ran when nodes were taken at `at`, and did not complete."""
    if times.started is None or times.result == "completed":
        return False
    over = times.finished is not None and times.finished < at - _LATE_S
    return times.started <= at and not over


def record_reclaim(tx: Transaction, burst: Burst) -> Burst:
    """Record that nodes of a burst are reclaimed, and write it to memos of jobs there.

    Return the burst after that.
    """
    if burst.reclaimed or burst.state not in UNDER_WAY:
        return burst
    status = status_of(burst, tx.world)
    if status is None or provider_phase(burst, tx.world) is ProviderPhase.UNREAD:
        return burst
    note = _report(status)
    if not note:
        return burst
    ranks = _reclaimed_ranks(burst, status)
    context = {"note": note, "ranks": format_idset(ranks)}
    after = tx.record(burst.id, "reclaimed", context)
    jobs = tx.world.lead.jobs if tx.world.lead else {}
    running = [
        job
        for job in sorted(burst.jobs & jobs.keys())
        if jobs[job].state in ALLOCATED and _was_there(jobs[job].has_or_had, ranks)
    ]
    if running:
        why = f"burst {burst.id}: {note}"
        tx.actions.append(TellJobs(tuple(running), {"state": "reclaimed", "why": why}))
    return after


def is_restored(tx: Transaction, burst: Burst) -> bool:
    """Tell whether nodes of a burst were reclaimed and all its followers run again."""
    status = status_of(burst, tx.world)
    running = provider_phase(burst, tx.world) is ProviderPhase.RUNNING
    return bool(burst.reclaimed and running and status and not _report(status))


def _reclaimed_ranks(burst: Burst, status: BurstStatus) -> frozenset[int]:
    """Return the ranks that were reclaimed; all ranks if no follower is named."""
    taken = {follower.host for follower in status.followers if follower.reclaimed}
    # An isolated burst has no ranks.
    hosts = zip(burst.lease.ranks, burst.lease.hosts, strict=False)
    return frozenset(rank for rank, host in hosts if host in taken or not taken)


def _was_there(had: frozenset[int], ranks: frozenset[int]) -> bool:
    """Tell whether a job that had these ranks had one of `ranks`, or may have."""
    return not had or not ranks or not had.isdisjoint(ranks)


def _report(status: BurstStatus) -> str:
    """Return the provider's report about reclaimed nodes; empty if there are none."""
    taken = [follower for follower in status.followers if follower.reclaimed]
    if not taken and status.failure is not Failure.RECLAIMED:
        return ""
    hosts = ", ".join(follower.host for follower in taken) or "its nodes"
    why = next((f.why for f in taken if f.why), "") or status.why
    return f"the provider reclaimed {hosts}" + (f" ({why})" if why else "")
