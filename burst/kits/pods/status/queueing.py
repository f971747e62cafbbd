# SPDX-License-Identifier: MIT
"""Reads what Kueue and Volcano say about bursts that they keep waiting or have stopped.

Kueue has a Workload for each Job, and reports by its conditions and by events. The
daemon may list the events, and with manifests/parts/kueue also the Workloads. Volcano
has a PodGroup for the pods of a Job. Their names contain the Job's name or its uid.

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
from burst.kits.pods.status.kept_object import KeptObject, seconds_of
from burst.kits.pods.status.warnings import ObjectWarning, Warnings, warnings_about
from burst.kits.shorten import shorten
from burst.model.decision import exact_moment

WORKLOAD = Kind("kueue.x-k8s.io/v1beta1", "Workload", "workloads")
POD_GROUP = Kind("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups")

EVICTED = "EvictedDueTo"
"""How the reason of Kueue's event about an eviction begins."""
_INADMISSIBLE = "Inadmissible"
# Meanings by how the reason of a Workload's event begins. Other reasons are ignored.
_WORDS = {
    EVICTED: "Kueue has evicted it",
    "Preempted": "Kueue has evicted it",
    "Pending": "Kueue has no quota for it",
    _INADMISSIBLE: "Kueue cannot admit it",
    "QuotaReserved": "Kueue has quota for it, and waits for admission checks",
    "Admitted": "",
}


class QueueWords(msgspec.Struct, frozen=True):
    """What a queue says about a Job."""

    text: str = ""
    preempted: bool = False
    """Whether the Job was preempted, so that others have its place now."""


def words_of_kueue(job: KeptObject, warnings: Warnings) -> QueueWords:
    """Return what Kueue last did with a suspended Job, and why it stopped the Job."""
    about = warnings_about(warnings, WORKLOAD.name, f"job-{job.name}-")
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
            f"{meaning} (since {exact_moment(warning.first)}): {warning.text}"
            for meaning, warning in told.items()
        ),
        evicted is not None and "Preempt" in evicted.text,
    )


def words_of_volcano(job: KeptObject, warnings: Warnings) -> str:
    """Return why Volcano does not schedule the pods of a Job yet; empty if it does."""
    about = warnings.get((POD_GROUP.name, f"podgroup-{job.metadata.uid}"), ())
    return f"Volcano keeps its pods waiting: {about[-1].text}" if about else ""


def read_workloads(cluster: Cluster, namespace: str) -> Warnings:
    """Return the conditions of Kueue's Workloads in the form of its events.

    It returns nothing without the right to list Workloads, or without Kueue.
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
    """Return a condition in the form of Kueue's event about it; None for others."""
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
    """Return the warnings of all parts; those about one object are in order of time."""
    found: dict[tuple[str, str], set[ObjectWarning]] = {}
    for part in parts:
        for key, warnings in part.items():
            found.setdefault(key, set()).update(warnings)
    return {key: tuple(sorted(warnings)) for key, warnings in found.items()}
