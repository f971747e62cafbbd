# SPDX-License-Identifier: MIT
"""A namespace of a real API server as the backend of a provider of pods."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from burst_kube.provider import KubeProvider, KubeSettings

from burst.config import Seconds
from burst.kits.kube.kinds import MINICLUSTER, annotations_of, name_of
from burst.kits.pods.names import HOSTS, ID, INDEX, parse_hosts
from burst.provider import BurstSpec, Provider
from burst.testing import Backend
from burst.testing.backend import Moment
from tests.kubernetes.api import Api
from tests.kubernetes.proxy import Fault, Proxy
from tests.support.pod_words import pod_words
from tests.support.waiting import HANG_S

METHODS = ("GET", "POST", "PATCH", "DELETE")
CONFIG_MAPS = ("/api/v1/{}/configmaps",)
PUBLIC = ("/apis/batch/v1/{}/jobs", "/api/v1/{}/pods", *CONFIG_MAPS)
ALL = (*PUBLIC, "/api/v1/{}/secrets", "/api/v1/{}/services")
MINICLUSTERS = f"/apis/{MINICLUSTER.api}/{{}}/{MINICLUSTER.plural}"


class KubeBackend(Backend):
    """What a test does to the way to the API server, and sees in the namespace."""

    def __init__(
        self, api: Api, settings: KubeSettings, way: Proxy, crash: Proxy
    ) -> None:
        self.api = api
        self.settings = settings
        self.way = way
        """Through which all providers go that are not to crash."""
        self.crash = crash

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        self.way.faults += [Fault(method, "", drop=True) for method in METHODS]
        self.way.cut_watches()
        yield
        self.way.faults.clear()

    @contextlib.contextmanager
    def stalled(self) -> Iterator[None]:
        namespace = self.settings.namespace
        self.api.make_quota(namespace, "none", {"pods": "0"})
        try:
            yield
        finally:
            self.api.delete(f"/api/v1/namespaces/{namespace}/resourcequotas/none")

    def full(self, owner: str) -> Provider:
        return self.provider(
            owner,
            "here",
            self.way,
            pod=pod_words(nodeSelector={"example.com/no-such": "node"}),
            schedule=Seconds(1),
        )

    def crashing(self, owner: str, when: Moment) -> Provider:
        # Once, as the same provider reaps at the end. The last request starts a Job, or
        # makes what a MiniCluster owns.
        last = ("PATCH", "/jobs/") if self.settings.form == "job" else ("POST", "/sec")
        self.crash.faults += (
            [Fault("POST", "", drop=True, times=1)]
            if when == "before"
            else [Fault(*last, after=True, times=1)]
        )
        return self.provider(owner, "here", self.crash)

    def end(self, spec: BurstSpec, host: str) -> None:
        """Write the status of a pod whose broker has ended, as its kubelet would."""
        pods = self._objects(spec, ("/api/v1/{}/pods",))
        (pod,) = (each for each in pods if _host_of(each) == host)
        ended = {"terminated": {"exitCode": 0, "reason": "Completed"}}
        broker = {"name": "broker", "restartCount": 0, "state": ended}
        status = {"phase": "Succeeded", "containerStatuses": [broker]}
        namespace, name = self.settings.namespace, name_of(pod)
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
        self.api.patch(path, {"status": status}, "strategic-merge-patch")

    def named(self, owner: str, name: str) -> Provider:
        return self.provider(owner, name, self.way)

    def public(self, spec: BurstSpec) -> str:
        return json.dumps(self._objects(spec, PUBLIC))

    def given(self, spec: BurstSpec) -> str:
        return json.dumps(self._objects(spec, CONFIG_MAPS))

    def left(self, spec: BurstSpec) -> Sequence[str]:
        return [found["metadata"]["name"] for found in self._objects(spec, ALL)]

    def provider(self, owner: str, name: str, proxy: Proxy, **changes: Any) -> Provider:
        """Return a provider that reaches the API server through a proxy."""
        changes["kubeconfig"] = str(proxy.kubeconfig)
        settings = msgspec.structs.replace(self.settings, **changes)
        return KubeProvider(name, settings, owner, timeout=HANG_S)

    def _objects(self, spec: BurstSpec, kinds: Sequence[str]) -> list[Any]:
        """Return those that bear the burst's id, and what the operator made for it."""
        where = f"namespaces/{self.settings.namespace}"
        if self.settings.form == "operator" and kinds != CONFIG_MAPS:
            kinds = (*kinds, MINICLUSTERS)
        return [
            found
            for kind in kinds
            for found in self.api.items(kind.format(where))
            if spec.burst_id in (_burst_of(found), *_owners_of(found))
        ]


def _host_of(found: Any) -> str:
    """Return the host of a pod; empty for what is none, such as a MiniCluster."""
    index = (found["metadata"].get("labels") or {}).get(INDEX)
    return (
        ""
        if index is None
        else str(parse_hosts(annotations_of(found)[HOSTS])[int(index)])
    )


def _burst_of(found: Any) -> str:
    return str((found["metadata"].get("labels") or {}).get(ID, ""))


def _owners_of(found: Any) -> list[str]:
    return [owner["name"] for owner in found["metadata"].get("ownerReferences") or []]


@contextlib.contextmanager
def another_proxy(api: Api, directory: Path) -> Iterator[Proxy]:
    """Give a second way to the API server."""
    directory.mkdir()
    with Proxy(api, directory) as proxy:
        yield proxy
