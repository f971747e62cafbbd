# SPDX-License-Identifier: MIT
"""Events of Jobs and pods, and what they tell about missing or waiting pods.

Sources: the Kubernetes documentation, "Event" of events/v1 and "Admission Controllers";
texts of 1.34. Of autoscalers: the events of kubernetes/autoscaler (processors/status,
core/scaledown/actuation), and of kubernetes-sigs/karpenter (pkg/events/reason.go,
provisioning/scheduling, node/termination), which EKS Auto Mode and AKS also run.
Karpenter's events about nodes and node claims are in places that the daemon may not
read.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from burst.kits.kube.denials import Why, quote, read_denial
from burst.kits.kube.kinds import JOB, POD, Manifest
from burst.kits.pods.status.kept_object import KeptObject, seconds_of
from burst.kits.pods.status.pod_status import FOLLOWS_S, PodStatus
from burst.kits.shorten import shorten
from burst.model.decision import exact_moment
from burst.provider import Phase

_NOT_MADE = "FailedCreate"
# What an autoscaler did for a pod without a node, and to a pod that lost its node. By
# how the text (reason and message) begins: the scheduler and the kubelet also have
# events of the reasons FailedScheduling and Evicted, with other messages.
_ADDS = {
    "TriggeredScaleUp: ": "the autoscaler adds nodes",
    "NotTriggerScaleUp: ": "the autoscaler adds no node",
    "FailedScaleUp: ": "the autoscaler could not add a node",
    "Nominated: ": "Karpenter has chosen a node for it, which may have to boot",
    "FailedScheduling: Failed to schedule pod": "Karpenter adds no node",
}
_TAKES = {
    "ScaleDown: ": "the autoscaler took its node away",
    "Disrupted: ": "Karpenter took its node away",
    "Evicted: Evicted pod": "Karpenter took its node away",
}
# Advice for messages of cluster-autoscaler.
_HINTS = (
    ("max node group size reached", "raise the largest size of a node group"),
    ("max cluster", "raise the limits of the whole cluster"),
    (
        "in backoff after failed scale-up",
        "it tries again after a few minutes, or up to half an hour; the cloud's log"
        " says why it failed before",
    ),
)
# They do not tell why a pod that has a node does not start.
_OF_NODES = {begin.partition(":")[0] for begin in (*_ADDS, *_TAKES)}
PREEMPTED = "Preempted"
"""The reason of the scheduler's event about a pod that it preempted."""
PULLING = "Pulling"
"""The reason of the kubelet's event when it begins to pull an image."""
_TOLD = {*_OF_NODES, PREEMPTED, PULLING}
"""Reasons of Normal events that tell why a pod waits."""
QUEUE_KINDS = ("Workload", "PodGroup")
"""Kinds of Kueue and Volcano. All events about them tell why pods wait."""
USUAL = ("Scheduled", PULLING, "Pulled", "Created", "Started", "Killing")
"""Reasons of events that each pod has."""
# Longest text of a denial. It may name several rules; the end is cut off.
_LONGEST_RULE = 600


class ObjectWarning(msgspec.Struct, frozen=True, order=True):
    """A Warning event about an object, or a Normal one that tells why a pod waits."""

    last: float
    """When it happened last, in seconds since the epoch."""
    first: float
    """When it happened first: Kubernetes counts equal events as one."""
    reason: str
    text: str
    """Reason and message as one line."""


Warnings = Mapping[tuple[str, str], tuple[ObjectWarning, ...]]
"""The warnings about each object, by its kind and name; in order of time."""


def warnings_by_object(events: Iterable[Manifest]) -> Warnings:
    """Return the warnings about each object. Other events are left out."""
    found: dict[tuple[str, str], list[ObjectWarning]] = defaultdict(list)
    for event in events:
        about = event.get("involvedObject") or {}
        told = event.get("reason") in _TOLD or about.get("kind") in QUEUE_KINDS
        if event.get("type") == "Normal" and not told:
            continue
        made = event["metadata"].get("creationTimestamp") or ""
        at = event.get("eventTime") or made
        reason = event.get("reason", "")
        warning = ObjectWarning(
            last=seconds_of(event.get("lastTimestamp") or at),
            first=seconds_of(event.get("firstTimestamp") or at),
            reason=reason,
            text=_text_of(reason, str(event.get("message") or "")),
        )
        found[about.get("kind", ""), about.get("name", "")].append(warning)
    return {key: tuple(sorted(warnings)) for key, warnings in found.items()}


