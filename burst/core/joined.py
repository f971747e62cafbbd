# SPDX-License-Identifier: MIT
"""How bursts that join the lead behave where they differ from isolated ones."""

from __future__ import annotations

import math

from burst.config import Settings
from burst.core.actions import DrainBurst
from burst.core.cost import idle_limit, kept_idle
from burst.core.job_events import record_job_events, record_late_ends
from burst.core.lifecycle import COMING_UP
from burst.core.losses import (
    cause_of_loss,
    is_restored,
    lost_its_lead,
    record_loss,
    record_reclaim,
)
from burst.core.money.accounts import reserve_longer
from burst.core.observation import (
    FAILURES,
    Observation,
    RanksOnline,
    failure_kind,
    failure_note,
    is_made,
    look_up,
    provider_message,
    provider_phase,
    rank_count,
    ranks_of,
    reported_message,
)
from burst.core.plan.offers import drain_time
from burst.core.plan.slots import DRAIN_TAG
from burst.core.records import ASSIGNABLE, UNNEEDED, RecordChanges, Transaction
from burst.core.standing import is_needed
from burst.core.unusable_bursts import (
    count_failed_soon,
    count_flux_drain,
    find_flux_drain,
    forget_unusable,
)
from burst.core.world import World
from burst.model.burst import (
    CAPACITY,
    LEAD_MOVED,
    RECLAIMED,
    WITH_LEAD,
    Burst,
    Result,
    State,
)
from burst.model.decision import GUESTS_WORDS, Decision
from burst.model.fsd import format_fsd
from burst.model.lead import JobState
from burst.model.ranks import format_idset
from burst.model.reason import Reason

# The reason why followers do not join if their provider reports no error.
_NO_ERROR = (
    "no error was reported. Usually the lead's address or port is wrong, or a firewall"
    " drops the connection; run burst doctor"
)
_LEAD_ANEW = "the lead was restarted while the burst came up"
_OLD_ADDRESS = (
    "it was made with an old address of the lead, which followers cannot reach; the"
    " address is now"
)
_ENDED_WITH_LEAD = "its followers ended when the lead ended"


def _comes_up_since_before(burst: Burst, moment: float) -> bool:
    """Tell whether a burst was made before `moment` and is still coming up."""
    comes_up = burst.state in COMING_UP
    return comes_up and burst.lease.created < moment


class JoinedBehaviour:
    """The behaviour of bursts that join the lead; see `burst.core.behaviour`."""

    def record_states(self, tx: Transaction, burst: Burst) -> None:
        """Record the states that a live burst has reached, from what was read."""
        record_reclaim(tx, burst)
        if tx.world.lead is not None and burst.state is not State.NEW:
            new = tx.world.lead.online & ranks_of(burst, tx.world) - burst.joined_ranks
            if new:
                tx.record(burst.id, "joined", {"ranks": format_idset(new)})
        while True:
            burst = tx.bursts[burst.id]
            ranks = rank_count(burst, tx.world)
            what = look_up(burst.state, provider_phase(burst, tx.world), ranks)
            all_up = ranks is RanksOnline.ALL
            if what is Observation.STARTED and not (all_up or is_made(burst, tx.world)):
                # What runs may be all that a failed call created.
                break
            if what is None:
                why = "no rule covers what its record, Flux and its provider show"
                tx.quarantine(burst.id, why)
                return
            if not _record_observation(tx, burst, what):
                break
        if what in FAILURES:
            _fail(tx, burst, what)

    def record_jobs(self, tx: Transaction, burst: Burst) -> None:
        """Record what became of a burst's jobs, and since when nothing runs on it."""
        if not burst.live:
            record_late_ends(tx, burst)
            return
        record_job_events(tx, burst)
        burst = tx.bursts[burst.id]
        count_failed_soon(tx, burst)
        forget_unusable(tx, burst)
        _record_use(tx, burst)

    def act(self, tx: Transaction, burst: Burst) -> None:
        """Provision a new burst; drain an online burst that is not needed any more."""
        changed = len(ranks_of(burst, tx.world)) < burst.lease.nodes
        if burst.state in ASSIGNABLE and changed:
            # Its followers were started with the lead's earlier ranks.
            tx.fail(burst.id, "lost", "the lead now has other hosts at its ranks")
        elif _comes_up_since_before(burst, tx.world.identity.moved):
            # Followers of an online burst have joined; those of this burst cannot.
            note = f"{_OLD_ADDRESS} {tx.world.identity.endpoint}"
            tx.fail(burst.id, LEAD_MOVED, note)
        elif burst.state is State.NEW:
            tx.start_provision(burst.id)
        elif burst.state is State.ONLINE and tx.world.lead is not None:
            _act_online(tx, burst)

    def may_end_late(self, *_: object) -> bool:
        """Tell whether a deadline or a refusal may end a burst: always.

        The lead shows what joined; jobs of the burst are placed again.
        """
        return True

    def end_late_join(self, tx: Transaction, burst: Burst) -> None:
        """Fail a burst whose ranks did not all join, or keep the ranks that joined."""
        if keep_part(tx, burst):
            return
        online, missing = _joined_and_missing(tx, burst)
        hosts = dict(zip(burst.lease.ranks, burst.lease.hosts, strict=True))
        names = ", ".join(hosts[rank] for rank in missing)
        note = (
            f"{len(online)} of {len(hosts)} nodes joined within"
            f" {format_fsd(tx.settings.deadlines.join)}; missing {names}:"
            f" {provider_message(burst, tx.world) or _NO_ERROR}"
        )
        tx.fail_late(burst, note)

    def take_down_online(self, tx: RecordChanges, burst: Burst, note: str) -> None:
        """Drain an online burst; what runs on it continues to its end."""
        begin_drain(tx, burst, Result.CANCELED, note)

    def next_deadline(
        self, burst: Burst, settings: Settings, started: float, now: float
    ) -> float:
        """Return when an online burst will be drained or given up; else math.inf.

        `started` is the start of the lead.
        """
        if burst.state is not State.ONLINE:
            return math.inf
        ends = [_drained_from(burst, settings)]
        if burst.idle_since is not None:
            ends.append(burst.idle_since + idle_limit(burst, settings))
        lost = _lost_from(burst, started, now)
        if lost is not None:
            ends.append(lost + settings.deadlines.rejoin)
        return min(ends)

    def nodes_up(self, burst: Burst, world: World, /) -> int | None:
        """Return how many of its ranks are online, or joined if it has ended.

        None if the lead cannot be read.
        """
        ranks = burst.lease.ranks
        if not burst.live:
            # Its ranks may be leased by another burst by now.
            return len(burst.joined_ranks.intersection(ranks))
        return len(world.lead.online.intersection(ranks)) if world.lead else None

    def decide(self, burst: Burst, world: World, lease_end: str, /) -> Decision:
        """Return the decision on a job that waits for the burst.

        `lease_end` is the text for the job about the end of its leases.
        """
        message = provider_message(burst, world)
        reported = reported_message(burst, world)
        facts = {
            "burst": burst.id,
            "state": burst.resize.kind if burst.resize else burst.state.value,
            "online": self.nodes_up(burst, world),
            "nodes": len(burst.lease.ranks),
            "words": f": {message}" if message else "",
            GUESTS_WORDS: f": {reported}" if reported else "",
            "ends": lease_end,
        }
        return Decision(Reason.COMING, facts)


