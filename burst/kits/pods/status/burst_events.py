# SPDX-License-Identifier: MIT
"""Writes the history of a burst as events about its Job or MiniCluster.

`kubectl describe job` and `kubectl get events` show them to people without access to
the daemon. Kubernetes keeps them for an hour.
"""

from __future__ import annotations

import zlib
from datetime import UTC, datetime

from burst.errors import NotFound, ProviderError
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import EVENT, JOB, MINICLUSTER, Manifest
from burst.kits.pods.settings import PodSettings
from burst.model.burst import BurstId
from burst.model.event import PROBLEMS, Event
from burst.model.finding import Finding, note, ok

_REASONS = {
    "submit": "BurstPlanned",
    "drain": "BurstDraining",
    "exception": "BurstFailed",
    "finish": "BurstFinished",
    "quarantine": "BurstQuarantined",
}
"""Reasons by the name of the event; for other names the reason is `Burst` and the
capitalized name."""
_MOST = 1000
# maxLength of an event's message (events.k8s.io).
_LONGEST = 1024


class BurstEvents:
    """Writes events about one provider's bursts. For one thread."""

    def __init__(self, cluster: Cluster, settings: PodSettings) -> None:
        self._cluster = cluster
        self._namespace = settings.namespace
        self._kind = MINICLUSTER if settings.form == "operator" else JOB
        self._known: dict[BurstId, Manifest] = {}
        """The object of each burst's events. It may be deleted before the last
        event."""

    def record(self, burst_id: BurstId, event: Event, text: str) -> None:
        """Write an event, unless it exists.

        Raises NotFound if the Job or MiniCluster does not exist yet, Transient,
        Refused.
        """
        about, name = self._known.get(burst_id) or self._find(burst_id), event.name
        at = datetime.fromtimestamp(event.timestamp, UTC)
        when = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        self._cluster.create(
            {
                "apiVersion": EVENT.api,
                "kind": EVENT.name,
                "metadata": {
                    "name": _name_of(burst_id, event),
                    "namespace": self._namespace,
                },
                "involvedObject": about,
                "reason": _REASONS.get(name, f"Burst{name.capitalize()}"),
                "message": text[:_LONGEST],
                "type": "Warning" if name in PROBLEMS else "Normal",
                "source": {"component": "burst"},
                "firstTimestamp": when,
                "lastTimestamp": when,
                "count": 1,
            }
        )
        if name == "reaped":
            self._known.pop(burst_id, None)

    def examine(self) -> Finding:
        """Check whether events may be written. Without this right all else works."""
        try:
            if self._cluster.may("create", EVENT, self._namespace):
                return ok(f"may write events of bursts in namespace {self._namespace}")
        except ProviderError as error:
            return note(f"cannot ask about events: {error.what}", error.advice)
        return note(
            "may not create events: kubectl does not show what happened to a burst",
            "apply manifests/role again to show it there",
        )

    def _find(self, burst_id: BurstId) -> Manifest:
        kind = self._kind
        found = self._cluster.get(kind, self._namespace, burst_id, metadata_only=True)
        if found is None:
            raise NotFound(f"there is no {kind.name} {burst_id} yet")
        about = {
            "apiVersion": kind.api,
            "kind": kind.name,
            "namespace": self._namespace,
            "name": burst_id,
            "uid": found["metadata"]["uid"],
        }
        if len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
        self._known[burst_id] = about
        return about


def _name_of(burst_id: BurstId, event: Event) -> str:
    """Return the name of the event's object; it is the same at each attempt."""
    when, what = event.timestamp * 1e6, zlib.crc32(event.line().encode())
    return f"{burst_id}.{when:.0f}.{what:08x}"
