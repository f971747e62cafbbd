# SPDX-License-Identifier: MIT
"""A namespace of a real API server as the backend of a provider of pods."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from burst_kube import KubeProvider, KubeSettings

from burst.provider import BurstSpec, Provider
from burst.testing import Backend
from burst.testing.backend import Moment
from tests.kubernetes.api import Api
from tests.kubernetes.proxy import Fault, Proxy

METHODS = ("GET", "POST", "PATCH", "DELETE")
PUBLIC = ("/apis/batch/v1/{}/jobs", "/api/v1/{}/pods", "/api/v1/{}/configmaps")
ALL = (*PUBLIC, "/api/v1/{}/secrets", "/api/v1/{}/services")


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
        yield
        self.way.faults.clear()

    def crashing(self, owner: str, when: Moment) -> Provider:
        self.crash.faults += (
            [Fault("PATCH", "", drop=True)]
            if when == "before"
            else [Fault("PATCH", "/(jobs|miniclusters)/", drop=True, after=True)]
        )
        return self.provider(owner, "here", self.crash)

    def named(self, owner: str, name: str) -> Provider:
        return self.provider(owner, name, self.way)

    def public(self, spec: BurstSpec) -> str:
        return json.dumps(self._objects(spec, PUBLIC))

    def given(self, spec: BurstSpec) -> str:
        return json.dumps(self._objects(spec, ("/api/v1/{}/configmaps",)))

    def left(self, spec: BurstSpec) -> Sequence[str]:
        return [found["metadata"]["name"] for found in self._objects(spec, ALL)]

    def provider(self, owner: str, name: str, proxy: Proxy) -> Provider:
        """Return a provider that reaches the API server through a proxy."""
        kubeconfig = str(proxy.kubeconfig)
        settings = msgspec.structs.replace(self.settings, kubeconfig=kubeconfig)
        return KubeProvider(name, settings, owner)

    def _objects(self, spec: BurstSpec, kinds: Sequence[str]) -> list[Any]:
        selector = f"?labelSelector=burst.flux-framework.org/id={spec.burst_id}"
        where = f"namespaces/{self.settings.namespace}"
        return [
            found
            for kind in kinds
            for found in self.api.items(kind.format(where) + selector)
        ]


@contextlib.contextmanager
def another_proxy(api: Api, directory: Path) -> Iterator[Proxy]:
    """Give a second way to the API server."""
    directory.mkdir()
    with Proxy(api, directory) as proxy:
        yield proxy
