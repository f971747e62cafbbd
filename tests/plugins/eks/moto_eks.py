# SPDX-License-Identifier: MIT
"""EKS, STS and Auto Scaling by moto's server over the wire, and how they misbehave.

Moto has a node group the moment it is asked for, and none the moment it is deleted.
Here it takes as many looks as `looks` says.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from unittest import mock
from wsgiref.types import StartResponse, WSGIEnvironment

import boto3
import moto.eks.utils
from burst_eks.cloud import EksCloud
from burst_eks.provider import EksDependencies, EksProvider
from burst_eks.settings import EksSettings
from moto.autoscaling.models import autoscaling_backends
from moto.eks.models import eks_backends

from burst.config import convert
from burst.kits.kube import Cluster, Endpoint
from burst.kits.pods import Tags
from burst.model.burst import BurstId
from burst.testing import FakeCloud, FakeSettings
from tests.plugins.kind.harness import Pods
from tests.support.moto_server import MotoServer
from tests.support.set_clock import SetClock

ACCOUNT, REGION, CLUSTER = "123456789012", "eu-central-1", "bursts"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/nodes"
SUBNETS = ["subnet-0a", "subnet-0b"]
AUTHORITY = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"
NOW = 1_800_000_000.0
STOCKOUT = {
    "code": "AsgInstanceLaunchFailures",
    "message": "Could not launch On-Demand Instances. InsufficientInstanceCapacity - We"
    " currently do not have sufficient c7i.4xlarge capacity in the Availability Zone"
    " you requested (eu-central-1a). Launching EC2 instance failed.",
    "resourceIds": ["eks-burst-0"],
}
_GROUPS = re.compile(r"/clusters/[^/]+/node-groups(?:/([^/]+))?\Z")


class EksServer(MotoServer):
    """One server and one session of the client for all tests of a worker."""

    def __init__(self) -> None:
        super().__init__()
        self.session = LocalSession(self.url)
        # Moto makes one for each node group, which takes it half a second.
        self._cached = mock.patch.object(
            moto.eks.utils, "Session", return_value=self.session
        )
        self._cached.start()

    def close(self) -> None:
        super().close()
        self.session.close()
        self._cached.stop()


class LocalSession(boto3.Session):  # type: ignore[misc]
    """A session whose clients are made once, and speak to an address."""

    def __init__(self, url: str) -> None:
        super().__init__("AKIDEXAMPLE", "swordfish", region_name=REGION)
        self._url = url
        self._made: dict[str, Any] = {}

    def client(self, service_name: str, *_: Any, **kind: Any) -> Any:
        if service_name not in self._made:
            self._made[service_name] = super().client(
                service_name, endpoint_url=self._url, **kind
            )
        return self._made[service_name]

    def close(self) -> None:
        for client in self._made.values():
            client.close()


class MotoEks:
    """One account with one cluster, and the pods in it."""

    def __init__(self, server: EksServer) -> None:
        self._app, self.session = server.app, server.session
        server.answer = self._answer
        for backends in (eks_backends, autoscaling_backends):
            backends[ACCOUNT][REGION].reset()
        self.backend = eks_backends[ACCOUNT][REGION]
        self.backend.create_cluster(
            CLUSTER, ROLE, {"subnetIds": SUBNETS, "securityGroupIds": []}
        )
        # Moto's own is no PEM.
        authority = base64.b64encode(AUTHORITY.encode()).decode()
        self.backend.clusters[CLUSTER].certificate_authority = {"data": authority}
        self.clock = SetClock(NOW)
        self.pods = FakeCloud()
        self.made: list[Pods] = []
        self.settings_of_pods: list[EksSettings] = []
        self.tokens: list[str] = []
        self.calls: list[tuple[str, str]] = []
        """Method and path of each request."""
        self.looks = 1
        """How often a group is looked at until it is made, or deleted."""
        self.stalled = False
        self.issues: list[dict[str, Any]] = []
        """What node groups that are being made say of themselves."""
        self.errors: dict[str, tuple[int, str]] = {}
        """Status and code with which a method (`POST`) of node groups is declined."""
        self.down = False
        self.cut = False
        """The answer to the next request for a node group is lost."""
        self.when_made: Callable[[], object] | None = None
        """Called once the next node group is made, before that is answered."""
        self._left: dict[str, int] = {}

    @property
    def groups(self) -> dict[str, Any]:
        """Return moto's node groups by name."""
        found: dict[str, Any] = self.backend.clusters[CLUSTER].nodegroups
        return found

    def _answer(self, given: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        method, path = given["REQUEST_METHOD"], given["PATH_INFO"]
        self.calls.append((method, path))
        if self.down:
            return decline(start, 503, "ServiceUnavailableException")
        of_groups = _GROUPS.search(path)
        if of_groups and method in self.errors:
            return decline(start, *self.errors[method])
        name = of_groups[1] if of_groups else None
        if name:
            self._pass_time(name)
        if name and method == "DELETE" and name in self.groups:
            self.groups[name].status = "DELETING"
            self._left[name] = self.looks
            # Moto's own answer, while the group is there.
            given["REQUEST_METHOD"] = "GET"
        said: list[tuple[str, list[tuple[str, str]]]] = []
        known = set(self.groups)
        body = b"".join(self._app(given, lambda *told: said.append(told[:2])))
        for new in self.groups.keys() - known:
            self.groups[new].status = "CREATING"
            self._left[new] = self.looks
            if call := self.when_made:
                self.when_made = None
                call()
            if self.cut:
                self.cut = False
                return decline(start, 503, "ServiceUnavailableException")
        start(*said[0])
        return [body]

    def _pass_time(self, name: str) -> None:
        group = self.groups.get(name)
        if group is None or self.stalled:
            return
        if group.status == "CREATING":
            group.health = {"issues": self.issues}
        left = self._left[name] = self._left.get(name, 0) - 1
        if left < 0 and group.status == "DELETING":
            self.backend.delete_nodegroup(CLUSTER, name)
        elif left < 0 and group.status == "CREATING":
            group.status = "CREATE_FAILED" if self.issues else "ACTIVE"

    def reach(self, cluster: Cluster, settings: EksSettings, tags: Tags) -> Any:
        """Return the `Pods` in the cluster."""
        access = cluster.access
        assert isinstance(access, Endpoint)
        self.tokens.append(access.token())
        self.settings_of_pods.append(settings)
        kind = FakeSettings(modes=("joined", "isolated"))
        pods = Pods(tags.provider, kind, tags.owner, self.pods)
        pods.cluster = cluster
        self.made.append(pods)
        return pods

    def settings(self, **changes: Any) -> EksSettings:
        """Return settings that work."""
        nodes = {"instance_types": ["c7i.4xlarge"], "cores": 8, "max_nodes": 4}
        table = {
            "region": REGION,
            "cluster": CLUSTER,
            "node_role": ROLE,
            "subnets": SUBNETS,
            "image": "registry.test/flux:0.88",
            "offers": {"nodes": nodes},
            **changes,
        }
        return convert(EksSettings, table, "providers.eks")

    def cloud(self, **changes: Any) -> EksCloud:
        """Return what a provider with such settings asks."""
        return EksCloud(
            self.settings(**changes),
            make_session=lambda **_: self.session,
            clock=self.clock,
        )

    def provider(
        self, owner: str = "owner-a", name: str = "eks", **changes: Any
    ) -> EksProvider:
        """Return a new provider object."""
        given = EksDependencies(self.cloud(**changes), self.reach, self.clock)
        return EksProvider(name, self.settings(**changes), owner, given)

    def nodes(self, burst_id: BurstId) -> int:
        """Return for how many nodes of a burst somebody pays."""
        return sum(
            group.scaling_config["desiredSize"]
            for group in self.groups.values()
            if group.tags["burst.flux-framework.org/id"] == burst_id
        )

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        self.down, self.pods.reachable = True, False
        try:
            yield
        finally:
            self.down, self.pods.reachable = False, True


def decline(start: StartResponse, status: int, code: str) -> list[bytes]:
    """Answer as EKS does where it declines."""
    start(
        f"{status} Declined",
        [("Content-Type", "application/json"), ("x-amzn-ErrorType", code)],
    )
    return [json.dumps({"message": "said so"}).encode()]
