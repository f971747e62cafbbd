# SPDX-License-Identifier: MIT
"""Where a lead in a pod is reached from outside, as a real API server tells it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from burst.config import LeadSettings
from burst.errors import BurstError, LeadError, Refused
from burst.kits.kube import Cluster, Kubeconfig
from burst.model.lead import LeadIdentity
from burst.runtime.lead_service import resolve_service
from burst.runtime.lead_watch import AddressWatch
from burst.testing import example_lead
from tests.kubelab import fake
from tests.kubernetes.bursts import Bursts
from tests.kubernetes.kustomize import MANIFESTS, build, of_kind
from tests.support.waiting import HANG_S, wait_until

pytestmark = pytest.mark.kubernetes
LABELS = {"job-name": "lead"}
SERVICE = "burst-lead"


class Far:
    """A namespace with what of the lead the cluster knows."""

    def __init__(self, bursts: Bursts) -> None:
        self.bursts = bursts
        self.cluster = bursts.lab
        self.namespace = bursts.namespace
        self.node = f"node-of-{bursts.namespace}"
        self._core = f"/api/v1/namespaces/{bursts.namespace}"
        self._service = f"{self._core}/services/{SERVICE}"

    def add_service(self, kind: str, *ports: dict[str, Any], **spec: Any) -> None:
        spec |= {"type": kind, "ports": list(ports) or [{"port": 8050}]}
        spec.setdefault("selector", LABELS)
        manifest = {"metadata": {"name": SERVICE}, "spec": spec}
        self.bursts.api.create(f"{self._core}/services", manifest)

    def add_lead(self, *addresses: tuple[str, str]) -> None:
        """Make the lead's pod, on a node of its own that has these addresses."""
        # No other test's pods are to be on it: it goes with this one.
        fake.create_node(self.cluster, self.node, unschedulable=True)
        told = [{"type": kind, "address": address} for kind, address in addresses]
        self._patch(f"/api/v1/nodes/{self.node}", {"addresses": told})
        container = {"name": "main", "image": "local.test/none:1"}
        spec = {"schedulerName": "none", "containers": [container]}
        meta = {"name": "lead-0-x", "labels": LABELS}
        pod = {"metadata": meta, "spec": spec}
        self.bursts.api.create(f"{self._core}/pods", pod)
        # kwok would write another address of its node, but for a pod that has its own.
        status = {"phase": "Running", "hostIP": "10.9.0.1", "podIP": "10.1.0.9"}
        self.bursts.patch_pod(pod, status)
        self.bursts.bind("lead-0-x", self.node)

    def patch_service(self, status: dict[str, Any]) -> None:
        self._patch(self._service, status)

    def remove_service(self) -> None:
        self.bursts.api.delete(self._service)

    def remove_node(self) -> None:
        self.bursts.api.delete(f"/api/v1/nodes/{self.node}")

    def spec(self) -> dict[str, Any]:
        """Return that of the Service."""
        return dict(self.bursts.api.get(self._service)["spec"])

    def learn(self, address: str, service: str = SERVICE, **user: str) -> str:
        """Return where followers are told to connect, as ADDRESS:PORT."""
        path = self.cluster.kubeconfig
        if user:
            path = self.cluster.write_kubeconfig(self.namespace, user)
        client = Cluster(Kubeconfig(str(path)), timeout=HANG_S)
        try:
            settings = LeadSettings(address=address, service=service)
            found = resolve_service(settings, client, self.namespace)
        finally:
            client.close()
        return f"{found.address}:{found.port}"

    def owner(self) -> str:
        """Return the owner tag that the Service makes."""
        client = Cluster(Kubeconfig(str(self.cluster.kubeconfig)), timeout=HANG_S)
        try:
            settings = LeadSettings(owner="service")
            return resolve_service(settings, client, self.namespace).owner
        finally:
            client.close()

    def port(self) -> int:
        """Return the NodePort that the cluster chose."""
        return int(self.spec()["ports"][-1]["nodePort"])

    def _patch(self, path: str, status: dict[str, Any]) -> None:
        kind = "strategic-merge-patch"
        self.bursts.api.patch(f"{path}/status", {"status": status}, kind)


@pytest.fixture
def far(bursts: Bursts) -> Iterator[Far]:
    far = Far(bursts)
    yield far
    far.remove_node()


