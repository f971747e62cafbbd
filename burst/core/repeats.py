# SPDX-License-Identifier: MIT
"""Jobs that lost a node of a burst, and are submitted again if that is wanted.

The user decides that (`burst.requeue`), or else the rule of the job. The second job is
submitted held, so that it neither runs nor ends before the daemon has seen it. It names
the job that it repeats, so that even a daemon that was killed before it had the lead's
answer recognizes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

import msgspec

from burst.core.actions import RepeatJob
from burst.core.jobs.job_rules import JobRules
from burst.core.records import RecordChanges, Transaction
from burst.core.world import World
from burst.model.burst import Burst
from burst.model.event import cut
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState, JobView
from burst.model.ranks import format_idset, parse_idset
from burst.model.repeat import MOST_REPEATS, Repeat

ASK_AGAIN_S = 60.0
"""Seconds after which the lead is asked again for a second job that it does not show:
by then it would show a job that it had accepted. Also the longest wait until the lead
shows the lost node as offline."""
KEPT = 100
"""The number of jobs that lost a node that stay on record, for `burst explain`."""

_OF_GUEST = (
    "the daemon cannot sign the job of another user, so its user has to submit it again"
)
_TOO_OFTEN = f"a job is run again at most {MOST_REPEATS} times"


def record_lost_jobs(tx: Transaction) -> None:
    """Record jobs that lost a node and are to run again; ask the lead to submit them.

    Must be called before the end of these jobs is recorded, so that it sees each once.
    """
    for burst in tx.bursts.values():
        if not (burst.quarantined or burst.lease.isolated):
            for view in _lost(burst, tx.world):
                if view.id not in tx.repeats and _is_wanted(view, tx):
                    _record(tx, view)
    for job in [job for job, repeat in tx.repeats.items() if repeat.is_open]:
        _follow(tx, job)


def note_answer(
    tx: RecordChanges, job: JobId, again: JobId | None, refused: str = ""
) -> None:
    """Record the lead's answer, unless the second job is known already."""
    repeat = tx.repeats.get(job)
    if repeat is not None and repeat.is_open:
        tx.repeats[job] = msgspec.structs.replace(
            repeat, again=again, refused=cut(refused)
        )


def _lost(burst: Burst, world: World) -> Iterator[JobView]:
    """Yield the jobs that ran on the burst and lost a node.

    A live burst has no job that ran elsewhere. A burst that has ended still has the
    jobs that waited for it, which may have run anywhere since.
    """
    shown = world.read_lead().jobs
    jobs = burst.jobs if burst.live else burst.started
    for job in sorted(jobs & shown.keys()):
        view = shown[job]
        # Only after its end: the shells on its other nodes are killed first.
        if view.state is JobState.INACTIVE and view.lost_node:
            yield view


def _is_wanted(view: JobView, tx: Transaction) -> bool:
    own = view.preferences.requeue
    if own is not None:
        return own
    rule = JobRules(tx.world, tx.settings, tx.now).rule(view)
    return rule is not None and rule.requeue


def _record(tx: Transaction, view: JobView) -> None:
    losses = view.preferences.losses + 1
    refused = _TOO_OFTEN if losses > MOST_REPEATS else ""
    if tx.world.identity.may_be_guest(view.userid):
        refused = _OF_GUEST
    hold = tx.holds.get(view.id)
    urgency = hold.urgency if hold else view.urgency
    tx.repeats[view.id] = Repeat(
        losses=losses,
        urgency=urgency,
        since=tx.now,
        ranks=format_idset(view.ran_on),
        refused=refused,
    )
    done = (job for job, repeat in tx.repeats.items() if not repeat.is_open)
    oldest = sorted(done, key=lambda job: tx.repeats[job].since)
    for job in oldest[:-KEPT]:
        del tx.repeats[job]


def _follow(tx: Transaction, job: JobId) -> None:
    """Record the second job if the lead shows it; else ask the lead for it if due."""
    name, identity = format_f58(job), tx.world.identity
    found = (
        other.id
        for other in tx.lead.jobs.values()
        # Any user may write the attribute.
        if other.preferences.repeats == name and not identity.may_be_guest(other.userid)
    )
    again = next(found, None)
    if again is not None:
        note_answer(tx, job, again)
    elif _is_due(tx.repeats[job], tx.lead.online, tx.now):
        tx.repeats[job] = msgspec.structs.replace(
            tx.repeats[job], since=tx.now, asked=True
        )
        tx.actions.append(RepeatJob(job))


def _is_due(repeat: Repeat, online: AbstractSet[int], now: float) -> bool:
    """Tell whether the lead should be asked for the second job now.

    Flux may end the first job before it shows the lost node as offline: until then the
    second job could start there, and be lost at once.
    """
    if not 0 <= now - repeat.since < ASK_AGAIN_S:
        return True
    return not repeat.asked and not parse_idset(repeat.ranks) <= online
