# SPDX-License-Identifier: MIT
"""Isolated bursts: instances of their own, which run a job of ours in our stead.

The job stays here, held, as long as its burst lives, and is ended with what came of it
there. It must never run twice. So nothing is begun there before Flux cannot start it
here; and where it is not known whether it was begun, it is not begun again.
"""

from __future__ import annotations

import enum
import math

from burst.config import Settings
from burst.core.actions import EndJob
from burst.core.job_memo import memo
from burst.core.observation import (
    ProviderPhase,
    is_in_reach,
    lacks_capacity,
    provider_phase,
)
from burst.core.provider_health import Outcome
from burst.core.records import Records, Transaction
from burst.core.world import World
from burst.model.burst import CAPACITY, NOT_HELD, Burst, State
from burst.model.decision import Decision
from burst.model.fsd import format_fsd
from burst.model.hold import HoldState
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView, LeadView
from burst.model.reason import Reason
from burst.provider import BurstStatus

# An allocation may be on its way to a job that was just held, in seconds.
SETTLED = 1.0
# What has a time limit ends itself there, a little later than it began; in seconds.
LATE = 60.0
_PENDING = (JobState.DEPEND, JobState.PRIORITY, JobState.SCHED)
_TOLD_MOST = 1000
# Bytes of what a burst wrote that are kept, its end; a store takes no more than four
# times as much as one value.
LONGEST_OUTPUT = 2**18
WAITED_FOR = (State.PROVISION, State.JOIN, State.ONLINE)
"""States of a burst of which more is to come than its end."""


class InstancePhase(enum.Enum):
    """How far the burst's own instance is, as its provider sees it."""

    UNREAD = "unread"
    """Nothing is known of it now."""
    STARTING = "starting"
    ONLINE = "online"
    FINISHED = "finished"


class IsolatedObservation(enum.Enum):
    """What a row of the table says has happened."""

    WAIT = "nothing that changes the burst"
    STARTED = "all its nodes are started"
    ONLINE = "its instance is up, and its program was begun"
    FINISHED = "its program has ended"
    BROKE = "the provider says that it failed"
    VANISHED = "the provider has nothing of it any more"
    ENDED = "the provider is deleting it without being asked"


_WENT_WRONG = {
    IsolatedObservation.BROKE: "the provider reports a failure",
    IsolatedObservation.VANISHED: "the provider has nothing of it any more",
    IsolatedObservation.ENDED: "the provider is deleting it, and not on our word",
}
_BAD = {
    ProviderPhase.FAILED: IsolatedObservation.BROKE,
    ProviderPhase.ABSENT: IsolatedObservation.VANISHED,
    ProviderPhase.ENDING: IsolatedObservation.ENDED,
}


def look_up(
    state: State, word: ProviderPhase, far: InstancePhase
) -> IsolatedObservation | None:
    """Return what the facts say; None for what cannot be, which quarantines."""
    if state is State.NEW:
        # Nothing was asked for. If it shows all the same, it is not from us.
        return (
            IsolatedObservation.WAIT
            if word in (ProviderPhase.UNREAD, ProviderPhase.ABSENT)
            else None
        )
    found = IsolatedObservation.WAIT
    if word is ProviderPhase.UNREAD or state not in WAITED_FOR:
        return found
    if far is InstancePhase.FINISHED:
        # Whatever became of the nodes since: there is a result.
        found = IsolatedObservation.FINISHED
    elif word in _BAD:
        found = _BAD[word]
    elif state is State.PROVISION and (
        word is ProviderPhase.RUNNING or far is InstancePhase.ONLINE
    ):
        found = IsolatedObservation.STARTED
    elif state is State.JOIN and far is InstancePhase.ONLINE:
        found = IsolatedObservation.ONLINE
    return found


