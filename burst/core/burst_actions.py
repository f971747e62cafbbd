# SPDX-License-Identifier: MIT
"""What a tick does with each burst, by its state: drain, reap, deadlines."""

from __future__ import annotations

from burst.config import Settings
from burst.core.actions import ProvisionBurst, ReapBurst, UndrainBurst
from burst.core.behaviour import behaviour_of
from burst.core.joined import drain_action, keep_part
from burst.core.observation import provider_message, ranks_of
from burst.core.obstacles import (
    describe_delay,
    drain_until_empty,
    end_late_housekeeping,
)
from burst.core.orphans import SURE_AFTER
from burst.core.plan.slots import DRAIN_TAG
from burst.core.provider_calls import is_gone, may_call, refused_call, report_overdue
from burst.core.provider_health import Verb
from burst.core.records import UNNEEDED, RecordChanges, Transaction
from burst.core.resizing import act_on_resize, growth_end
from burst.model.burst import Burst, State
from burst.model.fsd import format_fsd
from burst.model.ranks import format_idset

_MAY_HAVE_HOUSEKEEPING = (State.ONLINE, State.DRAIN, State.REAP)


def act_on_burst(tx: Transaction, burst: Burst) -> None:
    """Do what is due for one burst, but nothing that depends on unread facts."""
    behaviour_of(burst).act(tx, burst)
    if tx.bursts[burst.id].state is burst.state:
        _act_in_state(tx, burst)
    burst = tx.bursts[burst.id]
    if tx.world.lead is not None and burst.state in _MAY_HAVE_HOUSEKEEPING:
        end_late_housekeeping(tx, burst)
        burst = tx.bursts[burst.id]
    if burst.state is State.REAP and tx.world.lead is not None:
        # Also in the tick in which it failed: its ranks must get no job from now on.
        _reap(tx, burst)


def _act_in_state(tx: Transaction, burst: Burst) -> None:
    """Do what is due for a burst of either kind that stays in its state."""
    if burst.state is State.PROVISION:
        _provision(tx, burst)
    elif tx.world.lead is None:
        return
    elif burst.state is State.JOIN:
        _join(tx, burst)
    elif burst.state is State.ONLINE and burst.resize is not None:
        act_on_resize(tx, burst)
    elif burst.state is State.DRAIN:
        _drain(tx, burst)
    elif burst.state is State.INACTIVE and burst.drained:
        _undrain(tx, burst)


def next_deadline(
    burst: Burst, settings: Settings, started: float, now: float
) -> float:
    """Return when a waiting state of the burst ends; math.inf if none does.

    `started` is the start of the lead.
    """
    if burst.state is State.PROVISION:
        return burst.since + settings.provision_limit(burst.lease.provider)
    if burst.state is State.JOIN:
        return burst.since + settings.deadlines.join
    ends = behaviour_of(burst).next_deadline(burst, settings, started, now)
    return min(ends, growth_end(burst, settings))


def take_down(tx: RecordChanges, burst: Burst, note: str) -> None:
    """End a burst, at a person's request or because no job needs it any more.

    What runs on its ranks continues to its end.
    """
    if burst.quarantined:
        burst = tx.record(burst.id, "unquarantine", {"note": note})
    if burst.state is State.ONLINE:
        behaviour_of(burst).take_down_online(tx, burst, note)
    elif burst.state not in {State.DRAIN, State.REAP, State.INACTIVE}:
        tx.fail(burst.id, "canceled", note)


