# SPDX-License-Identifier: MIT
"""What a job's state in Slurm means, and the reason why it is pending.

Sources: squeue(1), JOB STATE CODES and JOB REASON CODES, of Slurm 22.05 to 25.05;
https://slurm.schedmd.com/job_state_codes.html and /resource_limits.html.
"""

from __future__ import annotations

import re

import msgspec

from burst.provider import Failure, Phase

SETTLES_S = 60.0
"""Seconds that a reason must have lasted before it counts as want of capacity: Slurm
gives some of them for a moment, as while a node boots or a scheduling pass is due. Also
how long a job must be missing before it counts as forgotten."""


class SlurmState(msgspec.Struct, frozen=True):
    """What the state of a job means for the burst."""

    phase: Phase
    words: str
    over: bool = False
    """Whether the job has ended, so that nothing of it runs or will run."""
    failure: Failure = Failure.OTHER


def _over(words: str, failure: Failure = Failure.OTHER) -> SlurmState:
    return SlurmState(Phase.FAILED, words, True, failure)


_AGAIN = SlurmState(Phase.PENDING, "was put into the queue again")
_STILL = SlurmState(Phase.PENDING, "is suspended, so that its followers do nothing")
_BOOTS = SlurmState(Phase.PENDING, "waits for its nodes to be ready")
_RUNS = SlurmState(Phase.RUNNING, "")
# Each job that ends is in such a state first, until its processes and the epilog are
# done; only the next state tells why. So it is not ENDING: the burst would end at once,
# and as one that somebody deletes.
_ENDS = SlurmState(Phase.PENDING, "is ending, and why is not known yet")
_HELD = SlurmState(Phase.FAILED, "was put into the queue again, and held there")

_STATES = {
    "PENDING": SlurmState(Phase.PENDING, ""),
    "CONFIGURING": _BOOTS,
    "POWER_UP_NODE": _BOOTS,
    "REQUEUED": _AGAIN,
    "REQUEUE_FED": _AGAIN,
    "EXPEDITING": _AGAIN,
    "SUSPENDED": _STILL,
    "STOPPED": _STILL,
    "RUNNING": _RUNS,
    # It runs while something is done to it.
    "SIGNALING": _RUNS,
    "RESIZING": _RUNS,
    "COMPLETING": _ENDS,
    "STAGE_OUT": _ENDS,
    # Not over: Slurm keeps them until somebody cancels them.
    "REQUEUE_HOLD": _HELD,
    "SPECIAL_EXIT": _HELD,
    "RESV_DEL_HOLD": SlurmState(Phase.FAILED, "is held, as its reservation is gone"),
    # It is listed until the other cluster's job has ended, which scancel ends, too.
    "REVOKED": SlurmState(Phase.FAILED, "was started by another cluster"),
    "LAUNCH_FAILED": SlurmState(Phase.FAILED, "could not be launched"),
    "RECONFIG_FAIL": SlurmState(Phase.FAILED, "lost nodes that were reconfigured"),
    "COMPLETED": _over("has ended, as all its followers have"),
    "CANCELLED": _over("was canceled"),
    "FAILED": _over("has failed"),
    "TIMEOUT": _over("has reached its time limit"),
    "DEADLINE": _over("has reached its deadline"),
    "NODE_FAIL": _over("has lost a node"),
    "OUT_OF_MEMORY": _over("took more memory than it may"),
    "BOOT_FAIL": _over("had a node that did not boot", Failure.CAPACITY),
    "PREEMPTED": _over("lost its nodes to other jobs", Failure.RECLAIMED),
}
UNLISTED = "unlisted"
FORGOTTEN = "forgotten"
_STATES |= {
    # Not states of Slurm: for a job that was submitted and that Slurm does not list, as
    # after the controller lost its state, or MinJobAge after the job's end.
    UNLISTED: SlurmState(Phase.PENDING, "is not listed, and how it ended is not known"),
    FORGOTTEN: _over("is not known any more, nor how it ended"),
}
_UNKNOWN = SlurmState(Phase.PENDING, "is in a state that is not known here")


def state_of(name: str) -> SlurmState:
    """Return what a state means, by its long name as squeue and sacct print it."""
    return _STATES.get(name, _UNKNOWN)


class PendingReason(msgspec.Struct, frozen=True):
    """Why a job is pending."""

    words: str
    failure: Failure | None = None
    """The failure of the burst; None if waiting may help."""
    after: float = 0.0
    """Seconds that such reasons must have lasted before the burst counts as failed."""


_FORBIDDEN = PendingReason("asks for more than a limit allows", Failure.REFUSED)
_DENIED = PendingReason("may not run with these settings", Failure.REFUSED)
_QUOTA = PendingReason("waits, as a quota is used up", Failure.CAPACITY, SETTLES_S)
_AWAY = PendingReason(
    "waits for nodes that are down, drained or reserved", Failure.CAPACITY, SETTLES_S
)
# Slurm gives the same reason for both.
_TOO_MANY = PendingReason(
    "needs more nodes than its partition allows, or nodes that are down or drained",
    Failure.CAPACITY,
    SETTLES_S,
)
_LAUNCH = PendingReason("could not be launched, so Slurm holds it", Failure.OTHER)
_PERSON = PendingReason("is held, and a person has to release it (scontrol release)")

LIMIT_OF_ONE_JOB = r"(Assoc|QOS)M(ax|in)(?!\w*(PerUser|PerAccount|Jobs|Submit))"
"""Matches reasons of a limit for one job or node, which forbids this burst. Those for
all jobs of a user, account or group are used up for now."""

# The first that matches the reason from its beginning decides.
_REASONS = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"Resources|Nodes.required", PendingReason("waits for nodes that are in use")),
        (r"Priority", PendingReason("waits behind jobs of a higher priority")),
        (
            r"Dependency$",
            PendingReason("waits until an earlier job of this burst has ended"),
        ),
        (r"Licenses", PendingReason("waits for licenses")),
        (r"Reservation$", PendingReason("waits for its reservation to begin")),
        (r"ReqNodeNotAvail|NodeDown|FrontEndDown|Partition(Down|Inactive)", _AWAY),
        (r"PartitionNodeLimit", _TOO_MANY),
        (r"PartitionTimeLimit|PartitionConfig|BadConstraints", _FORBIDDEN),
        (r"(Association|QOS)TimeLimit|MaxMemPerLimit", _FORBIDDEN),
        (LIMIT_OF_ONE_JOB, _FORBIDDEN),
        (r"Invalid(Account|QOS)|(Account|QOS)NotAllowed|DependencyNever", _DENIED),
        (r"Assoc|QOS|Max\w*PerAccount", _QUOTA),
        # `launch failed requeued held`: no person who could release it knows of it.
        (r"JobHoldMaxRequeue|.*failed.requeued.held", _LAUNCH),
        (r"Job(Held|Hold)|.*held", _PERSON),
    )
)


def reason_of(text: str) -> PendingReason:
    """Return what a reason of squeue means; an unknown one means that the job waits."""
    for pattern, reason in _REASONS:
        if pattern.match(text):
            return reason
    return PendingReason("waits")
