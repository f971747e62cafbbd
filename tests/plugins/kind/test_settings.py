# SPDX-License-Identifier: MIT
"""Settings that cannot work, where followers find the lead, and examinations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from burst_kind.provider import KindProvider

from burst.errors import Refused
from burst.model.finding import Finding, Level
from burst.model.lead import LeadIdentity
from burst.testing import example_lead
from tests.plugins.kind.harness import KindHarness


def texts(findings: Sequence[Finding], level: Level) -> list[str]:
    return [finding.what for finding in findings if finding.level is level]


def lead(kind: KindHarness, endpoint: str = "tcp://127.0.0.1:8050") -> LeadIdentity:
    return example_lead(kind.path, kind.owner, endpoint)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"create": False, "cluster": ""}, "which kind cluster is not set"),
        ({"cluster": "x" * 42}, "is not a valid name for a kind cluster; set cluster"),
        ({"cluster": "Far"}, "is not a valid name for a kind cluster"),
        ({"cluster": "-far"}, "is not a valid name for a kind cluster"),
    ],
)
def test_settings_that_name_no_cluster_are_refused(
    kind: KindHarness, changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(Refused, match=told):
        kind.provider(**changes)


def test_no_key_is_advised_that_it_does_not_have(kind: KindHarness) -> None:
    link = kind.path / "link"
    link.symlink_to(kind.path)
    provider = KindProvider("far", kind.settings, kind.owner, base=link)
    with pytest.raises(Refused, match="is a symbolic link") as raised:
        provider.observe()
    assert raised.value.advice == "remove it"


def test_a_cluster_of_ours_is_called_as_the_provider(kind: KindHarness) -> None:
    provider = kind.provider(cluster="")
    (finding, *_) = provider.examine(None)
    assert "the kind cluster far-" in finding.what


def test_a_cluster_not_there_is_refused_with_how_to_make_it(kind: KindHarness) -> None:
    with pytest.raises(Refused, match=r"no kind cluster dev; `kind create cluster"):
        kind.provider(create=False, cluster="dev").provision(kind.spec())


def test_what_no_cluster_has_is_refused_before_one_is_made(kind: KindHarness) -> None:
    spec = msgspec.structs.replace(kind.spec(), offer="other")
    with pytest.raises(Refused, match="no offer 'other'"):
        kind.provider().provision(spec)
    assert not (kind.world / "calls").exists()


@pytest.mark.parametrize(
    ("setting", "endpoint"),
    [
        ("", "tcp://127.0.0.1:1"),
        ("host", "tcp://172.18.0.1:1"),
        ("lead-control-plane", "tcp://172.18.0.7:1"),
    ],
)
def test_followers_are_told_where_the_lead_is_in_dockers_network(
    kind: KindHarness, setting: str, endpoint: str
) -> None:
    kind.make_cluster("lead")
    kind.provision(kind.provider(lead=setting), kind.spec())
    given = kind.pods[-1].given
    assert given is not None
    assert given.endpoint == endpoint


def test_a_lead_without_a_port_is_refused(kind: KindHarness) -> None:
    spec = kind.spec()
    spec = msgspec.structs.replace(spec, lead=lead(kind, "tcp://lead"))
    with pytest.raises(Refused, match="port is not known; set port under"):
        kind.provision(kind.provider(lead="host"), spec)


def test_before_there_is_a_cluster_its_needs_are_looked_at(kind: KindHarness) -> None:
    (kind.world / "images").mkdir()
    (kind.world / "images/flux:1").touch()
    (kind.path / "a.tar").touch()
    images = (f"{kind.path}/a.tar", "/no/such.tar", "flux:1", "flux:2")
    config = "/no/such.yaml"
    findings = kind.provider(images=images, config=config).examine(lead(kind))
    assert texts(findings, Level.OK)[1:] == [
        "nodes are made by kind v0.0.0 fake",
        f"{kind.path}/a.tar can be loaded",
        "flux:1 can be loaded",
    ]
    assert "is made for the first burst" in findings[0].what
    assert texts(findings, Level.WRONG) == [
        "there is no file /no/such.yaml",
        "there is no file /no/such.tar",
        "docker has no image flux:2",
        "tcp://127.0.0.1:8050 is a loopback address, which in each pod is the pod"
        " itself",
    ]


def test_docker_that_does_not_answer_is_not_told_as_an_image_that_lacks(
    kind: KindHarness,
) -> None:
    kind.set("inspect-error", "Cannot connect to the Docker daemon at unix:///x.sock.")
    found = kind.provider(images=("flux:1",)).examine(lead(kind))
    (told,) = (f for f in found if "docker image" in f.what or "flux:1" in f.what)
    assert "Cannot connect to the Docker daemon" in told.what
    assert "start docker" in told.advice


def test_the_address_that_followers_get_is_told(kind: KindHarness) -> None:
    found = kind.provider(lead="host").examine(lead(kind))
    (told,) = (text for text in texts(found, Level.OK) if "followers" in text)
    assert told == "followers connect to the lead at tcp://172.18.0.1:8050, of host"
    found = kind.provider(lead="nobody").examine(lead(kind))
    (wrong,) = (finding for finding in found if finding.level is Level.WRONG)
    assert "No such container: nobody" in wrong.what
    assert (
        kind.provider()
        .examine(lead(kind, "tcp://localhost:1"))[-1]
        .advice.startswith('set lead = "host"')
    )
    assert texts(kind.provider().examine(lead(kind, "tcp://name:1")), Level.WRONG) == []


def test_a_kind_that_is_not_there_is_found(kind: KindHarness) -> None:
    (kind.path / "bin/kind").unlink()
    kind.environment = {"PATH": str(kind.path / "bin")}
    findings = kind.provider().examine(None)
    assert texts(findings, Level.WRONG) == ["there is no program 'kind'"]


def test_a_cluster_that_runs_is_examined_too(kind: KindHarness) -> None:
    provider = kind.provider()
    kind.provision(provider, kind.spec())
    findings = provider.examine(lead(kind, "tcp://name:1"))
    assert findings[0].what.endswith("runs with 1 nodes")
    assert findings[-1].what == "the cluster answers"


def test_where_there_is_a_cluster_a_pod_can_try_the_way(kind: KindHarness) -> None:
    provider = kind.provider(lead="host")
    (found,) = provider.probe(lead(kind), print)
    assert found.level is Level.NOTE
    assert "no pod can try it" in found.what
    assert "does not exist yet" in found.what
    assert provider.probe(lead(kind), print, "ann") == [found]
    kind.provision(provider, kind.spec())
    (found,) = provider.probe(lead(kind), print)
    assert found.what == "a pod there reaches tcp://172.18.0.1:8050"
    way, guest = provider.probe(lead(kind), print, "ann")
    assert (way, guest.what) == (found, "ann is known there")


def _examined(kind: KindHarness, provider: KindProvider) -> Finding:
    return provider.examine(None)[0]


def test_a_cluster_that_does_not_run_is_wrong(kind: KindHarness) -> None:
    kind.make_cluster("dev")
    dev = kind.provider(create=False, cluster="dev")
    (kind.containers()["dev-control-plane"] / "state").write_text("exited")
    finding = _examined(kind, dev)
    assert (finding.level, finding.advice) == (
        Level.WRONG,
        "`docker start` its nodes, or delete it and create it again",
    )
    gone = kind.provider(create=False, cluster="gone")
    assert "no kind cluster gone" in _examined(kind, gone).what


def test_a_cluster_in_the_making_is_noted(kind: KindHarness) -> None:
    kind.make_cluster("dev")
    dev = kind.provider(create=False, cluster="dev", images=("flux:1",))
    assert _examined(kind, dev).level is Level.NOTE
