# SPDX-License-Identifier: MIT
"""Asks the API server, without making anything, what it would say of followers' pods.

A namespace may enforce a Pod Security Standard, which denies pods and not the Job that
makes them; of the Job the API server only warns, where the namespace has it warn.

Source: the Kubernetes documentation, "Pod Security Admission" and "Pod Security
Standards".
"""

from __future__ import annotations

from collections.abc import Iterator

from burst.errors import InsufficientCapacity
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import JOB, Manifest
from burst.kits.pods import pod
from burst.kits.pods.containers import BROKER
from burst.kits.pods.settings import PodSettings
from burst.model.finding import Finding, note, ok

_VIOLATION = "would violate PodSecurity "
_NAME = "burst-doctor"


def judge_admission(cluster: Cluster, settings: PodSettings) -> Iterator[Finding]:
    """Have the API server look at a Job of one follower; with form job only.

    Raises Transient, Refused, SpecRefused.
    """
    try:
        warnings = cluster.rehearse(sample_job(settings))
    except InsufficientCapacity as error:
        # Live bursts may have used up the quota.
        yield note(error.what, error.advice)
        return
    found = [text for text in warnings if text.startswith(_VIOLATION)]
    for text in found:
        words = text.removeprefix(_VIOLATION)
        yield note(
            f"pods violate the Pod Security Standard {words}",
            f"namespace {settings.namespace} denies them if it enforces that:"
            f" {advise(settings)}",
        )
    if not found:
        standard = standard_of(settings)
        yield ok(f"pods keep to the Pod Security Standard {standard}")


def standard_of(settings: PodSettings) -> str:
    """Return the strictest Pod Security Standard that followers keep to.

    One of restricted, baseline and privileged.
    """
    if settings.host_paths:
        return "privileged"
    loose = settings.security == "baseline" or pod.user_of(settings) == 0
    return "baseline" if loose else "restricted"


def advise(settings: PodSettings) -> str:
    """Return what to do where a namespace denies followers."""
    asking = ["host_paths"] if settings.host_paths else []
    if settings.security == "baseline":
        asking.append('security = "baseline"')
    if pod.user_of(settings) == 0:
        asking.append("user = 0" + (", the daemon's" if settings.user is None else ""))
    if not asking:
        return "ask its administrator what it demands"
    return (
        f"do without {' and '.join(asking)}, or label it"
        f" pod-security.kubernetes.io/enforce={standard_of(settings)}"
    )


def sample_job(settings: PodSettings) -> Manifest:
    """Return a Job of one follower of the first offer. Raises Refused."""
    table = next(iter(settings.offers.values()))
    container = {
        "name": BROKER,
        **pod.container(settings),
        "resources": pod.resources(table, settings),
        "volumeMounts": pod.host_mounts(settings),
    }
    inside = {
        "restartPolicy": "Never",
        **pod.base(table, settings),
        "containers": [container],
        "volumes": pod.host_volumes(settings),
    }
    return {
        "apiVersion": JOB.api,
        "kind": JOB.name,
        "metadata": {"name": _NAME, "namespace": settings.namespace},
        "spec": {"suspend": True, "template": {"spec": inside}},
    }
