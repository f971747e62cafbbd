# SPDX-License-Identifier: MIT
"""Reads the events that say why pods of a namespace do not run."""

from __future__ import annotations

from collections.abc import Collection

from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import JOB, POD
from burst.kits.pods.pod_status import STARTING, PodStatus
from burst.kits.pods.reclaim import PREEMPTED
from burst.kits.pods.warnings import PULLING, Warnings, warnings_by_object
from burst.provider import Phase


def read_warnings(
    cluster: Cluster, namespace: str, followers: Collection[PodStatus]
) -> Warnings:
    """Return what events say of Jobs and pods if a follower does not run, else nothing.

    They are not read otherwise, as a namespace may have many. Raises as `Cluster` does.
    """
    if all(word.phase is Phase.RUNNING for word in followers):
        return {}
    events = [event for kind in (JOB, POD) for event in cluster.events(namespace, kind)]
    events += cluster.events(namespace, POD, reason=PREEMPTED)
    if any(word.why == STARTING for word in followers):
        events += cluster.events(namespace, POD, reason=PULLING)
    return warnings_by_object(events)