def follow(tx: Transaction, burst: Burst, world: World) -> bool:
    """Take an isolated burst to where it is seen; tell if it failed to come up."""
    before = burst.state
    while True:
        status, word = _seen(burst, world)
        what = look_up(burst.state, word, _far(status))
        if what is None:
            tx.quarantine(burst.id, "no rule for what is seen of it")
            return False
        if what is IsolatedObservation.STARTED:
            burst = tx.record(burst.id, "provision-finish", {})
        elif what is IsolatedObservation.ONLINE:
            burst = tx.record(burst.id, "online", {"ranks": ""})
        else:
            break
    if what is IsolatedObservation.FINISHED:
        assert status is not None
        _finish(tx, burst, status)
    if what not in _WENT_WRONG:
        return False
    # Once all its nodes were seen, its job may have begun: they were not lacking then.
    lacking = before is State.PROVISION and lacks_capacity(burst, world)
    why = (status.why if status else "") or _WENT_WRONG[what]
    tx.fail(burst.id, CAPACITY if lacking else "failed", why)
    return before is not State.ONLINE


def advance(tx: Transaction, burst: Burst, world: World, settings: Settings) -> None:
    """Do what is due for an isolated burst and no other."""
    if world.lead is None:
        return
    burst = _mind_job(tx, burst, world.lead)
    if burst.state is State.NEW:
        _begin(tx, burst, world, settings.deadlines.provision)
    elif burst.state is State.ONLINE:
        _run(tx, burst, settings)


def _mind_job(tx: Transaction, burst: Burst, lead: LeadView) -> Burst:
    """End the job of a burst that is over; end a burst whose job Flux can start."""
    if burst.may_have_run:
        for job in sorted(burst.jobs):
            view = lead.jobs.get(job)
            if view and view.state in _PENDING:
                tx.actions.append(_end(tx, burst, job))
        return burst
    on_its_way = burst.state in (State.NEW, *WAITED_FOR)
    if on_its_way and any(_taken_back(tx, job, lead) for job in burst.jobs):
        note = "its job is not held any more, so it is not run elsewhere"
        return tx.fail(burst.id, NOT_HELD, note)
    return burst


def _begin(tx: Transaction, burst: Burst, world: World, limit: float) -> None:
    """Have the provider asked, once nothing else can run the job."""
    lead = world.lead
    assert lead is not None
    can_ask = is_in_reach(burst.lease, world)
    if not burst.jobs:
        tx.fail(burst.id, "canceled", "no job needs it any more")
    elif any(_is_other(burst, lead.jobs.get(job)) for job in burst.jobs):
        # What runs there is ended by the time limit that the lease says.
        tx.fail(burst.id, NOT_HELD, "its job has another time limit now")
    elif can_ask and all(_is_settled(tx, lead.jobs.get(j)) for j in burst.jobs):
        tx.start_provision(burst.id)
    elif tx.now - burst.since > limit:
        # Nothing was asked of the provider, so the job may run elsewhere or here.
        what = "its job could not be held"
        if not can_ask:
            what = f"provider {burst.lease.provider} was not enabled, or was moved,"
        tx.fail(burst.id, NOT_HELD, f"{what} within {format_fsd(limit)}")


def _run(tx: Transaction, burst: Burst, settings: Settings) -> None:
    """End what nobody waits for, what takes too long, and what nobody pays for."""
    lease = burst.lease
    if lease.userids and not burst.jobs:
        tx.fail(burst.id, "canceled", "no job needs it any more")
    elif tx.now > run_until(burst, settings):
        took = format_fsd(round(tx.now - burst.since))
        tx.fail(burst.id, "timeout", f"what it runs did not end within {took}")
    elif lease.end and tx.now > lease.end:
        tx.fail(burst.id, "timeout", "its lease is over")


def run_until(burst: Burst, settings: Settings) -> float:
    """Return when what an online burst runs must have ended; math.inf for never."""
    isolated = burst.lease.isolated
    assert isolated is not None
    if not isolated.ends:
        return math.inf
    return burst.since + (isolated.duration or settings.deadlines.run) + LATE


def next_begin(records: Records, now: float) -> float:
    """Return when the next burst may begin whose job is held; math.inf if none."""
    held = [
        records.holds[job].since
        for burst in records.live
        if burst.state is State.NEW and burst.lease.isolated
        for job in burst.jobs
        if job in records.holds and records.holds[job].state is HoldState.HELD
    ]
    times = [since + SETTLED for since in held]
    return min((time for time in times if time > now), default=math.inf)


