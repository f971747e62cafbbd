# SPDX-License-Identifier: MIT
"""What became of a burst, as events of its Job or MiniCluster.

`kubectl describe job` and `kubectl get events` show them to who has no access to the
daemon. Kubernetes keeps them for an hour.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime

from burst.errors import NotFound, ProviderError
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import EVENT, JOB, MINICLUSTER, Manifest
from burst.kits.pods.settings import PodSettings
from burst.model.burst import BurstId
from burst.model.finding import Finding, note, ok

_REASONS = {
    "submit": "BurstPlanned",
    "drain": "BurstDraining",
    "exception": "BurstFailed",
    "finish": "BurstFinished",
    "quarantine": "BurstQuarantined",
}
"""Of all other events it is the name itself."""
_WARNINGS = frozenset({"lost", "reclaimed", "exception", "overdue", "quarantine"})
_MOST = 1000
# maxLength of an event's message (events.k8s.io).
_LONGEST = 1024


class BurstEvents:
    """Writes events of one provider's bursts. For one thread."""

    def __init__(
        self, cluster: Cluster, settings: PodSettings, clock: Callable[[], float]
    ) -> None:
        self._cluster = cluster
        self._namespace = settings.namespace
        self._kind = MINICLUSTER if settings.form == "operator" else JOB
        self._clock = clock
        self._known: dict[BurstId, Manifest] = {}
        """What an event is of, which may be deleted before its last events."""

    def record(self, burst_id: BurstId, name: str, text: str) -> None:
        """Write one. Raises NotFound before the Job was seen, Transient, Refused."""
        about = self._known.get(burst_id) or self._find(burst_id)
        at = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        reason = _REASONS.get(name, f"Burst{name.capitalize()}")
        self._cluster.create(
            {
                "apiVersion": EVENT.api,
                "kind": EVENT.name,
                "metadata": {
                    "name": f"{burst_id}.{secrets.token_hex(8)}",
                    "namespace": self._namespace,
                },
                "involvedObject": about,
                "reason": reason,
                "message": text[:_LONGEST],
                "type": "Warning" if name in _WARNINGS else "Normal",
                "source": {"component": "burst"},
                "firstTimestamp": at,
                "lastTimestamp": at,
                "count": 1,
            }
        )
        if name == "reaped":
            self._known.pop(burst_id, None)

    def examine(self) -> Finding:
        """Check whether events may be written; where they may not, all else works."""
        try:
            if self._cluster.may("create", EVENT, self._namespace):
                return ok(f"may write events of bursts in namespace {self._namespace}")
        except ProviderError as error:
            return note(f"cannot ask about events: {error.what}", error.advice)
        return note(
            "may not create events: kubectl does not show what became of a burst",
            "apply manifests/role anew, if people are to see it there",
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
