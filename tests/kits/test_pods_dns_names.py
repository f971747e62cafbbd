# SPDX-License-Identifier: MIT
"""`names`: the Services and DNS settings by which followers find each other."""

import pytest

from burst.errors import SpecRefused
from burst.kits.kube.kinds import Manifest, name_of
from burst.kits.pods import PodSettings
from burst.kits.pods.names import INDEX, JOB_NAME
from burst.kits.pods.template.dns_names import headless_service, host_services
from burst.kits.pods.template.render import render
from burst.provider import BurstSpec, Program
from tests.kits.pods import SETTINGS, TAGS, pod_spec, replace


def services(spec: BurstSpec, settings: PodSettings) -> dict[str, Manifest]:
    made = render(spec, settings, TAGS, 0)
    return {name_of(item): item for item in made if item["kind"] == "Service"}


def test_an_isolated_burst_has_one_and_the_operator_makes_that(spec: BurstSpec) -> None:
    assert services(spec, SETTINGS) == {}
    assert not {"subdomain", "dnsConfig"} & set(pod_spec(spec, SETTINGS))
    alone = replace(spec, program=Program(kind="interactive"))
    named = replace(SETTINGS, names=True)
    assert set(services(alone, named)) == {spec.burst_id}
    domain = f"{spec.burst_id}.jobs.svc.cluster.local"
    assert pod_spec(alone, named)["dnsConfig"] == {"searches": [domain]}
    assert set(services(spec, replace(named, form="operator"))) == set(spec.hosts)


def test_each_host_has_the_service_of_its_pod(spec: BurstSpec) -> None:
    """Ranks that are not the first of their slot: the index is not in their name."""
    later = replace(spec, hosts=("burst-0-2", "burst-0-3"), ranks=(3, 4))
    named = replace(SETTINGS, names=True)
    found = services(later, named)
    labels = TAGS.labels(spec.burst_id)
    assert {name: item["spec"]["selector"] for name, item in found.items()} == {
        spec.burst_id: labels,
        "burst-0-2": {**labels, JOB_NAME: spec.burst_id, INDEX: "0"},
        "burst-0-3": {**labels, JOB_NAME: spec.burst_id, INDEX: "1"},
    }
    for item in found.values():
        assert item["metadata"]["labels"] == labels
        assert item["spec"]["clusterIP"] == "None"
        assert item["spec"]["publishNotReadyAddresses"] is True
    pod = pod_spec(later, named)
    assert pod["subdomain"] == spec.burst_id
    domain = f"{spec.burst_id}.jobs.svc.cluster.local"
    assert pod["dnsConfig"] == {"searches": [domain]}
    site = {"spec": {"dnsConfig": {"searches": ["example.org"]}}}
    both = pod_spec(later, replace(named, pod=site))["dnsConfig"]["searches"]
    assert both == [domain, "example.org"]


def test_a_gateways_service_keeps_its_name(spec: BurstSpec) -> None:
    labels, named = TAGS.labels(spec.burst_id), replace(SETTINGS, names=True)
    meta = {"name": spec.burst_id, "namespace": "jobs", "labels": labels}
    gateway = headless_service({**meta, "name": spec.hosts[0]}, {}, [{"port": 8050}])
    found = host_services(meta, spec, named, [gateway])
    assert [name_of(item) for item in found] == [spec.burst_id, spec.hosts[1]]
    odd = replace(spec, hosts=("Node-1",), ranks=(1,))
    with pytest.raises(SpecRefused, match="'Node-1' is not a valid name for a Service"):
        host_services(meta, odd, named)