def next_change(burst: Burst, settings: Settings) -> float:
    """Return when something may be due of it that no event tells; math.inf if never."""
    if burst.state is not State.ONLINE:
        return math.inf
    return min(run_until(burst, settings), burst.lease.end or math.inf)


def isolated_verdict(burst: Burst, words: str = "") -> Decision:
    """Return the verdict on a job that runs, or may have run, in an isolated burst.

    `words` are what its provider says of it, after a colon.
    """
    if burst.quarantined:
        facts = {"burst": burst.id, "why": burst.quarantined}
        return Decision(Reason.ISOLATED_QUARANTINED, facts)
    if burst.may_have_run:
        word, how = _outcome(burst)
        reason = (
            Reason.ISOLATED_LOST if burst.exit_status is None else Reason.ISOLATED_DONE
        )
        if burst.exception == Outcome.SPEC.value:
            reason = Reason.ISOLATED_REFUSED
        return Decision(reason, {"burst": burst.id, "how": how, "word": word})
    facts = {"burst": burst.id, "state": burst.state.value, "words": words}
    return Decision(Reason.ISOLATED_ACTIVE, facts)


def _outcome(burst: Burst) -> tuple[str, str]:
    """Return how an isolated burst ended: for a column, and in words."""
    if burst.exit_status is not None:
        return f"exit {burst.exit_status}", f"exit status {burst.exit_status}"
    notes = [e.context["note"] for e in burst.events if e.name == "exception"]
    return burst.exception, f"{burst.exception}: {notes[-1]}"


def _seen(burst: Burst, world: World) -> tuple[BurstStatus | None, ProviderPhase]:
    view = world.providers.get(burst.lease.provider)
    status = view.statuses.get(burst.id) if view else None
    return status, provider_phase(burst, world)


def _far(status: BurstStatus | None) -> InstancePhase:
    if status is None or status.instance is None:
        return InstancePhase.UNREAD
    if status.instance.exit_status is not None:
        return InstancePhase.FINISHED
    return InstancePhase.ONLINE if status.instance.online else InstancePhase.STARTING


def _finish(tx: Transaction, burst: Burst, status: BurstStatus) -> None:
    """Record the result, all in one: what is reaped has nothing to tell any more."""
    assert status.instance is not None
    # Flux takes no text with a zero in it.
    output = status.instance.output.replace("\0", "\N{REPLACEMENT CHARACTER}")
    output = _end_of(output, LONGEST_OUTPUT)
    code = status.instance.exit_status
    tx.outputs[burst.id] = output
    context = {"status": code, "note": f"exit status {code}"}
    tx.record(burst.id, "finish", context)


def _end_of(text: str, most: int) -> str:
    """Return the last bytes of a text, without a character of which a part is cut."""
    return text.encode(errors="replace")[-most:].decode(errors="ignore")


def _end(tx: Transaction, burst: Burst, job: JobId) -> EndJob:
    verdict = isolated_verdict(burst)
    found = {**(memo(verdict) or {}), "burst": str(burst.id)}
    output = tx.outputs.get(burst.id)
    if output is not None:
        found["output"] = output[-_TOLD_MOST:]
    return EndJob(job, found, verdict.text())


def _taken_back(tx: Transaction, job: JobId, lead: LeadView) -> bool:
    """Tell whether a job may be started here, by its user's doing or Flux's."""
    hold, view = tx.holds.get(job), lead.jobs.get(job)
    if hold is not None and hold.state in (HoldState.OBEYED, HoldState.RELEASED):
        return True
    return view is not None and view.state in (JobState.RUN, JobState.CLEANUP)


def _is_other(burst: Burst, view: JobView | None) -> bool:
    """Tell whether the job's time limit is not the one with which it was placed."""
    isolated = burst.lease.isolated
    assert isolated is not None
    return view is not None and view.duration != isolated.duration


def _is_settled(tx: Transaction, view: JobView | None) -> bool:
    """Tell whether a job is held, for so long that no allocation is on its way."""
    hold = tx.holds.get(view.id) if view else None
    return (
        view is not None
        and hold is not None
        and (view.state, view.urgency) == (JobState.SCHED, 0)
        and hold.state is HoldState.HELD
        and tx.now - hold.since >= SETTLED
    )
