# SPDX-License-Identifier: MIT
"""The status of bursts, from their objects. Pure: no clock, no request."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from burst.kits.join_errors import explain_log
from burst.kits.kube.kinds import (
    JOB,
    MINICLUSTER,
    POD,
    Manifest,
    annotations_of,
    is_ending,
    labels_of,
    name_of,
)
from burst.kits.pods.autoscaler import note_autoscaler
from burst.kits.pods.names import ID, INDEX, SPEC, STARTED, hosts_of
from burst.kits.pods.pod_status import (
    STARTING,
    PodStatus,
    last_words,
    seconds_of,
    why_not_started,
)
from burst.kits.pods.reclaim import follower_status, note_preemption
from burst.kits.pods.stuck_pods import is_overdue, node_of
from burst.kits.pods.warnings import (
    Hindrance,
    Warnings,
    hindrance_of,
    why_starting,
)
from burst.kits.shorten import shorten
from burst.model.burst import BurstId
from burst.provider import BurstStatus, Failure, FollowerStatus, Phase

# For how long Kubernetes may deny pods until that is a failure. The service account of
# a new namespace, or a quota, may be made a moment after the burst.
_DENIED_S = 60.0
_QUEUED = "is queued: its Job is suspended until Kueue, or who suspended it, starts it"


class BurstObjects(msgspec.Struct, frozen=True):
    """All objects of one burst, as they were listed."""

    id: BurstId
    objects: tuple[Manifest, ...]

    def of(self, *kinds: str) -> list[Manifest]:
        """Return those of these kinds."""
        return [item for item in self.objects if item["kind"] in kinds]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The burst's hosts, by an annotation of its objects; none without it."""
        return next(filter(None, map(hosts_of, self.objects)), ())

    @property
    def ending(self) -> bool:
        """Whether its reaping has begun."""
        parents = self.of(JOB.name, MINICLUSTER.name)
        return any(map(is_ending, parents or self.objects))


def group_by_burst(objects: Iterable[Manifest]) -> list[BurstObjects]:
    """Return the bursts that the objects are of, in the order of their ids."""
    by_id: dict[str, list[Manifest]] = defaultdict(list)
    for item in objects:
        by_id[labels_of(item).get(ID, "")].append(item)
    # Objects with our labels but without a burst's were not made by us.
    return [BurstObjects(BurstId(i), tuple(by_id[i])) for i in sorted(by_id) if i]


def followers(found: BurstObjects) -> dict[str, tuple[PodStatus, str]]:
    """Return each follower's status and the name of its pod.

    The name is empty for a follower without a pod.
    """
    pods: dict[int, list[Manifest]] = defaultdict(list)
    for pod in found.of(POD.name):
        pods[index_of(pod)].append(pod)
    said: dict[str, tuple[PodStatus, str]] = {}
    for index, host in enumerate(found.hosts):
        best = max(pods.get(index, []), key=_liveness, default=None)
        if best is None:
            said[host] = PodStatus(Phase.PENDING, "has no pod yet"), ""
        else:
            said[host] = follower_status(best, pods[index]), name_of(best)
    return said


def describe(
    found: BurstObjects,
    warnings: Warnings,
    logs: Mapping[str, str],
    schedule: float,
    now: float,
) -> BurstStatus:
    """Return the status of a burst. `logs` are ends of logs, by pod.

    `schedule` is how many seconds a pod may wait for a node until that is a failure.
    """
    said = followers(found)
    if found.ending:
        return _ending(found, said, now)
    parents = found.of(JOB.name, MINICLUSTER.name)
    if not parents or any(map(is_incomplete, parents)):
        first = {host: word for host, (word, _) in said.items()}
        return _status(found.id, first, "is not complete; provision or reap it again")
    pods = {name_of(item): item for item in found.of(POD.name)}
    words = {}
    for index, (host, (word, pod)) in enumerate(said.items()):
        about = f"{found.id}-{index}-", pods.get(pod), warnings
        completed = _completed(word, pod, warnings, logs)
        words[host] = note_autoscaler(note_preemption(completed, *about), *about)
    failed = next(_failures(found), "")
    if failed:
        words = {
            host: PodStatus(Phase.FAILED, failed, reclaimed=word.reclaimed)
            for host, word in words.items()
        }
        return _status(found.id, words, failed)
    hindrance = _hindrance(found, warnings)
    if hindrance and hindrance.cause == "denied" and now > hindrance.since + _DENIED_S:
        why = f"for {now - hindrance.since:.0f} s, {hindrance.why}"
        words = {host: PodStatus(Phase.FAILED, why) for host in words}
        return _status(found.id, words, why)
    starved = _starved(found, words, hindrance, schedule, now)
    return starved or _status(found.id, words, hindrance.why if hindrance else "")


def is_incomplete(parent: Manifest) -> bool:
    """Return whether a Job of ours was not started yet, as it may lack what it mounts.

    A Job that the Flux Operator makes has none of our annotations.
    """
    noted = annotations_of(parent)
    ours = parent["kind"] == JOB.name and SPEC in noted
    return ours and STARTED not in noted and _is_suspended(parent)


def _is_suspended(parent: Manifest) -> bool:
    return bool((parent.get("spec") or {}).get("suspend"))


