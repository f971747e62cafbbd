# SPDX-License-Identifier: MIT
"""Decides when a job that Flux does not start leaves the bursts it is assigned to.

Its queue may be stopped, or other jobs are ahead of it. Its burst would be rented for
as long as that lasts, so the job leaves it at a deadline. It is tried again after it
has waited as long again, so each wait is twice as long. A job that its user holds, or
that can no longer be read, leaves its bursts, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from burst.core.jobs.hindrance import find_hindrance, is_displaced
from burst.core.lifecycle import COMING_UP
from burst.core.plan.capacity import is_up
from burst.core.plan.constraints import Constraints
from burst.core.plan.offers import drain_time
from burst.core.provider_health import MOST_TIMES
from burst.core.records import Transaction, is_usable
from burst.core.world import Halt, World
from burst.model.burst import Burst, State
from burst.model.decision import Decision, exact_moment, moment
from burst.model.event import cut
from burst.model.fsd import format_fsd
from burst.model.hold import HELD_BY_US, Hold, HoldState
from burst.model.jobid import format_f58
from burst.model.lead import PENDING, JobState, JobView
from burst.model.reason import Reason

# Flux starts a job whose nodes are free within so many seconds of its release: until
# then no reason is given.
_AT_ONCE_S = 5.0
_UNKNOWN = (
    "the cause is not known (flux jobs, flux resource list), or Flux refuses to let it"
    " start there (burst's log has the error)"
)


def end_late_bursts(tx: Transaction) -> None:
    """End bursts that come up too late to be of use, and set their offers aside."""
    for burst in list(tx.bursts.values()):
        if burst.quarantined or burst.lease.isolated:
            continue
        if late := _comes_too_late(burst, tx.world, tx.now):
            tx.fail_late(burst, late)


def expire_assignments(tx: Transaction) -> None:
    """Remove jobs from bursts on which Flux did not start them in time, or cannot."""
    world, lead, limit = tx.world, tx.lead, tx.settings.deadlines.release
    constraints = Constraints(world.identity)
    # A copy: a job that leaves one of its bursts begins no new wait on another.
    holds = dict(tx.holds)
    bursts_by_job = tx.bursts_by_job()
    for burst in list(tx.bursts.values()):
        # The job of an isolated burst stays assigned to it until the burst ends.
        if burst.lease.isolated or not is_usable(burst):
            continue
        for job in sorted(burst.unstarted):
            view = lead.jobs.get(job)
            if view is None or view.state not in PENDING:
                continue
            hold = holds.get(job)
            why = _unwanted(view, hold, limit, tx.now) or _too_long(tx, view, burst)
            if why:
                tx.record(burst.id, "job-leave", {"id": format_f58(job), "note": why})
                continue
            since = _startable_since(burst, view, hold) if is_up(burst) else None
            if since is None:
                continue
            both = bursts_by_job[job]
            if tx.now - since > limit:
                stood = _what_stood(view, both, world, constraints)
                note = f"Flux did not start it within {format_fsd(limit)}: {stood}"
                _remember(tx, view, stood)
            elif tx.now - since > _AT_ONCE_S and is_displaced(
                view, both, world, constraints, since + limit
            ):
                stood = _what_stood(view, both, world, constraints)
                note = f"it gets other nodes: {stood}"
            else:
                continue
            tx.record(burst.id, "job-leave", {"id": format_f58(job), "note": note})


def end_unreleased(tx: Transaction, halt: Halt) -> None:
    """Remove jobs from bursts on which nothing runs while the daemon begins nothing.

    They cannot be released then, for as long as that lasts. This counts as no failure
    to start: they are placed again as soon as it is over.
    """
    lead, limit = tx.lead, tx.settings.deadlines.release
    for burst in list(tx.bursts.values()):
        if burst.state is not State.ONLINE or burst.quarantined or burst.lease.isolated:
            continue
        since = max(burst.since, halt.since)
        if tx.now - since <= limit or not lead.in_use.isdisjoint(burst.lease.ranks):
            continue
        for job in sorted(burst.unstarted):
            note = f"it cannot be released: {halt.what} has failed"
            tx.record(burst.id, "job-leave", {"id": format_f58(job), "note": note})


def retry_pause(
    hold: Hold | None, job: JobView, limit: float, now: float
) -> Decision | None:
    """Return the decision on a job that left its bursts and is not tried again yet."""
    if hold is None or not hold.expired:
        return None
    # Twice as long each time, however long it waited for its first nodes.
    longest = MOST_TIMES * limit
    waited = hold.expired - max(job.t_submit, job.t_eligible)
    again = hold.expired + min(max(limit, waited), longest)
    if now >= again:
        return None
    facts = {
        "limit": format_fsd(limit),
        "until": again,
        "stood": hold.stood or _UNKNOWN,
    }
    return Decision(Reason.NOT_STARTED, facts)


def waiting_decision(
    job: JobView,
    hold: Hold | None,
    bursts: Sequence[Burst],
    world: World,
    constraints: Constraints,
) -> Decision:
    """Return the decision on a job that Flux may start on its bursts, but has not."""
    assert world.lead is not None
    limit = world.deadlines.release
    since = [_startable_since(burst, job, hold) for burst in bursts]
    known = [at for at in since if at is not None]
    ends = f" at {exact_moment(max(known) + limit)}" if known else ""
    facts = {"by": ends, "ends": end_warning(job, bursts, world)}
    found = None
    if known and world.lead.read_at - max(known) > _AT_ONCE_S:
        found = find_hindrance(job, bursts, world, constraints, facts)
    return found or Decision(Reason.RELEASED, facts)


def end_warning(job: JobView, bursts: Sequence[Burst], world: World) -> str:
    """Return what a job without a time limit is told about when its nodes end.

    They end with their lease or, before that, with the allocation of the lead.
    """
    assert world.lead is not None
    ends = [burst.lease.end for burst in bursts if burst.lease.end]
    # A lead that outlives that time had its time limit extended.
    if world.identity.ends > world.lead.read_at:
        ends.append(world.identity.ends)
    if job.duration or not ends:
        return ""
    at = moment(min(ends))
    return f"; it has no time limit, and what still runs at {at} is ended"


def _what_stood(
    job: JobView, bursts: Sequence[Burst], world: World, constraints: Constraints
) -> str:
    """Return what stood in the way of a job, as part of a sentence."""
    if job.urgency == 0:
        return "Flux refused to let it start there (burst's log has the error)"
    if job.state is not JobState.SCHED:
        return "Flux has no priority for it yet"
    found = find_hindrance(job, bursts, world, constraints, {"by": "", "ends": ""})
    if found is None:
        return _UNKNOWN
    return found.text().partition(", but ")[2].partition("; ")[0] or found.text()


def _unwanted(job: JobView, hold: Hold | None, limit: float, now: float) -> str:
    """Return why nothing will release a pending job; empty if something may.

    A release that a person asked for may not have taken effect yet.
    """
    if job.request is None:
        return f"{job.unreadable}; it is left alone"
    if job.urgency or (hold is not None and hold.state in HELD_BY_US):
        return ""
    if hold is not None and now - hold.since <= limit:
        return ""
    return "its user holds it (urgency 0)"


def _comes_too_late(burst: Burst, world: World, now: float) -> str:
    """Return why a burst that comes up is no longer of use; empty if it may be of use.

    Its jobs would be killed as its lease ends, or it is drained as soon as it is up.
    """
    assert world.lead is not None
    if burst.state not in COMING_UP or burst.started:
        return ""
    jobs = world.lead.jobs
    drained = drain_time(burst.lease.created, burst.lease.end, world.deadlines.drain)
    if now > drained:
        return f"it was not up by {exact_moment(drained)}, when it had to be drained"
    if burst.jobs and all(
        job in jobs and _is_late(jobs[job], burst, now) for job in burst.jobs
    ):
        return f"it came too late for its jobs: {_left(burst, now)}"
    return ""


def _is_late(job: JobView, burst: Burst, now: float) -> bool:
    """Tell whether a job that fitted into the whole lease would be killed at its end.

    A job whose user made its time limit longer than the lease is not late: the offer is
    not to blame.
    """
    end, created = burst.lease.end, burst.lease.created
    return end > 0 and end - now < job.duration <= end - created


def _too_long(tx: Transaction, job: JobView, burst: Burst) -> str:
    """Return why a pending job is too long for its burst; empty if it is not.

    Its user may have changed its time limit (flux-update(1)) since it was placed, or
    the burst took longer to come up than its offer says. Flux would start the job, and
    it would be killed as the lease ends.
    """
    if not burst.lease.end or job.duration <= burst.lease.end - tx.now:
        return ""
    why = f"it may run for {format_fsd(job.duration)}, and {_left(burst, tx.now)}"
    if is_up(burst) and _is_late(job, burst, tx.now):
        # Else it would get new nodes at once, on which it would not start either.
        _remember(tx, job, why)
    return why


def _left(burst: Burst, now: float) -> str:
    """Return what is left of the lease of a burst that has an end, in words."""
    return f"its lease ends in {format_fsd(round(max(0.0, burst.lease.end - now)))}"


def _startable_since(burst: Burst, job: JobView, hold: Hold | None) -> float | None:
    """Return since when Flux could have started the job there; None if it cannot."""
    released = burst.times[job.id].released
    if job.urgency == 0:
        # The nodes are paid for while the lead refuses to release or confine the job.
        asked = hold is not None and hold.letting and hold.state in HELD_BY_US
        return max(hold.letting, burst.since) if hold and asked else None
    if released is None:
        # While Flux has no priority for the job, nothing is done with it: it is not
        # released either.
        return burst.since if job.state is JobState.PRIORITY else None
    since = max(released, burst.since)
    if hold is not None and hold.state is HoldState.RELEASED:
        since = max(since, hold.since)
    return since


def _remember(tx: Transaction, job: JobView, stood: str) -> None:
    hold = tx.holds.get(job.id) or Hold.released(job.urgency, tx.now)
    tx.holds[job.id] = msgspec.structs.replace(
        hold, expired=tx.now, letting=0.0, stood=cut(stood, 200)
    )