def warnings_about(warnings: Warnings, kind: str, prefix: str) -> list[ObjectWarning]:
    """Return the warnings about objects whose names begin so, in order of time."""
    return sorted(
        warning
        for (known, name), told in warnings.items()
        for warning in told
        if known == kind and name.startswith(prefix)
    )


def _text_of(reason: str, message: str) -> str:
    """Return reason and message as one line; a denial is cut down to its rule."""
    if reason != _NOT_MADE:
        return shorten(f"{reason}: {message}")
    return shorten(f"{reason}: {quote(message)}", _LONGEST_RULE)


def why_starting(warnings: Warnings, pod: str) -> str:
    """Return what keeps a pod from being started; empty if no event says so."""
    found = warnings.get((POD.name, pod), ())
    about = [warning for warning in found if warning.reason not in _OF_NODES]
    if not about:
        return ""
    last = about[-1]
    if last.reason == PULLING:
        return f"waits for its image: {last.text}"
    return f"cannot be started: {last.text}"


Cause = Literal["quota", "refused", "denied", "queued", "other"]
_CAUSES: dict[Why, Cause] = {
    Why.QUOTA: "quota",
    Why.RULE: "refused",
    Why.LACKS: "denied",
    Why.UNKNOWN: "denied",
    Why.OUTAGE: "other",
}


class Hindrance(msgspec.Struct, frozen=True):
    """Why a Job makes no pods."""

    why: str
    cause: Cause
    """quota: a quota is used up; others may free some of it. refused: a rule of the
    cluster forbids these pods, such as a quota that demands limits, PodSecurity, a
    LimitRange, a security context constraint or an admission webhook. denied: something
    that the pods need does not exist, such as a service account or priority class, or
    the cause is not known. queued: the Job is suspended. other: the cluster itself does
    not work, as when a webhook does not answer; nobody denied the pod."""
    since: float = math.inf
    """When it began, in seconds since the epoch; infinity if it is not known."""
    follower: str = ""
    """What the queue of a suspended Job says about its followers; else empty."""
    preempted: bool = False
    """Whether the queue gave the followers' place to others."""


def hindrance_of(
    job: KeptObject, pods: Iterable[KeptObject], warnings: Warnings
) -> Hindrance | None:
    """Return why a Job that lacks pods cannot make them; None if no event says so.

    Warnings from before its newest pod are ignored: pods could be made after them.
    """
    newest = max((pod.made_at for pod in pods), default=0.0)
    about = warnings.get((JOB.name, job.name), ())
    failed = [w for w in about if w.reason == _NOT_MADE and w.last > newest]
    if not failed:
        return None
    text = failed[-1].text
    since = max(newest, min(warning.first for warning in failed))
    found = read_denial(text)
    refused = found.why is Why.RULE
    advice = f"; {found.advice}" if refused else ""
    return Hindrance(f"pods cannot be made: {text}{advice}", _CAUSES[found.why], since)


def note_autoscaler(
    status: PodStatus, prefix: str, best: KeptObject | None, warnings: Warnings
) -> PodStatus:
    """Return the status of a waiting follower, with the last action of an autoscaler.

    Its pod `best` may wait for a node, or replace a pod that lost its node. The names
    of both pods begin with `prefix`.
    """
    if status.phase is not Phase.PENDING:
        return status
    made = best.made_at if best else 0.0
    ends = warnings_about(warnings, POD.name, prefix)
    found = [_last(_TAKES, ends, made - FOLLOWS_S)]
    if best is not None and not best.node:
        own = warnings.get((POD.name, best.name), ())
        found.append(_last(_ADDS, own, 0.0))
    why = "; ".join(filter(None, (status.why, *found)))
    return msgspec.structs.replace(status, why=why)


def _last(
    words: Mapping[str, str], warnings: Iterable[ObjectWarning], since: float
) -> str:
    """Return what the last event with one of the `words` says; empty if none is new.

    Events before `since` are ignored. Kubernetes counts equal events as one; the time
    of the first is reported, as it does not change.
    """
    told = ""
    for warning in warnings:
        text = warning.text
        what = next((w for begin, w in words.items() if text.startswith(begin)), "")
        if what and warning.last >= since:
            told = f"{what} (since {exact_moment(warning.first)}): {text}"
    return told + "".join(f"; {hint}" for words, hint in _HINTS if words in told)