def _status(burst_id: BurstId, words: Mapping[str, PodStatus], why: str) -> BurstStatus:
    phases = {word.phase for word in words.values()}
    order = (Phase.FAILED, Phase.PENDING, Phase.RUNNING)
    phase = next((p for p in order if p in phases), Phase.PENDING)
    if not why:
        worst = ((h, w) for h, w in words.items() if w.phase is phase and w.why)
        why = next((f"{host} {word.why}" for host, word in worst), "")
    return BurstStatus(
        burst_id=burst_id,
        phase=phase,
        followers=tuple(
            FollowerStatus(host, word.phase, word.why, word.reclaimed)
            for host, word in words.items()
        ),
        why=why,
        failure=_failure(phase, words.values()),
    )


def _failure(phase: Phase, words: Iterable[PodStatus]) -> Failure:
    taken = phase is Phase.FAILED and any(word.reclaimed for word in words)
    return Failure.RECLAIMED if taken else Failure.OTHER


def _ending(
    found: BurstObjects, said: Mapping[str, tuple[PodStatus, str]], now: float
) -> BurstStatus:
    left = [host for host, (_, pod) in said.items() if pod]
    kinds = sorted({item["kind"] for item in found.objects})
    why = f"not gone yet: {len(left)} pods, and of kind {', '.join(kinds)}"
    late = [pod for pod in found.of(POD.name) if node_of(pod) and is_overdue(pod, now)]
    if late:
        pod, node = name_of(late[0]), node_of(late[0])
        why += (
            f"; {pod} should have ended, so its node {node} may be dead:"
            f" `burst down --force {found.id}` does not wait for it"
        )
    return BurstStatus(
        burst_id=found.id,
        phase=Phase.ENDING,
        followers=tuple(
            FollowerStatus(host, Phase.ENDING, "its pod is not gone yet")
            for host in left
        ),
        why=why,
    )


def _completed(
    word: PodStatus, pod: str, warnings: Warnings, logs: Mapping[str, str]
) -> PodStatus:
    """Return the status with the reason that events and the log give."""
    log = logs.get(pod, "")
    if word.crashed and log:
        unprepared = why_not_started(log)
        if unprepared:
            return PodStatus(Phase.FAILED, unprepared, crashed=True)
        told = [word.why, explain_log(log), last_words(log)]
        why = ": ".join(filter(None, told))
        return msgspec.structs.replace(word, why=why)
    if word.phase is Phase.RUNNING and log:
        told = [word.why, explain_log(log)]
        return msgspec.structs.replace(word, why=": ".join(filter(None, told)))
    if word.why != STARTING:
        return word
    why = why_starting(warnings, pod)
    return msgspec.structs.replace(word, why=why or STARTING)


def _failures(found: BurstObjects) -> Iterator[str]:
    """Yield why a Job of the burst will make no more pods."""
    for job in found.of(JOB.name):
        for condition in (job.get("status") or {}).get("conditions") or []:
            if condition.get("status") != "True":
                continue
            if condition.get("reason") == "DeadlineExceeded":
                yield "its lease is over, and Kubernetes has ended it"
            elif condition.get("type") in ("Failed", "FailureTarget"):
                yield shorten(
                    f"its Job has failed: {condition.get('reason', '')}:"
                    f" {condition.get('message', '')}"
                )
            elif condition.get("type") == "Complete":
                yield "all its brokers have ended"


def _hindrance(found: BurstObjects, warnings: Warnings) -> Hindrance | None:
    """Return why pods are missing; None if none is, or if that is not known."""
    pods = found.of(POD.name)
    if len(pods) >= len(found.hosts):
        return None
    jobs = found.of(JOB.name)
    if not jobs:
        why = "the Flux Operator has not made its Job yet; check that it runs"
        return Hindrance(why, "other")
    if _is_suspended(jobs[0]):
        return Hindrance(_QUEUED, "queued", _suspended_since(jobs[0]))
    return hindrance_of(jobs[0], pods, warnings)


def _suspended_since(job: Manifest) -> float:
    conditions = (job.get("status") or {}).get("conditions") or []
    times = (
        str(condition.get("lastTransitionTime", ""))
        for condition in conditions
        if condition.get("type") == "Suspended"
    )
    return seconds_of(next(times, "")) or math.inf


def _starved(
    found: BurstObjects,
    words: Mapping[str, PodStatus],
    hindrance: Hindrance | None,
    schedule: float,
    now: float,
) -> BurstStatus | None:
    """Return the status of a burst that has waited too long for nodes or for quota."""
    waiting = {word.since: f"{h} {word.why}" for h, word in words.items() if word.since}
    if hindrance and hindrance.cause in ("quota", "queued"):
        waiting[hindrance.since] = hindrance.why
    since = min(waiting, default=now)
    if now - since <= schedule:
        return None
    failed = {host: PodStatus(Phase.FAILED, word.why) for host, word in words.items()}
    why = f"for {now - since:.0f} s, {waiting[since]}"
    return msgspec.structs.replace(
        _status(found.id, failed, why), failure=Failure.CAPACITY
    )


def index_of(pod: Manifest) -> int:
    """Return the pod's completion index, which is a label since Kubernetes 1.28."""
    text = labels_of(pod).get(INDEX) or annotations_of(pod).get(INDEX, "")
    return int(text) if text.isdigit() else -1


def _liveness(pod: Manifest) -> tuple[bool, str]:
    """Return the sort key of pods with one index: live ones last, then by age."""
    phase = (pod.get("status") or {}).get("phase", "Pending")
    lives = phase in ("Pending", "Running") and not is_ending(pod)
    return lives, pod["metadata"].get("creationTimestamp", "")
