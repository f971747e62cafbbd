# SPDX-License-Identifier: MIT
"""Queues of Flux: whether they start jobs, and in which one a job belongs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from burst.config import IntakeSettings
from burst.model.burst import Burst
from burst.model.decision import Decision
from burst.model.job_limits import JobLimits
from burst.model.lead import JobView, LeadView, QueueView
from burst.model.reason import Reason
from burst.model.request import ResourceRequest


def in_stopped_queue(job: JobView, settings: IntakeSettings) -> bool:
    """Tell whether the job is in the stopped queue, where it can never start."""
    return settings.mode == "queue" and job.queue == settings.queue


_ANEW = "Flux cannot move a job {}: cancel it, and submit it with --queue=NAME"
_NO_QUEUE = _ANEW.format("without a queue")
_GONE = f"{_ANEW.format('of a queue that is gone')}; or have the queue added again"
# Fluxion denies the jobs of a queue that comes with a reload of the configuration.
_NOT_SET_UP = "run `burst setup` again, and restart Flux"


def decide_on_queue(
    job: JobView, lead: LeadView, settings: IntakeSettings
) -> Decision | None:
    """Return the decision on a job whose queue does not start it; None if it may.

    For a job in the stopped queue, the queue that it is moved to counts.
    """
    if not in_stopped_queue(job, settings):
        return why_not_started(job.queue, lead)
    name = settings.ready
    found, queue = why_not_started(name, lead, _NOT_SET_UP), lead.queues.get(name)
    if found is None and queue is not None and not queue.enabled:
        return Decision(Reason.QUEUE_DISABLED, {"queue": name, "why": _why(queue)})
    return found


def why_not_started(name: str, lead: LeadView, gone: str = _GONE) -> Decision | None:
    """Return why Flux starts no job of this queue, burstable or not; None if it may.

    `gone` is what to do if there is no queue of that name.
    """
    queue = lead.queues.get(name)
    if queue is None:
        facts = {"queue": name, "help": gone}
        if not name:
            facts = {"queue": "without a name", "help": _NO_QUEUE}
        # If a lead has queues, all of them are read.
        return Decision(Reason.QUEUE_GONE, facts) if lead.queues else None
    if queue.is_offline:
        return Decision(Reason.SCHEDULER_OFFLINE)
    if not queue.started:
        facts = {"queue": f" {name}" if name else "", "why": _why(queue)}
        return Decision(Reason.QUEUE_STOPPED, facts)
    return None


def _why(queue: QueueView) -> str:
    """Return why a queue is stopped or disabled, in brackets; empty if not known."""
    return f" ({queue.reason})" if queue.reason else ""


def decide_on_renting(
    job: JobView,
    lead: LeadView,
    limits: Mapping[str, JobLimits],
    settings: IntakeSettings,
) -> Decision | None:
    """Return why no nodes are rented for a job of its queue; None if some may be.

    A queue that is disabled still starts the jobs that it has, on nodes that are there.
    If a job is moved to start, Flux checks the limits of the queue that it is moved to.
    """
    queue = lead.queues.get(job.queue)
    if queue is not None and not queue.enabled:
        name = f" {job.queue}" if job.queue else ""
        return Decision(Reason.QUEUE_CLOSED, {"queue": name, "why": _why(queue)})
    if in_stopped_queue(job, settings) and job.request is not None:
        its = limits.get(settings.ready, JobLimits())
        why = its.why_over(job.request, job.duration)
        if why:
            return Decision(Reason.QUEUE_LIMIT, {"queue": settings.ready, "why": why})
    return None


def within_queue(
    job: JobView, request: ResourceRequest, limits: Mapping[str, JobLimits]
) -> ResourceRequest:
    """Return a job's request with the most nodes that its queue lets a job have."""
    its = None if request.nodes else limits.get(job.queue)
    if its is None or not its.most_nodes:
        return request
    return msgspec.structs.replace(request, most_nodes=its.most_nodes)


def may_leave_queue(
    request: ResourceRequest,
    required: Mapping[str, Sequence[str]],
    settings: IntakeSettings,
) -> bool:
    """Tell whether Flux lets a job leave the stopped queue.

    It does if the job's constraints are those of its queue and no others, since
    those of the new queue replace them (job-manager's queue.c). `required` are the
    properties that each queue requires.
    """
    if not request.constraint:
        return True
    properties = list(required.get(settings.queue, ()))
    expected: dict[str, object] = {"properties": properties}
    return bool(msgspec.json.decode(request.constraint) == expected)


def queue_to_enter(
    job: JobView, bursts: list[Burst], blocks: bool, settings: IntakeSettings
) -> str:
    """Return the queue that a job is to be moved to; empty if it stays in its own.

    `blocks` is whether it would wait for absent ranks. A job in neither of the two
    queues of mode queue is not moved.
    """
    if in_stopped_queue(job, settings):
        return settings.ready if bursts and not blocks else ""
    ready = settings.mode == "queue" and job.queue == settings.ready
    return settings.queue if ready and blocks else ""


def takes_jobs(lead: LeadView, queue: str) -> bool:
    """Tell whether Flux moves a job into the queue, as far as is known.

    It moves none into one that is disabled (flux-queue(1)).
    """
    known = lead.queues.get(queue)
    return known is None or known.enabled
