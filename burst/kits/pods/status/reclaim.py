# SPDX-License-Identifier: MIT
"""Tells what ended a pod: its node or place was taken, or it was deleted."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

import msgspec

from burst.kits.kube.kinds import POD
from burst.kits.pods.status.kept_object import KeptObject
from burst.kits.pods.status.pod_status import (
    FOLLOWS_S,
    PREEMPTION,
    PodStatus,
    disruption_of,
    is_reclaimed,
    pod_status_of,
)
from burst.kits.pods.status.warnings import PREEMPTED, Warnings
from burst.provider import Phase

_NO_POD = "has no pod yet"
_DELETED = "lost its pod, which was deleted, and not by burst"
_SUSPENDED = "lost its pod, as its Job was suspended, and not by burst"
_FAILED = "had a pod that failed"
# For a pod that disappeared between two lists.
_UNSEEN = "lost its pod, for a reason that was not seen"
_MADE_AT = attrgetter("made_at")


def follower_status(
    best: KeptObject | None, pods: Iterable[KeptObject], *, suspended: bool = False
) -> PodStatus:
    """Return the status of a follower; `best` is its best pod, `pods` have ended.

    Until another pod runs, only the pod before it, which may be gone, tells what ended
    it. `suspended`: the Job is suspended, so it deletes its pods. We do not suspend a
    Job that was started, so a person or a queue did.
    """
    status = PodStatus(Phase.PENDING, _NO_POD) if best is None else pod_status_of(best)
    ended = [] if status.phase is Phase.RUNNING else sorted(pods, key=_MADE_AT)
    if not ended:
        return status
    why = disruption_of(ended[-1]) or (_SUSPENDED if suspended else _ended(ended[-1]))
    reclaimed = any(map(is_reclaimed, ended))
    if ended[-1] is best:
        return msgspec.structs.replace(status, lost=why, reclaimed=reclaimed)
    return _followed(status, why, reclaimed=reclaimed)


def _ended(pod: KeptObject) -> str:
    if pod.ending:
        return _DELETED
    return _FAILED if pod.phase == "Failed" else _UNSEEN


def note_preemption(
    status: PodStatus,
    prefix: str,
    best: KeptObject | None,
    others: Iterable[KeptObject],
    warnings: Warnings,
) -> PodStatus:
    """Return the status of a follower whose last pod may have been preempted.

    A pod whose broker ends at once is gone before it is seen, but its event is not.
    `best` is the pod that replaces it; the names of both begin with `prefix`. An event
    exists for an hour. It is too old if a later pod existed: one of `others`, which are
    present or former pods of the burst, or `best` if it has begun to run.
    """
    if status.phase is not Phase.PENDING or status.reclaimed:
        return status
    if status.lost not in ("", _UNSEEN):
        return status
    been = [pod for pod in others if pod.name.startswith(prefix)]
    since = 0.0
    if best is not None and _is_waiting(best):
        since = best.made_at - FOLLOWS_S
    elif best is not None:
        been.append(best)
    last = max(been, key=_MADE_AT, default=None)
    since = max(since, last.made_at) if last else since
    told = any(
        warning.reason == PREEMPTED
        and (warning.last >= since or (last is not None and name == last.name))
        for (kind, name), about in warnings.items()
        if kind == POD.name and name.startswith(prefix)
        for warning in about
    )
    if not told:
        return status
    return _followed(status, PREEMPTION, reclaimed=True)


def _is_waiting(pod: KeptObject) -> bool:
    return pod.phase == "Pending" and not pod.ending


def _followed(status: PodStatus, why: str, *, reclaimed: bool) -> PodStatus:
    later = "" if status.why == _NO_POD else "its next pod "
    return msgspec.structs.replace(
        status, before=f"{why}; {later}", reclaimed=reclaimed, lost=why
    )
