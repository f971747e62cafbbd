# SPDX-License-Identifier: MIT
"""The status of bursts, from their objects. Pure: no clock, no request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import msgspec

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
from burst.kits.pods.names import ID, INDEX, hosts_of
from burst.kits.pods.pod_status import (
    PodStatus,
    last_words,
    pod_status_of,
    seconds_of,
    shorten,
)
from burst.model.burst import BurstId
from burst.provider import BurstStatus, Failure, FollowerStatus, Phase

Warnings = Mapping[tuple[str, str], str]
"""The last warning about an object, by kind and name."""


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


def latest_warnings(events: Iterable[Manifest]) -> Warnings:
    """Return the last warning about each object."""

    def when(event: Manifest) -> str:
        return str(
            event.get("lastTimestamp")
            or event.get("eventTime")
            or event["metadata"].get("creationTimestamp", "")
        )

    found: dict[tuple[str, str], str] = {}
    for event in sorted(events, key=when):
        about = event.get("involvedObject") or {}
        words = f"{event.get('reason', '')}: {event.get('message', '')}"
        found[about.get("kind", ""), about.get("name", "")] = shorten(words)
    return found


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
            said[host] = pod_status_of(best), name_of(best)
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
        return _ending(found, said)
    parents = found.of(JOB.name, MINICLUSTER.name)
    if not parents:
        words = {host: word for host, (word, _) in said.items()}
        return _status(found.id, words, "is not complete; provision or reap it again")
    words = {
        host: _completed(word, pod, warnings, logs)
        for host, (word, pod) in said.items()
    }
    failed = next(_failures(found), "")
    if failed:
        words = {host: PodStatus(Phase.FAILED, failed) for host in words}
        return _status(found.id, words, failed)
    starved = _without_pods(found, words, warnings, (schedule, now))
    return starved or _status(found.id, words, _why_no_pods(found, warnings))


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
        followers=tuple(FollowerStatus(h, w.phase, w.why) for h, w in words.items()),
        why=why,
    )


def _ending(
    found: BurstObjects, said: Mapping[str, tuple[PodStatus, str]]
) -> BurstStatus:
    left = [host for host, (_, pod) in said.items() if pod]
    kinds = sorted({item["kind"] for item in found.objects})
    return BurstStatus(
        burst_id=found.id,
        phase=Phase.ENDING,
        followers=tuple(
            FollowerStatus(host, Phase.ENDING, "its pod is not gone yet")
            for host in left
        ),
        why=f"not gone yet: {len(left)} pods, and of kind {', '.join(kinds)}",
    )


def _completed(
    word: PodStatus, pod: str, warnings: Warnings, logs: Mapping[str, str]
) -> PodStatus:
    """Return the status with the reason that events and the log give."""
    if word.crashed and logs.get(pod):
        why = f"{word.why}: {last_words(logs[pod])}"
        return msgspec.structs.replace(word, why=why)
    warning = warnings.get((POD.name, pod), "")
    if word.phase is Phase.PENDING and word.why == "is being started" and warning:
        return msgspec.structs.replace(word, why=f"cannot be started: {warning}")
    return word


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


def _why_no_pods(found: BurstObjects, warnings: Warnings) -> str:
    """Return why pods are missing; empty if none is."""
    if len(found.of(POD.name)) >= len(found.hosts):
        return ""
    jobs = found.of(JOB.name)
    if not jobs:
        return "the Flux Operator has not made its Job yet; check that it runs"
    warning = warnings.get((JOB.name, name_of(jobs[0])), "")
    return f"pods cannot be made: {warning}" if warning else ""


def _without_pods(
    found: BurstObjects,
    words: Mapping[str, PodStatus],
    warnings: Warnings,
    patience: tuple[float, float],
) -> BurstStatus | None:
    """Return the status of a burst that has waited too long for nodes or for quota."""
    schedule, now = patience
    waiting = {word.since: f"{h} {word.why}" for h, word in words.items() if word.since}
    hindrance = _why_no_pods(found, warnings)
    if "exceeded quota" in hindrance:
        jobs = found.of(JOB.name)
        made = jobs[0]["metadata"].get("creationTimestamp", "")
        waiting[seconds_of(made)] = hindrance
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
    """Return the sort key of pods with one index: living ones last, then by age."""
    phase = (pod.get("status") or {}).get("phase", "Pending")
    lives = phase in ("Pending", "Running") and not is_ending(pod)
    return lives, pod["metadata"].get("creationTimestamp", "")