def _provision(tx: Transaction, burst: Burst) -> None:
    limit = tx.settings.provision_limit(burst.lease.provider)
    refused = refused_call(burst, tx.world)
    if _is_unneeded(burst):
        tx.fail(burst.id, "canceled", UNNEEDED)
    elif refused is not None:
        # Before a first call there was nothing that the provider could show. What an
        # earlier call made may be listed late.
        if refused.first or behaviour_of(burst).may_end_late(
            tx, burst, refused.done_at + SURE_AFTER
        ):
            tx.fail(burst.id, refused.outcome.value, refused.note)
    elif tx.now - burst.since > limit and tx.world.lead is not None:
        # Until it may end it is not called again either: what the provider shows would
        # count only if it was read after that call.
        why = provider_message(burst, tx.world) or "its provider does not say why"
        note = f"not all followers were started within {format_fsd(limit)}: {why}"
        if behaviour_of(burst).may_end_late(
            tx, burst, burst.since + limit
        ) and not keep_part(tx, burst, lack=note):
            tx.fail_late(burst, note)
    elif not tx.world.rents_nothing and may_call(tx, burst, Verb.PROVISION):
        tx.actions.append(ProvisionBurst(burst.id))


def _join(tx: Transaction, burst: Burst) -> None:
    its, limit = behaviour_of(burst), tx.settings.deadlines.join
    if _is_unneeded(burst):
        tx.fail(burst.id, "canceled", UNNEEDED)
    elif tx.now - burst.since > limit and its.may_end_late(
        tx, burst, burst.since + limit
    ):
        its.end_late_join(tx, burst)


def _is_unneeded(burst: Burst) -> bool:
    """Tell whether a burst was made for jobs and has none any more."""
    return burst.lease.made_for_jobs and not burst.jobs


def _drain(tx: Transaction, burst: Burst) -> None:
    ranks = ranks_of(burst, tx.world)
    if _is_drained(tx, burst):
        tx.record(burst.id, "drained", {"ranks": format_idset(ranks)})
        return
    what = describe_delay(burst, tx.world)
    report_overdue(tx, burst, tx.settings.deadlines.drain, f"drain: {what}")


def _reap(tx: Transaction, burst: Burst) -> None:
    lead = tx.lead
    if is_gone(burst, tx.world) and not lead.online & ranks_of(burst, tx.world):
        # The only way to INACTIVE: the provider has confirmed it, and the lead agrees.
        tx.record(burst.id, "reaped", {})
        # A burst that never came up gives back no capacity: otherwise the offer would
        # be tried, and fail, again and again.
        if burst.first("online") is not None or burst.may_have_run:
            tx.regain_capacity(burst)
        return
    what = describe_delay(burst, tx.world)
    report_overdue(tx, burst, tx.settings.deadlines.reap, f"reap: {what}")
    if not _is_drained(tx, burst):
        return
    if may_call(tx, burst, Verb.REAP):
        tx.actions.append(ReapBurst(burst.id))


def _undrain(tx: Transaction, burst: Burst) -> None:
    """Undrain the ranks that were drained for the burst, once its brokers are gone.

    A drain outlives the broker, so the next burst on these ranks would get no job. If a
    person has replaced the drain by another one, that stays. If a rank belongs to
    another host by now, only a drain for this burst is undone.
    """
    lead = tx.lead
    own = ranks_of(burst, tx.world)
    ranks = burst.drained - (lead.online & own)
    ours = {
        rank
        for rank in ranks
        if lead.drained.get(rank, "").startswith(
            DRAIN_TAG if rank in own else f"{DRAIN_TAG}{burst.id} "
        )
    }
    if ours:
        tx.actions.append(UndrainBurst(burst.id, frozenset(ours)))
    done = ranks - ours
    if done:
        tx.record(burst.id, "undrain", {"ranks": format_idset(done)})


def _is_drained(tx: Transaction, burst: Burst) -> bool:
    """Drain its ranks; tell whether nothing runs or can start there any more.

    Ranks that never joined are drained, too: one that joins late must not get a job
    just before it is deleted. Drains by the daemon that are not on record are recorded:
    the record may have been lost, and they have to be undrained in the end.
    """
    lead = tx.lead
    ranks = ranks_of(burst, tx.world)
    open_ranks = ranks - lead.closed
    ours = {r for r in ranks if lead.drained.get(r, "").startswith(DRAIN_TAG)}
    if not open_ranks | ours <= burst.drained:
        context = {"ranks": format_idset(open_ranks | ours)}
        tx.record(burst.id, "rank-drain", context)
    drain = drain_action(burst, ranks)
    return drain_until_empty(tx, drain, burst.since)