def keep_part(tx: Transaction, burst: Burst, lack: str = "") -> bool:
    """Keep what joined of a burst that gets no more nodes, by `[plan] partial`.

    `lack` is why there are no more, if its provider lacks them: the offer is then set
    aside for as many nodes. Tell whether it is kept; an isolated burst is not.
    """
    online, missing = _joined_and_missing(tx, burst)
    if not online or tx.settings.plan.partial != "keep":
        return False
    context = {"ranks": format_idset(online), "missing": format_idset(missing)}
    tx.record(burst.id, "online", context)
    tx.forgive(burst)
    if lack:
        tx.cool_down(burst, lack, len(missing))
    return True


def _joined_and_missing(tx: Transaction, burst: Burst) -> tuple[list[int], list[int]]:
    """Return the ranks of a burst that are online, and the others."""
    ranks = burst.lease.ranks
    online = tx.lead.online.intersection(ranks)
    return sorted(online), [rank for rank in ranks if rank not in online]


def begin_drain(tx: RecordChanges, burst: Burst, result: Result, note: str) -> None:
    """Drain an online burst; it is reaped afterwards."""
    ranks = format_idset(burst.lease.ranks)
    context = {"ranks": ranks, "result": result.value, "note": note}
    tx.record(burst.id, "drain", context)
    tx.actions.append(drain_action(burst, frozenset(burst.lease.ranks)))


def drain_action(burst: Burst, ranks: frozenset[int]) -> DrainBurst:
    """Return the action that drains ranks of a burst, with the daemon's reason."""
    return DrainBurst(ranks, f"{DRAIN_TAG}{burst.id} is being taken down")


def _fail(tx: Transaction, burst: Burst, what: Observation) -> None:
    """End a burst that its provider shows as failed, or no longer shows."""
    note, kind = failure_note(burst, tx.world, what), failure_kind(burst, tx.world)
    online = burst.state is State.ONLINE
    ends = tx.world.lead is not None and tx.world.lead.shuts_down
    if kind == "failed" and (ends or (online and lost_its_lead(tx, burst))):
        # This is not a failure of the burst.
        told = "" if what is Observation.VANISHED else f": {note}"
        tx.fail(burst.id, WITH_LEAD, f"{_ENDED_WITH_LEAD}{told}")
    elif kind == "failed" and _comes_up_since_before(burst, tx.world.identity.started):
        # Followers end as their lead does.
        tx.fail(burst.id, kind, f"{note}; {_LEAD_ANEW}")
    elif not (
        kind == CAPACITY
        and burst.state in COMING_UP
        and keep_part(tx, burst, lack=note)
    ):
        tx.fail_as_seen(burst, note, kind)


