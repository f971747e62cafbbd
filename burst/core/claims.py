# SPDX-License-Identifier: MIT
"""What ends the claim of a job on its bursts that Flux does not start.

Its queue may be stopped, or others are ahead of it. A burst on which it counts would
be rented for as long as that lasts, so the job leaves it at a deadline, and is tried
again after it has waited as long as it has by then: each time twice as long.
"""

from __future__ import annotations

import msgspec

from burst.core.draft import Draft
from burst.core.room import is_up
from burst.model.burst import Burst
from burst.model.fsd import format_fsd
from burst.model.hold import Hold, HoldState
from burst.model.jobid import format_f58
from burst.model.lead import JobState, JobView, LeadView
from burst.model.reason import Reason, Verdict


def expire(draft: Draft, lead: LeadView, limit: float) -> None:
    """Have jobs leave online bursts on which Flux did not start them in `limit`."""
    for burst in list(draft.bursts.values()):
        if not burst.live or burst.quarantined or not is_up(burst):
            continue
        for job in sorted(burst.jobs - burst.started):
            view = lead.jobs.get(job)
            if view is None or view.state is not JobState.SCHED:
                continue
            since = _startable_since(burst, view, draft.holds.get(job))
            if since is not None and draft.now - since > limit:
                note = f"Flux did not start it within {format_fsd(limit)}"
                context = {"id": format_f58(job), "note": note}
                draft.note(burst.id, "job-leave", context)
                _remember(draft, view)


def pause(hold: Hold | None, job: JobView, limit: float, now: float) -> Verdict | None:
    """Return the verdict on a job that left its bursts a while ago, if it did."""
    if hold is None or not hold.expired:
        return None
    again = hold.expired + max(limit, hold.expired - job.t_submit)
    if now >= again:
        return None
    return Verdict(Reason.NOT_STARTED, {"limit": format_fsd(limit), "until": again})


def _startable_since(burst: Burst, job: JobView, hold: Hold | None) -> float | None:
    """Return since when Flux could have started the job there; None if it cannot."""
    released = burst.times[job.id].released
    if released is None or job.urgency == 0:
        return None
    since = max(released, burst.since)
    if hold is not None and hold.state is HoldState.RELEASED:
        since = max(since, hold.since)
    return since


def _remember(draft: Draft, job: JobView) -> None:
    hold = draft.holds.get(job.id)
    if hold is None:
        urgency = job.urgency
        hold = Hold(
            urgency=urgency, state=HoldState.RELEASED, since=draft.now, shown=urgency
        )
    draft.holds[job.id] = msgspec.structs.replace(hold, expired=draft.now)