def test_a_lead_behind_a_node_port_has_an_address_an_owner_and_a_port(
    far: Far, tmp_path: Path
) -> None:
    """The node's external address, and of several ports the one named broker."""
    ports = {"name": "web", "port": 80}, {"name": "broker", "port": 8050}
    far.add_service("NodePort", *ports)
    owner = far.owner()
    assert re.fullmatch("burst-lead-[0-9a-f]{12}", owner)
    far.add_lead(("InternalIP", "10.9.0.1"), ("ExternalIP", "203.0.113.7"))
    before = far.port()
    assert far.learn("node") == f"203.0.113.7:{before}"
    assert far.owner() == owner, "a pod of the lead changes nothing"
    check_role(far)

    def read(known: LeadIdentity, settings: LeadSettings) -> LeadIdentity:
        endpoint = f"tcp://{far.learn(settings.address, settings.service)}"
        return msgspec.structs.replace(known, endpoint=endpoint)

    settings = LeadSettings(address="node", service=SERVICE)
    lead = read(example_lead(tmp_path, "owner-1"), settings)
    watch = AddressWatch(lambda: None, read, pause=0.2)
    assert watch.follow(lead, settings, 0.0) is lead
    # A Service that is made anew, while the daemon runs, is noticed.
    while far.port() == before:
        far.remove_service()
        far.add_service("NodePort", *ports)
    expected = f"tcp://203.0.113.7:{far.port()}"
    wait_until(
        lambda: watch.follow(lead, settings, 0.0).endpoint == expected, lambda: expected
    )
    watch.close()
    assert far.owner() != owner


def check_role(far: Far) -> None:
    """With the Role of the manifests the internal address is learnt.

    The external one is its node's, which parts/nodes allows to read.
    """
    where = ("-n", far.namespace)
    role = MANIFESTS / "base" / "role.yaml"
    far.cluster.kubectl("apply", "-f", role, *where)
    who = ("--role=burst-lead", f"--serviceaccount={far.namespace}:default")
    far.cluster.kubectl("create", "rolebinding", "reader", *who, *where)
    token = far.cluster.kubectl("create", "token", "default", *where).strip()

    def told() -> str:
        # Roles take effect some milliseconds late.
        try:
            return far.learn("node", token=token)
        except BurstError:
            return ""

    expected = f"10.9.0.1:{far.port()}"
    far.cluster.wait_for("rights", lambda: told() == expected)
    with pytest.raises(Refused, match="may not get services another") as refused:
        far.learn("node", "another", token=token)
    assert "manifests/ has all" in refused.value.advice


def test_the_manifests_load_balancer_has_an_address_or_a_name(
    far: Far, tmp_path: Path
) -> None:
    """The part's Service is applied; a cloud's controller is played."""
    part = os.path.relpath(MANIFESTS / "parts" / "load-balancer", tmp_path.resolve())
    overlay = {"namespace": far.namespace, "components": [part]}
    built = build(far.cluster, tmp_path, "overlays/plain", **overlay)
    service = of_kind(yaml.safe_load_all(built.read_text()), "Service")
    far.cluster.kubectl("apply", "-f", "-", manifest=service)
    with pytest.raises(LeadError, match="has no load balancer address yet"):
        far.learn("service")
    for given in ({"ip": "203.0.113.9"}, {"hostname": "lead.example"}):
        far.patch_service({"loadBalancer": {"ingress": [given]}})
        (told,) = given.values()
        assert far.learn("service") == f"{told}:8050"
    # It opens no port on nodes, and is open to the ranges of the part only.
    spec = far.spec()
    assert spec["loadBalancerSourceRanges"] == ["203.0.113.0/24"]
    assert [port.get("nodePort") for port in spec["ports"]] == [None]
    assert [port["port"] for port in spec["ports"]] == [8050]
    assert spec["externalTrafficPolicy"] == "Local"


def test_a_service_that_leads_nowhere_is_told_with_what_it_lacks(far: Far) -> None:
    def is_told(words: str, address: str = "node") -> None:
        with pytest.raises(LeadError, match=words):
            far.learn(address)

    is_told(r"no Service burst-lead .*; apply manifests")
    far.add_service("ClusterIP")
    is_told("of type ClusterIP; make it of type NodePort")
    is_told("of type ClusterIP: make it LoadBalancer", "service")
    for selector, labels in (
        (LABELS, ",".join(f"{k}={v}" for k, v in LABELS.items())),
        ({}, "(it selects none)"),
    ):
        far.remove_service()
        far.add_service("NodePort", selector=selector)
        is_told(re.escape(f"has the labels {labels}"))