def _record_observation(tx: Transaction, burst: Burst, what: Observation) -> bool:
    """Record what is seen; tell whether the state of the burst may have changed."""
    ranks = format_idset(burst.lease.ranks)
    if what is Observation.STARTED:
        after = tx.record(burst.id, "provision-finish", {})
        return not after.quarantined
    if what is Observation.ONLINE:
        tx.record(burst.id, "online", {"ranks": ranks})
        tx.forgive(burst)
        return True
    if what is Observation.LOST:
        record_loss(tx, burst)
    if what is Observation.WHOLE and (
        burst.lost_since is not None or is_restored(tx, burst)
    ):
        tx.record(burst.id, "back", {"ranks": ranks})
    return False


def _record_use(tx: Transaction, burst: Burst) -> None:
    """Record since when nothing runs on an online burst without jobs.

    Also record for how long it is kept, if that may be less than `[deadlines] idle`.
    """
    if burst.state is not State.ONLINE:
        return
    lead = tx.lead
    used = not lead.in_use.isdisjoint(burst.lease.ranks)
    if burst.resize is not None and burst.resize.requested and burst.coming:
        used = True  # a growth ahead of jobs counts as use; idleness begins after it
    if used and burst.unused_since is not None:
        tx.record(burst.id, "busy", {})
    views = (lead.jobs[job] for job in burst.jobs if job in lead.jobs)
    # A job in its epilog has ended.
    waits = any(
        each.state is not JobState.CLEANUP or not each.epilogs for each in views
    )
    if not used and not waits and burst.unused_since is None:
        entry = tx.entries.get(burst.id)
        payers = entry.payers if entry else ()
        keep = kept_idle(burst, payers, tx.settings.rules, tx.times)
        context = {} if math.isinf(keep) else {"keep": round(keep, 3)}
        tx.record(burst.id, "idle", context)


def _act_online(tx: Transaction, burst: Burst) -> None:
    now, deadlines = tx.now, tx.settings.deadlines
    lost = _lost_from(burst, tx.world.identity.started, now)
    made_for_jobs = burst.lease.made_for_jobs
    if drained := find_flux_drain(burst, tx.world):
        # No job can use drained nodes, and all nodes of a burst are alike.
        begin_drain(tx, burst, Result.FAILED, drained.note)
        count_flux_drain(tx, burst, drained)
    elif lost is not None and now - lost > deadlines.rejoin:
        limit = format_fsd(deadlines.rejoin)
        note = f"ranks were lost and did not come back within {limit}"
        cause = burst.reclaimed or cause_of_loss(burst)
        why = "; ".join(filter(None, (cause, note)))
        tx.fail(burst.id, RECLAIMED if burst.reclaimed else "lost", why)
        count_failed_soon(tx, tx.bursts[burst.id])
    elif burst.idle_since is not None and made_for_jobs and not burst.served:
        # Its jobs started elsewhere, ended or were canceled before any ran on it. No
        # other job is known to need it, so it is not kept until the idle deadline.
        begin_drain(tx, burst, Result.CANCELED, UNNEEDED)
    elif _ends_as_idle(tx, burst):
        note = f"idle for {format_fsd(idle_limit(burst, tx.settings))}"
        if burst.keep_idle < deadlines.idle:
            note += "; keeping it costs more than making it again"
        if is_needed(tx, burst):
            note += "; the budgets have no money left for its standing minimum"
        begin_drain(tx, burst, Result.COMPLETED, note)
    elif now > _drained_from(burst, tx.settings):
        ahead = burst.lease.end - _drained_from(burst, tx.settings)
        note = f"it is drained {format_fsd(round(ahead))} before its lease ends"
        begin_drain(tx, burst, Result.COMPLETED, note)
        if made_for_jobs and not burst.served:
            # Flux would not start its jobs on the next burst in time, either.
            why = "no job had started on it when it was drained"
            tx.cool_down(burst, why)


def _lost_from(burst: Burst, started: float, now: float) -> float | None:
    """Return from when a burst has time to rejoin; None if it has lost no ranks.

    While the lead was down nothing could join it. If its clock was ahead when it
    started, that time is not known.
    """
    if burst.lost_since is None or started > now:
        return burst.lost_since
    return max(burst.lost_since, started)


def _ends_as_idle(tx: Transaction, burst: Burst) -> bool:
    """Tell whether a burst is idle for too long, and no standing minimum keeps it."""
    if burst.idle_since is None:
        return False
    awaited = burst.id in tx.awaited
    if tx.now - burst.idle_since <= idle_limit(burst, tx.settings, awaited=awaited):
        return False
    kept = is_needed(tx, burst)
    return not (kept and reserve_longer(tx, burst))


def _drained_from(burst: Burst, settings: Settings) -> float:
    """Return when a burst is drained because its lease ends, even if jobs need it."""
    lease = burst.lease
    return drain_time(lease.created, lease.end, settings.deadlines.drain)
