# SPDX-License-Identifier: MIT
"""Reports what an autoscaler did for pods or to pods, from its events.

Sources: the events of kubernetes/autoscaler (processors/status,
core/scaledown/actuation), and of kubernetes-sigs/karpenter (pkg/events/reason.go,
provisioning/scheduling, node/termination), which EKS Auto Mode and AKS also run.
Karpenter's events about nodes and node claims are in places that the daemon may not
read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from burst.kits.kube.kinds import POD
from burst.kits.pods.status.kept_object import KeptObject
from burst.kits.pods.status.pod_status import PodStatus
from burst.kits.pods.status.warnings import ObjectWarning, Warnings, warnings_about
from burst.model.decision import exact_moment
from burst.provider import Phase

# By how the text (reason and message) begins: the scheduler and the kubelet also have
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
# Seconds from the event to the next pod, at most: it is made once the previous pod has
# ended, which takes at most its grace period.
_FOLLOWS_S = 60.0


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
    found = [_last(_TAKES, ends, made - _FOLLOWS_S)]
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
        what = next((w for begin, w in words.items() if warning.begins(begin)), "")
        if what and warning.last >= since:
            told = f"{what} (since {exact_moment(warning.first)}): {warning.text}"
    return told + "".join(f"; {hint}" for words, hint in _HINTS if words in told)
