# SPDX-License-Identifier: MIT
"""The namespace that is burst into: what its pods may reach, be, and use."""

import pytest
from burst_kube.provider import KubeSettings

from burst.config import convert, load
from burst.kits.pods.names import OWNER
from tests.manifests.network import METADATA, Peer, Policies
from tests.manifests.reading import MANIFESTS, documents

FAR = "burst-far"
FOLLOWER = {OWNER: "burst-lead-1", "job-name": "burst-0-abc"}
GC = {"app.kubernetes.io/name": "burst", "app.kubernetes.io/component": "gc"}
OTHER = {"app": "other"}
DNS = Peer("kube-system", {"k8s-app": "kube-dns"})
LEAD_POD = Peer("burst", {"job-name": "lead"})
LEAD_NODE = Peer(address="203.0.113.7")


@pytest.fixture
def network() -> Policies:
    found = documents("far/networkpolicy.yaml", "gc/networkpolicy.yaml")
    return Policies(found, FAR)


@pytest.mark.parametrize("labels", [FOLLOWER, GC, OTHER])
@pytest.mark.parametrize(("address", "port"), METADATA)
def test_the_metadata_server_is_closed(
    network: Policies, labels: dict[str, str], address: str, port: int
) -> None:
    assert not network.may("Egress", labels, Peer(address=address), port)


def test_followers_reach_lead_dns_and_each_other(network: Policies) -> None:
    for peer, port, protocol in (
        (LEAD_NODE, 30093, "TCP"),
        (LEAD_NODE, 8050, "TCP"),
        (LEAD_POD, 8050, "TCP"),
        (DNS, 53, "UDP"),
        (DNS, 53, "TCP"),
        (Peer(address="169.254.20.10"), 53, "UDP"),
        (Peer(FAR, FOLLOWER), 41234, "TCP"),
    ):
        assert network.may("Egress", FOLLOWER, peer, port, protocol), peer
    assert network.may("Ingress", FOLLOWER, Peer(FAR, FOLLOWER), 41234)


def test_followers_reach_nothing_else(network: Policies) -> None:
    for peer, port, protocol in (
        (LEAD_NODE, 22, "TCP"),
        (LEAD_NODE, 443, "TCP"),
        (LEAD_NODE, 30093, "UDP"),
        (LEAD_POD, 5432, "TCP"),
        (Peer("burst", OTHER), 8050, "TCP"),
        (Peer("kube-system", OTHER), 53, "UDP"),
        (Peer("another", FOLLOWER), 8050, "TCP"),
        (Peer(FAR, GC), 8050, "TCP"),
        (Peer(address="169.254.20.10"), 80, "TCP"),
        (Peer(address="8.8.8.8"), 53, "UDP"),
    ):
        assert not network.may("Egress", FOLLOWER, peer, port, protocol), peer


@pytest.mark.parametrize(
    "peer", [LEAD_POD, LEAD_NODE, Peer("another", FOLLOWER), Peer(FAR, OTHER)]
)
def test_nobody_but_followers_reaches_a_follower(network: Policies, peer: Peer) -> None:
    assert not network.may("Ingress", FOLLOWER, peer, 8050)


def test_what_has_no_label_of_ours_reaches_nothing(network: Policies) -> None:
    for peer, port in ((LEAD_NODE, 30093), (LEAD_POD, 8050), (DNS, 53)):
        assert not network.may("Egress", OTHER, peer, port)
    assert not network.may("Ingress", OTHER, Peer(FAR, FOLLOWER), 80)


def test_the_cronjob_reaches_an_api_server_and_dns(network: Policies) -> None:
    (cronjob,) = documents("gc/cronjob.yaml")
    template = cronjob["spec"]["jobTemplate"]["spec"]["template"]
    labels = template["metadata"]["labels"]
    assert labels == GC
    for port in (443, 6443):
        assert network.may("Egress", labels, Peer(address="10.96.0.1"), port)
    assert network.may("Egress", labels, DNS, 53, "UDP")
    assert not network.may("Egress", labels, LEAD_NODE, 30093)
    assert not network.may("Ingress", labels, Peer(FAR, FOLLOWER), 443)


def test_the_ports_are_those_of_the_leads_service(network: Policies) -> None:
    (service,) = documents("base/service.yaml")
    (port,) = service["spec"]["ports"]
    assert network.may("Egress", FOLLOWER, LEAD_NODE, port["nodePort"])
    assert network.may("Egress", FOLLOWER, LEAD_NODE, port["port"])
    selector = service["spec"]["selector"]
    pod = Peer("burst", {**selector, "app.kubernetes.io/name": "burst"})
    assert network.may("Egress", FOLLOWER, pod, port["targetPort"])


def test_the_restricted_standard_is_enforced_and_warned_of() -> None:
    (namespace,) = documents("far/namespace.yaml")
    prefix = "pod-security.kubernetes.io"
    labels = namespace["metadata"]["labels"]
    for mode in ("enforce", "warn", "audit"):
        assert labels[f"{prefix}/{mode}"] == "restricted"


def test_the_quota_has_room_for_the_slots_of_burst_toml_and_bounds_the_rest() -> None:
    (quota,) = documents("parts/quota/quota.yaml")
    hard = quota["spec"]["hard"]
    table = load(MANIFESTS / "base/lead/burst.toml").providers["kube"]
    settings = convert(KubeSettings, table.options, "providers.kube")
    (offer,) = settings.offers.values()
    nodes = 2 * offer.max_nodes
    cores = nodes * offer.cores
    assert int(hard["pods"]) == nodes + 2
    assert int(hard["requests.cpu"]) == cores + 1
    assert hard["requests.memory"] == f"{cores // 2 + 1}Gi"
    assert hard["limits.memory"] == f"{cores * 8 + 1}Gi"
    assert int(hard["secrets"]) > int(hard["count/jobs.batch"])
    assert {hard[f"services.{kind}"] for kind in ("nodeports", "loadbalancers")} == {
        "0"
    }
