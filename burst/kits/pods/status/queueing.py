# SPDX-License-Identifier: MIT
"""What Kueue and Volcano say of bursts that they keep waiting, or have stopped.

Kueue has a Workload for each Job, of which conditions and events tell; the daemon may
list the events, and the Workloads with manifests/parts/kueue. Volcano has a PodGroup
for the pods of a Job. Both are named for the Job or its uid.

Sources: the documentation of Kueue, "Workload" (conditions QuotaReserved, Admitted,
Evicted), and its events as users reported them; Volcano,
docs/design/scheduling-reason.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from burst.errors import ProviderError
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import Kind, Manifest, name_of
from burst.kits.pods.status.pod_status import seconds_of
from burst.kits.pods.status.warnings import ObjectWarning, Warnings
from burst.kits.shorten import shorten
from burst.model.decision import clock_time

WORKLOAD = Kind("kueue.x-k8s.io/v1beta1", "Workload", "workloads")
POD_GROUP = Kind("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups")

EVICTED = "EvictedDueTo"
"""What the reason of Kueue's event of an eviction begins with."""
_INADMISSIBLE = "Inadmissible"
# By what the reason of an event of a Workload begins with; others say nothing of it.
_WORDS = {
    EVICTED: "Kueue has evicted it",
    "Preempted": "Kueue has evicted it",
    "Pending": "Kueue has no quota for it",
    _INADMISSIBLE: "Kueue cannot admit it",
    "QuotaReserved": "Kueue has quota for it, and waits for admission checks",
    "Admitted": "",
}


class QueueWords(msgspec.Struct, frozen=True):
    """What a queue says of a Job."""

    text: str = ""
    preempted: bool = False
    """Whether others have its place now."""


def words_of_kueue(job: Manifest, warnings: Warnings) -> QueueWords:
    """Return what Kueue did last for a suspended Job, and why it was stopped."""
    begin = f"job-{name_of(job)}-"
    about = sorted(
        warning
        for (kind, name), told in warnings.items()
        for warning in told
        if kind == WORKLOAD.name and name.startswith(begin)
    )
    known = [(w, _meaning(w.reason)) for w in about if _meaning(w.reason) is not None]
    admitted = [w.last for w, meaning in known if not meaning]
    since = max(admitted, default=0.0)
    told: dict[str, ObjectWarning] = {}
    for warning, meaning in known:
        if meaning and warning.last >= since:
            told.pop(meaning, None)
            told[meaning] = warning
    evicted = told.get(_WORDS[EVICTED])
    return QueueWords(
        "; ".join(
            f"{meaning} (since {clock_time(warning.first)}): {warning.text}"
            for meaning, warning in told.items()
        ),
        evicted is not None and "Preempt" in evicted.text,
    )


def words_of_volcano(job: Manifest, warnings: Warnings) -> str:
    """Return why Volcano does not look at the pods of a Job yet; empty if it does."""
    uid = job["metadata"].get("uid", "")
    about = warnings.get((POD_GROUP.name, f"podgroup-{uid}"), ())
    return f"Volcano keeps its pods waiting: {about[-1].text}" if about else ""


def read_workloads(cluster: Cluster, namespace: str) -> Warnings:
    """Return what the conditions of Kueue's Workloads say, in the words of its events.

    Nothing where the account may not list them, or where there is no Kueue.
    """
    try:
        found = cluster.find(WORKLOAD, namespace)
    except ProviderError:
        return {}
    return {(WORKLOAD.name, name_of(each)): _conditions(each) for each in found}


def _meaning(reason: str) -> str | None:
    return next((w for begin, w in _WORDS.items() if reason.startswith(begin)), None)


def _conditions(workload: Manifest) -> tuple[ObjectWarning, ...]:
    conditions = (workload.get("status") or {}).get("conditions") or []
    return tuple(sorted(filter(None, map(_warning, conditions))))


def _warning(condition: Mapping[str, str]) -> ObjectWarning | None:
    """Return a condition as the event that Kueue writes with it, if it says more."""
    kind, holds = condition.get("type", ""), condition.get("status") == "True"
    reason = condition.get("reason", "")
    name = {
        ("Evicted", True): f"{EVICTED}{reason}",
        ("QuotaReserved", False): reason if reason == _INADMISSIBLE else "Pending",
        ("QuotaReserved", True): "QuotaReserved",
        ("Admitted", True): "Admitted",
    }.get((kind, holds))
    if name is None:
        return None
    at = seconds_of(condition.get("lastTransitionTime", ""))
    text = shorten(f"{name}: {condition.get('message', '')}")
    return ObjectWarning(last=at, first=at, reason=name, text=text)


def merge_warnings(parts: Iterable[Warnings]) -> Warnings:
    """Return all of them, those about one object in order of time."""
    found: dict[tuple[str, str], set[ObjectWarning]] = {}
    for part in parts:
        for key, warnings in part.items():
            found.setdefault(key, set()).update(warnings)
    return {key: tuple(sorted(warnings)) for key, warnings in found.items()}
