# SPDX-License-Identifier: MIT
"""Jobs in the answers to `burst explain`, `plan` and `watch`: objects ready for JSON.

Times are in seconds, ids are as people write them (f58, hostlist).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping

import msgspec

from burst.core.burst_story import assigned_jobs, known_events, sentence
from burst.core.guest_view import OWNER_SEES
from burst.core.jobs.job_context import OwnNodes
from burst.core.jobs.queues import why_not_started
from burst.core.losses import taken_from
from burst.core.plan.capacity import own_ranks
from burst.core.plan.constraints import Constraints
from burst.core.plan.estimate import StartEstimate
from burst.core.plan.online_times import OnlineTimes
from burst.core.records import Records
from burst.core.report import Row
from burst.core.world import Halt, World
from burst.errors import BurstError, Unreadable
from burst.model.active_job import ActiveJob
from burst.model.burst import Burst, State
from burst.model.decision import Decision
from burst.model.jobid import JobId, format_f58
from burst.model.lead import ALLOCATED, PENDING, JobState, JobView
from burst.model.ranks import format_hostlist
from burst.model.reason import Reason

_BEFORE_SCHED = {JobState.DEPEND: "dependencies", JobState.PRIORITY: "priority"}
# Reasons of jobs that start only after somebody acts, whatever nodes become free.
_ASKS_FOR_SOMEBODY = {
    each.word
    for each in (
        Reason.QUEUE_STOPPED,
        Reason.SCHEDULER_OFFLINE,
        Reason.QUEUE_GONE,
        Reason.USER_HOLD,
    )
}


def unknown_job(job: JobId, *, guest: bool = False) -> BurstError:
    """Return the error about a job of which nothing is known."""
    name = format_f58(job)
    if guest:
        return BurstError("that is not a job of yours that burst knows", "flux jobs -a")
    return BurstError(
        f"burst knows no job {name}: it has ended, is not burstable (--burst), or does"
        " not exist",
        f"flux jobs {name}",
    )


def unread_lead(world: World, *, guest: bool = False) -> Unreadable:
    """Return the error about any job while the lead cannot be read."""
    why = OWNER_SEES if guest else world.trouble
    return Unreadable(f"the lead cannot be read: {why}", "try again once it can be")


def job_row(job: JobView, decision: Decision, *, guest: bool = False) -> Row:
    """Return one pending job of a plan; if `guest`, only what a guest may read."""
    return {
        "id": format_f58(job.id),
        "userid": job.userid,
        "needs": str(job.request) if job.request else "",
        "verdict": decision.reason.word,
        "why": decision.guests_text() if guest else decision.text(),
        "next": decision.next_step(),
        "refusals": [
            {
                "offer": refusal.offer,
                "why": refusal.guests_text() if guest else refusal.text(),
                "next": refusal.next_step(),
            }
            for refusal in decision.standing_refusals()
        ],
    }


def explain(
    records: Records,
    world: World,
    decisions: Mapping[JobId, Decision],
    job_id: JobId,
    *,
    guest: bool = False,
) -> Row | None:
    """Return the answer to `burst explain JOB`; None for an unknown job."""
    job = world.lead.jobs.get(job_id) if world.lead else None
    # Flux may have started it on a burst that it is not assigned to.
    running_on = job.ranks if job and job.state in ALLOCATED else frozenset()
    bursts = [
        burst
        for burst in records.bursts.values()
        if job_id in assigned_jobs(burst)
        or (burst.live and not running_on.isdisjoint(burst.lease.ranks))
    ]
    if job is None and not bursts:
        return None
    hold, repeat = records.holds.get(job_id), records.repeats.get(job_id)
    taken = (taken_from(each, job_id, job) for each in records.bursts.values())
    row = told_of(job, job_id) | {
        "held": hold.state.value if hold else None,
        "urgency_before": hold.urgency if hold else None,
        "bursts": [_story(burst, job_id) for burst in bursts],
        "reclaimed": next(filter(None, taken), ""),
        "again": repeat.text() if repeat else "",
    }
    decision = decisions.get(job_id) or (job and _decide_started(job, world))
    if job and decision:
        told = job_row(job, decision, guest=guest)
        row |= {key: told[key] for key in ("verdict", "why", "next", "refusals")}
    trouble = ""
    if world.lead is None:
        row["state"] = "unknown"
        trouble = unread_lead(world, guest=guest).what
    elif job and world.halt and job.state in PENDING:
        trouble = _begins_nothing(world.halt, guest)
    why = (row["why"], trouble, row["reclaimed"], row["again"])
    return row | {"why": "; ".join(filter(None, why))}


def explain_other(
    job: ActiveJob, records: Records, world: World, *, any_job: bool = False
) -> Row:
    """Return the answer for a job that burst does nothing about.

    `any_job` is the setting: whether it may run on lent nodes.
    """
    decision = _decide_other(job, world)
    why, step = decision.text(), decision.next_step()
    if world.lead is None and decision.reason is Reason.NOT_BURSTABLE:
        return told_of(job, job.id) | {
            "why": "the lead cannot be read now, so nothing is decided about it",
            "next": "an administrator does what burst status says of the lead",
        }
    if decision.reason is Reason.NOT_BURSTABLE:
        why = "it waits its turn for own nodes, as it is not burstable"
        if not _may_fit(job, records, world):
            why = "own nodes can never hold it, and it is not burstable"
            step = "its user submits it again with --burst"
        if any_job:
            why += "; it may also start on lent nodes that are up"
    return told_of(job, job.id) | {
        "verdict": decision.reason.word,
        "why": why,
        "next": step,
    }


def _may_fit(job: ActiveJob, records: Records, world: World) -> bool:
    """Tell whether own nodes would do for a job if all were up and idle, if known."""
    if job.request is None:
        return True
    assert world.lead is not None
    ranks = own_ranks(records, world.lead, world.identity)
    own = OwnNodes(world, Constraints(world.identity), ranks)
    return own.fits_when_up(job.request)


def told_of(job: JobView | ActiveJob | None, job_id: JobId) -> Row:
    """Return the answer to `burst explain JOB` without any decision or burst."""
    return {
        "id": format_f58(job_id),
        "userid": job.userid if job else None,
        "state": job.state.value if job else "gone",
        "urgency": job.urgency if isinstance(job, JobView) else None,
        "needs": str(job.request) if job and job.request else "",
        "held": None,
        "urgency_before": None,
        "verdict": "",
        "why": "",
        "next": "",
        "refusals": [],
        "bursts": [],
        "reclaimed": "",
        "again": "",
    }


def starts_by_itself(row: Row) -> bool:
    """Tell whether the job of a row waits and starts without an action of a person."""
    waits = {state.value for state in PENDING}
    return row["state"] in waits and row["verdict"] not in _ASKS_FOR_SOMEBODY


def _decide_other(job: ActiveJob, world: World) -> Decision:
    """Return the decision to report for a job, whether it waits or runs."""
    if job.taken:
        hosts = format_hostlist(world.identity.hosts[r] for r in sorted(job.taken))
        return Decision(Reason.RUNNING, {"hosts": hosts})
    if job.state in _BEFORE_SCHED:
        return Decision(Reason.NOT_READY, {"what": _BEFORE_SCHED[job.state]})
    if job.state is JobState.SCHED and not job.priority:
        return Decision(Reason.USER_HOLD)
    found = why_not_started(job.queue, world.lead) if world.lead else None
    return found or Decision(Reason.NOT_BURSTABLE)


def _decide_started(job: JobView, world: World) -> Decision | None:
    if job.state in ALLOCATED:
        hosts = format_hostlist(
            world.identity.hosts[rank] for rank in sorted(job.ranks)
        )
        for scripts, reason in (
            ({} if job.t_start else job.prologs, Reason.PROLOG),
            (job.epilogs, Reason.EPILOG),
        ):
            if scripts:
                what, since = min(scripts.items(), key=lambda script: script[1])
                facts = {"what": what, "hosts": hosts, "since": since}
                return Decision(reason, facts)
        return Decision(Reason.RUNNING, {"hosts": hosts})
    if job.state is JobState.INACTIVE:
        return Decision(Reason.ENDED, {"result": job.result})
    return None


def _begins_nothing(halt: Halt, guest: bool) -> str:
    """Return why nothing is begun for a job, whatever was decided about it before."""
    if guest:
        return f"the daemon cannot start anything for it at present ({OWNER_SEES})"
    return halt.text()


def _story(burst: Burst, job_id: JobId) -> Row:
    """Return what happened to a burst, without the events of other jobs on it."""
    events = [event for event in known_events(burst, job_id) if event.name != "submit"]
    return {
        "id": burst.id,
        "provider": burst.lease.provider,
        "state": burst.shown_state,
        "result": burst.result.value if burst.result else None,
        "events": [
            {
                "timestamp": event.timestamp,
                "name": event.name,
                "context": event.context,
                "text": sentence(event),
            }
            for event in events
        ],
    }


class WaitingJobs(msgspec.Struct, frozen=True):
    """Lists the jobs that wait for `burst watch`: why, and until when.

    It is made from what a tick saw and decided, and from the forecast. Times are in
    seconds since the epoch.
    """

    records: Records
    world: World
    decisions: Mapping[JobId, Decision]
    starts: Mapping[JobId, StartEstimate]
    now: float

    def rows(self, most: int, userid: int | None = None) -> list[Row]:
        """Return the burstable jobs that have waited longest, only `userid`'s if given.

        `expected` is when a job is expected to start, None if that is not known; `by`
        is the source of that time: `burst` (the nodes that come for it) or `here` (a
        forecast for the lead's own nodes).
        """
        lead = self.world.lead
        if lead is None:
            return []
        known = self.decisions.keys() & lead.jobs.keys()
        theirs = (j for j in known if userid in (None, lead.jobs[j].userid))
        first = heapq.nsmallest(most, theirs)
        coming = self._coming(frozenset(first))
        guest = userid is not None
        return [self._row(job, coming.get(job, []), guest=guest) for job in first]

    def _row(self, number: JobId, coming: list[Burst], *, guest: bool) -> Row:
        assert self.world.lead is not None
        job, hold = self.world.lead.jobs[number], self.records.holds.get(number)
        expected, by = self._expected(number, coming)
        return job_row(job, self.decisions[number], guest=guest) | {
            "name": job.name,
            "submitted": job.t_submit,
            "held": hold.state.value if hold else None,
            "bursts": sorted(burst.id for burst in coming),
            "expected": expected,
            "by": by,
        }

    def _coming(self, jobs: frozenset[JobId]) -> dict[JobId, list[Burst]]:
        """Return the live bursts to which each of these jobs is assigned."""
        found: dict[JobId, list[Burst]] = {}
        for burst in self.records.live:
            for job in burst.jobs & jobs:
                found.setdefault(job, []).append(burst)
        return found

    def _expected(self, job: JobId, coming: list[Burst]) -> tuple[float | None, str]:
        if coming:
            latest = max(map(self._online_at, coming))
            return None if math.isinf(latest) else round(latest, 3), "burst"
        start = self.starts.get(job)
        if start is None or math.isinf(start.expected):
            return None, ""
        return max(start.expected, self.now), "here"

    def _online_at(self, burst: Burst) -> float:
        """Return when all nodes of a burst are expected to be online, in seconds since
        the epoch.

        It is the time in which half of such bursts came online or, if that is over,
        nine of ten; math.inf if that is over, too, or nothing is known. A growth takes
        as long as a new burst.
        """
        lease, begun, nodes = burst.lease, burst.lease.created, burst.lease.nodes
        if burst.resize is not None and burst.coming:
            begun, nodes = burst.resize.since, len(burst.coming)
        elif burst.state is State.ONLINE:
            return self.now
        times = OnlineTimes(self.records.times)
        known = times.online(lease.provider, lease.offer, nodes)
        takes = (known.p50, known.p90) if known else self._offered(burst)
        due = (begun + seconds for seconds in takes)
        return next((when for when in due if when > self.now), math.inf)

    def _offered(self, burst: Burst) -> tuple[float, ...]:
        """Return how long such a burst takes by its offer; empty if that is unknown."""
        view = self.world.providers.get(burst.lease.provider)
        offers = (view and view.offers) or ()
        return tuple(o.join_time for o in offers if o.name == burst.lease.offer)
