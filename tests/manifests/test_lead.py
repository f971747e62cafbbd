# SPDX-License-Identifier: MIT
"""The lead is kept from what would end it, and reaches no more than it needs."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from burst.kits.pods.template.job import ENDLESS
from burst.kits.pods.template.pod import LEFT_ALONE
from tests.manifests.network import METADATA, Peer, Policies
from tests.manifests.reading import MANIFESTS, documents

LEAD = {"job-name": "lead", "batch.kubernetes.io/job-completion-index": "0"}
DNS = Peer("kube-system", {"k8s-app": "kube-dns"})


def job() -> dict[str, Any]:
    (found,) = documents("parts/lead-job/lead.yaml")
    return found


def minicluster() -> dict[str, Any]:
    (found,) = documents("parts/lead-minicluster/lead.yaml")
    return found


def containers() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every container of manifests/, with where it is."""
    for path in sorted(MANIFESTS.rglob("*.yaml")):
        for thing in yaml.safe_load_all(path.read_text()):
            spec = thing.get("spec") if isinstance(thing, dict) else None
            if not isinstance(spec, dict) or thing["kind"] == "Component":
                continue
            spec = spec.get("jobTemplate", {}).get("spec", spec)
            pod = spec.get("template", {}).get("spec", spec)
            flux = pod.get("flux", {}).get("container")
            listed = [*pod.get("initContainers", ()), *pod.get("containers", ())]
            # A patch of a container has no image.
            for each in [*listed, *([flux] if flux else [])]:
                if "image" in each:
                    yield f"{path.name} {each.get('name', '')}", each


def test_autoscalers_leave_the_lead_alone_as_they_do_followers() -> None:
    noted = job()["spec"]["template"]["metadata"]["annotations"]
    assert noted == LEFT_ALONE
    assert minicluster()["spec"]["pod"]["annotations"] == LEFT_ALONE


def test_restarts_do_not_end_the_job_of_a_lead_or_a_member() -> None:
    """A Job counts those of all containers; the operator's default is 100."""
    (member,) = documents("ensemble-agent/member/minicluster.yaml")
    for made in (job(), minicluster(), member):
        assert made["spec"]["backoffLimit"] == ENDLESS, made["kind"]


def test_the_budget_selects_the_pod_of_either_lead() -> None:
    """The label is the Job controller's; the operator makes a Job of the same name."""
    (budget,) = documents("base/disruption.yaml")
    assert budget["spec"]["selector"]["matchLabels"].items() <= LEAD.items()
    assert {job()["metadata"]["name"], minicluster()["metadata"]["name"]} == {"lead"}
    assert budget["spec"]["minAvailable"] == 1


@pytest.mark.parametrize(("where", "container"), list(containers()))
def test_each_container_says_what_it_needs_and_has_a_limit(
    where: str, container: dict[str, Any]
) -> None:
    resources = container["resources"]
    assert resources["requests"].keys() == {"cpu", "memory"}, where
    assert "memory" in resources["limits"], where


def test_nothing_is_written_but_to_volumes_and_those_in_memory_have_a_size() -> None:
    pod = job()["spec"]["template"]["spec"]
    made = [volume["emptyDir"] for volume in pod["volumes"] if "emptyDir" in volume]
    in_memory = [each for each in made if each.get("medium") == "Memory"]
    assert in_memory
    assert all("sizeLimit" in each for each in in_memory)
    for container in [*pod["initContainers"], *pod["containers"]]:
        assert container["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.fixture
def network() -> Policies:
    return Policies(documents("base/networkpolicy.yaml"), "burst")


def test_the_lead_reaches_api_servers_itself_and_dns(network: Policies) -> None:
    for peer, port, protocol in (
        (Peer(address="10.96.0.1"), 443, "TCP"),
        (Peer(address="203.0.113.9"), 6443, "TCP"),
        (Peer(address="203.0.113.7"), 30093, "TCP"),
        (Peer(address="203.0.113.7"), 8050, "TCP"),
        (DNS, 53, "UDP"),
    ):
        assert network.may("Egress", LEAD, peer, port, protocol), peer


def test_it_reaches_nothing_else(network: Policies) -> None:
    for peer, port in (
        (Peer("another", {"app": "database"}), 5432),
        (Peer(address="203.0.113.7"), 22),
        (Peer(address="203.0.113.7"), 25),
    ):
        assert not network.may("Egress", LEAD, peer, port), peer
    for address, port in METADATA:
        assert not network.may("Egress", LEAD, Peer(address=address), port), address
    # Nor does another pod of its namespace.
    other = {"app": "other"}
    assert not network.may("Egress", other, Peer(address="10.96.0.1"), 443)
    assert not network.may("Ingress", other, Peer("burst", LEAD), 80)


def test_the_ports_that_it_may_reach_are_those_of_its_service(
    network: Policies,
) -> None:
    (service,) = documents("base/service.yaml")
    (port,) = service["spec"]["ports"]
    for number in (port["nodePort"], port["port"]):
        assert network.may("Egress", LEAD, Peer(address="203.0.113.7"), number)
