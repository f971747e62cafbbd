# SPDX-License-Identifier: MIT
"""Determines the status of bursts from their objects, without a clock or requests."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from burst.kits.join_errors import explain_log
from burst.kits.kube.kinds import JOB, MINICLUSTER, POD
from burst.kits.pods.lifecycle.stuck_pods import is_overdue
from burst.kits.pods.status.burst_objects import BurstObjects, BurstPart
from burst.kits.pods.status.kept_object import KeptObject, seconds_of
from burst.kits.pods.status.pod_status import (
    STARTING,
    WAITS,
    PodStatus,
    has_ended,
    last_words,
)
from burst.kits.pods.status.queueing import words_of_kueue, words_of_volcano
from burst.kits.pods.status.reclaim import follower_status, note_preemption
from burst.kits.pods.status.warnings import (
    Hindrance,
    Warnings,
    hindrance_of,
    note_autoscaler,
    why_starting,
)
from burst.kits.shorten import shorten
from burst.provider import BurstStatus, Failure, FollowerStatus, Phase

# Seconds for which something that pods need may be missing before that is a failure:
# the service account of a new namespace may be made a moment later. If a rule refuses
# pods, this time applies only if the part has other pods.
_DENIED_S = 60.0
_INCOMPLETE = "is not complete; provision or reap it again"
_UNLISTED = (
    "the object that made its pods is not listed: it was deleted, or labels of burst"
    " were removed from it"
)
_QUEUED = (
    "is queued: its Job is suspended until Kueue, or whoever suspended it, starts it"
)


def followers(found: BurstObjects) -> dict[str, tuple[PodStatus, str]]:
    """Return each follower's status and the name of its pod, by host.

    The name is empty for a follower without a pod. Hosts that leave are left out.
    """
    pods: dict[str, list[KeptObject]] = defaultdict(list)
    former: dict[str, list[KeptObject]] = defaultdict(list)
    for pod in found.of(POD.name):
        pods[found.host_of(pod)].append(pod)
    for pod in found.former:
        former[found.host_of(pod)] = [pod]
    stopped = [part for part in found.parts if any(j.suspended for j in part.jobs)]
    suspended = {host for part in stopped for host in part.hosts}
    said: dict[str, tuple[PodStatus, str]] = {}
    for host in found.hosts:
        best = max(pods[host], key=_liveness, default=None)
        ended = [*former[host], *filter(has_ended, pods[host])]
        status = follower_status(best, ended, suspended=host in suspended)
        said[host] = status, best.name if best else ""
    return said


def describe(
    found: BurstObjects,
    warnings: Warnings,
    logs: Mapping[str, str],
    schedule: float,
    now: float,
) -> BurstStatus:
    """Return the status of a burst. `logs` are the ends of logs, by pod name.

    `schedule` is how many seconds a pod may wait for a node. After that time its part
    of the burst has failed; the other parts go on.
    """
    said = followers(found)
    if found.ending:
        return _ending(found, now)
    if not found.is_complete:
        words = {host: word.whole() for host, (word, _) in said.items()}
        unlisted = found.of(POD.name) and not found.of(JOB.name, MINICLUSTER.name)
        seen = _PartStatus(words, _UNLISTED if unlisted else _INCOMPLETE)
        return _status(found, [seen], now)
    completed = {
        host: (_completed(word, pod, warnings, logs), pod)
        for host, (word, pod) in said.items()
    }
    judged = (_judge(p, completed, warnings, schedule, now) for p in found.parts)
    return _status(found, list(judged), now)


class _PartStatus(msgspec.Struct, frozen=True):
    words: Mapping[str, PodStatus]
    """The status of each follower, by host."""
    why: str = ""
    failure: Failure = Failure.OTHER
    deleted: bool = False
    """Whether the part was deleted. Then its hosts may not be known."""


def _judge(
    part: BurstPart,
    said: Mapping[str, tuple[PodStatus, str]],
    warnings: Warnings,
    schedule: float,
    now: float,
) -> _PartStatus:
    """Return the status of a part. `said` is as `followers` returns it."""
    if part.deleted:
        seen = _failed(part.hosts, f"{part.name} was deleted, and not by burst")
        return msgspec.structs.replace(seen, deleted=True)
    pods = {item.name: item for item in part.pods}
    words = {}
    for index, host in enumerate(part.hosts):
        word, name = said[host]
        prefix, best = f"{part.name}-{index}-", pods.get(name)
        others = (pod for pod in (*part.former, *part.pods) if pod is not best)
        word = note_preemption(word, prefix, best, others, warnings)
        word = note_autoscaler(word, prefix, best, warnings)
        words[host] = _note_gang(word, part, warnings).whole()
    failed = next(_failures(part), "")
    if failed:
        words = {
            host: PodStatus(Phase.FAILED, failed, reclaimed=word.reclaimed)
            for host, word in words.items()
        }
        return _PartStatus(words, failed)
    if any(parent.incomplete for parent in part.parents):
        return _PartStatus(words, "its growth is not complete; resize it again")
    hindrance = _hindrance(part, warnings)
    if hindrance and hindrance.follower:
        words = {host: _note_queue(word, hindrance) for host, word in words.items()}
    if hindrance and hindrance.cause in ("refused", "denied"):
        refused = hindrance.cause == "refused"
        kind = Failure.REFUSED if refused else Failure.OTHER
        if refused and not part.pods:
            return _failed(words, hindrance.why, kind)
        if now > hindrance.since + _DENIED_S:
            why = f"for {now - hindrance.since:.0f} s, {hindrance.why}"
            return _failed(words, why, kind)
    starved = _starved(words, hindrance, schedule, now)
    return starved or _PartStatus(words, hindrance.why if hindrance else "")


def _failed(
    hosts: Iterable[str], why: str, failure: Failure = Failure.OTHER
) -> _PartStatus:
    return _PartStatus({h: PodStatus(Phase.FAILED, why) for h in hosts}, why, failure)


def _status(
    found: BurstObjects, parts: Sequence[_PartStatus], now: float
) -> BurstStatus:
    """Return the status of a burst from the statuses of its parts."""
    words = {host: word for part in parts for host, word in part.words.items()}
    phases = {phase for part in parts for phase in _phases(part)}
    order = (Phase.FAILED, Phase.PENDING, Phase.RUNNING)
    phase = next((p for p in order if p in phases), Phase.PENDING)
    alike = [p for p in parts if phase in _phases(p)]
    why = next((part.why for part in alike or parts if part.why), "")
    if not why:
        worst = ((h, w) for h, w in words.items() if w.phase is phase and w.why)
        why = next((f"{host} {word.why}" for host, word in worst), "")
    told = [part.failure for part in parts if part.failure is not Failure.OTHER]
    there = (p for p in found.of(POD.name) if p.node and not has_ended(p))
    placed = set(map(found.host_of, there))
    stay = tuple(
        FollowerStatus(
            host, word.phase, word.why, word.reclaimed, word.lost, host in placed
        )
        for host, word in words.items()
    )
    leaving = found.leaving
    advice = ": if it is, `kubectl delete pod --force` ends the pod"
    pods = (p for p in found.of(POD.name) if found.host_of(p) in leaving)
    late = _overdue(pods, now, advice)
    leave = tuple(
        FollowerStatus(host, Phase.ENDING, "ends, as the burst shrinks")
        for host in leaving
    )
    return BurstStatus(
        burst_id=found.id,
        phase=phase,
        followers=stay + leave,
        why="; ".join(filter(None, (why, late))),
        failure=told[0] if told else _failure(phase, words.values()),
    )


def _phases(part: _PartStatus) -> set[Phase]:
    phases = {word.phase for word in part.words.values()}
    return phases | {Phase.FAILED} if part.deleted else phases


def _failure(phase: Phase, words: Iterable[PodStatus]) -> Failure:
    taken = phase is Phase.FAILED and any(word.reclaimed for word in words)
    return Failure.RECLAIMED if taken else Failure.OTHER


def _ending(found: BurstObjects, now: float) -> BurstStatus:
    pods = found.of(POD.name)
    left = [host for host in dict.fromkeys(map(found.host_of, pods)) if host]
    kinds = sorted({item.kind for item in found.objects})
    why = f"not gone yet: {len(left)} pods; objects of kind {', '.join(kinds)}"
    advice = f": `burst down --force {found.id}` does not wait for it"
    if late := _overdue(pods, now, advice):
        why += f"; {late}"
    return BurstStatus(
        burst_id=found.id,
        phase=Phase.ENDING,
        followers=tuple(
            FollowerStatus(host, Phase.ENDING, "its pod is not gone yet")
            for host in left
        ),
        why=why,
    )


def _overdue(pods: Iterable[KeptObject], now: float, advice: str) -> str:
    """Return which pod does not end, and why; empty if there is none.

    One whose node may be dead comes first. For that one, `advice` is added.
    """
    overdue = (pod for pod in pods if pod.node and is_overdue(pod, now))
    late = min(overdue, key=_is_kept, default=None)
    if late is None:
        return ""
    if _is_kept(late):
        kept = ", ".join(late.metadata.finalizers)
        return (
            f"{late.name} has ended, but its finalizers keep it ({kept}): what has"
            " set them, or a person, has to remove them"
        )
    node = late.node
    return f"{late.name} should have ended, so its node {node} may be dead{advice}"


def _is_kept(pod: KeptObject) -> bool:
    """Return whether only its finalizers keep the object of a pod that has ended."""
    return bool(pod.metadata.finalizers) and pod.phase in ("Failed", "Succeeded")


def _completed(
    word: PodStatus, pod: str, warnings: Warnings, logs: Mapping[str, str]
) -> PodStatus:
    """Return the status with the reason from events and the log."""
    log = logs.get(pod, "")
    if word.crashed and log:
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


def _failures(part: BurstPart) -> Iterator[str]:
    """Yield why a Job will make no more pods."""
    for job in part.jobs:
        for condition in job.status.conditions:
            if condition.status != "True":
                continue
            if condition.reason == "DeadlineExceeded":
                yield "its lease is over, and Kubernetes has ended it"
            elif condition.type in ("Failed", "FailureTarget"):
                yield shorten(
                    f"its Job has failed: {condition.reason or ''}:"
                    f" {condition.message or ''}"
                )
            elif condition.type == "Complete":
                yield f"all brokers of Job {part.name} have ended"


def _hindrance(part: BurstPart, warnings: Warnings) -> Hindrance | None:
    """Return why pods are missing; None if none is missing or the cause is unknown."""
    if sum(not has_ended(pod) for pod in part.pods) >= len(part.hosts):
        return None
    if not part.jobs:
        why = "the Flux Operator has not made its Job yet; check that it runs"
        return Hindrance(why, "other")
    job = part.jobs[0]
    if job.suspended:
        told = words_of_kueue(job, warnings)
        why = f"{_QUEUED}; {told.text}" if told.text else _QUEUED
        stopped = job.condition("Suspended").last_transition_time
        since = seconds_of(stopped) or math.inf
        return Hindrance(why, "queued", since, told.text, told.preempted)
    return hindrance_of(job, part.pods, warnings)


def _note_queue(word: PodStatus, hindrance: Hindrance) -> PodStatus:
    """Return the status of a follower with what the queue of its Job says."""
    if word.phase is not Phase.PENDING:
        return word
    why = f"{word.why}; {hindrance.follower}"
    return msgspec.structs.replace(word, why=why, reclaimed=hindrance.preempted)


def _note_gang(word: PodStatus, part: BurstPart, warnings: Warnings) -> PodStatus:
    """Return the status of a follower, with what Volcano says if its pod waits."""
    told = words_of_volcano(part.jobs[0], warnings) if part.jobs else ""
    if not told or word.why != WAITS:
        return word
    return msgspec.structs.replace(word, why=f"{word.why}; {told}")


def _starved(
    words: Mapping[str, PodStatus],
    hindrance: Hindrance | None,
    schedule: float,
    now: float,
) -> _PartStatus | None:
    """Return the status of a part that waited too long for nodes or quota, or None."""
    waiting = {word.since: f"{h} {word.why}" for h, word in words.items() if word.since}
    if hindrance and hindrance.cause in ("quota", "queued"):
        waiting[hindrance.since] = hindrance.why
    since = min(waiting, default=now)
    if now - since <= schedule:
        return None
    failed = {
        host: PodStatus(Phase.FAILED, word.why, lost=word.lost)
        for host, word in words.items()
    }
    why = f"for {now - since:.0f} s, {waiting[since]}"
    return _PartStatus(failed, why, Failure.CAPACITY)


def _liveness(pod: KeptObject) -> tuple[bool, float]:
    """Return the sort key of pods of one host: live pods last, newer pods later."""
    lives = pod.phase in ("Pending", "Running") and not pod.ending
    return lives, pod.made_at
