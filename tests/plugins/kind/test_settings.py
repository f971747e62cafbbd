# SPDX-License-Identifier: MIT
"""Settings that cannot work, where followers find the lead, and examinations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from burst_kind import KindProvider

from burst.errors import Refused
from burst.model.finding import Finding, Level
from burst.model.lead import LeadIdentity
from burst.testing import example_lead
from tests.plugins.kind.harness import Desk


def texts(findings: Sequence[Finding], level: Level) -> list[str]:
    return [finding.what for finding in findings if finding.level is level]


def lead(desk: Desk, endpoint: str = "tcp://127.0.0.1:8050") -> LeadIdentity:
    return example_lead(desk.path, desk.owner, endpoint)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"create": False, "cluster": ""}, "which kind cluster is not set"),
        ({"cluster": "x" * 42}, "is no name for a kind cluster; set cluster"),
        ({"cluster": "Far"}, "is no name for a kind cluster"),
        ({"cluster": "-far"}, "is no name for a kind cluster"),
    ],
)
def test_settings_that_name_no_cluster_are_refused(
    desk: Desk, changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(Refused, match=told):
        desk.provider(**changes)


def test_a_cluster_of_ours_is_called_as_the_provider(desk: Desk) -> None:
    provider = desk.provider(cluster="")
    (finding, *_) = provider.examine(None)
    assert "the kind cluster far-" in finding.what


def test_by_default_files_are_where_all_providers_have_them(desk: Desk) -> None:
    desk.provider(dir="")


def test_a_cluster_that_is_not_there_is_refused_with_how_to_make_it(desk: Desk) -> None:
    with pytest.raises(Refused, match=r"no kind cluster dev; `kind create cluster"):
        desk.provider(create=False, cluster="dev").provision(desk.spec())


def test_what_no_cluster_could_have_is_refused_before_one_is_made(desk: Desk) -> None:
    spec = msgspec.structs.replace(desk.spec(), offer="other")
    with pytest.raises(Refused, match="no offer 'other'"):
        desk.provider().provision(spec)
    assert not (desk.world / "calls").exists()


@pytest.mark.parametrize(
    ("setting", "endpoint"),
    [
        ("", "tcp://127.0.0.1:1"),
        ("host", "tcp://172.18.0.1:1"),
        ("lead-control-plane", "tcp://172.18.0.7:1"),
    ],
)
def test_followers_are_told_where_the_lead_is_in_dockers_network(
    desk: Desk, setting: str, endpoint: str
) -> None:
    desk.make_cluster("lead")
    desk.provision(desk.provider(lead=setting), desk.spec())
    given = desk.pods[-1].given
    assert given is not None
    assert given.endpoint == endpoint


def test_a_lead_without_a_port_is_refused(desk: Desk) -> None:
    spec = desk.spec()
    spec = msgspec.structs.replace(spec, lead=lead(desk, "tcp://lead"))
    with pytest.raises(Refused, match="port is not known; set port under"):
        desk.provision(desk.provider(lead="host"), spec)


def test_before_there_is_a_cluster_what_it_needs_is_looked_at(desk: Desk) -> None:
    (desk.world / "images").mkdir()
    (desk.world / "images/flux:1").touch()
    (desk.path / "a.tar").touch()
    images = (f"{desk.path}/a.tar", "/no/such.tar", "flux:1", "flux:2")
    findings = desk.provider(images=images).examine(lead(desk))
    assert texts(findings, Level.OK)[1:] == [
        "nodes are made by kind v0.0.0 fake",
        f"{desk.path}/a.tar can be loaded",
        "flux:1 can be loaded",
    ]
    assert "is made for the first burst" in findings[0].what
    assert texts(findings, Level.WRONG) == [
        "there is no file /no/such.tar",
        "docker has no image flux:2",
        "tcp://127.0.0.1:8050 is a loopback address: in each pod, the pod itself",
    ]


def test_the_address_that_followers_get_is_told(desk: Desk) -> None:
    found = desk.provider(lead="host").examine(lead(desk))
    (told,) = (text for text in texts(found, Level.OK) if "followers" in text)
    assert told == "followers connect to the lead at tcp://172.18.0.1:8050, of host"
    found = desk.provider(lead="nobody").examine(lead(desk))
    (wrong,) = (finding for finding in found if finding.level is Level.WRONG)
    assert "No such container: nobody" in wrong.what
    assert (
        desk.provider()
        .examine(lead(desk, "tcp://localhost:1"))[-1]
        .advice.startswith('set lead = "host"')
    )
    assert texts(desk.provider().examine(lead(desk, "tcp://name:1")), Level.WRONG) == []


def test_a_kind_that_is_not_there_is_found(desk: Desk) -> None:
    findings = desk.provider(kind="/no/kind").examine(None)
    assert texts(findings, Level.WRONG) == ["there is no program '/no/kind'"]


def test_a_cluster_that_runs_is_examined_too(desk: Desk) -> None:
    provider = desk.provider()
    desk.provision(provider, desk.spec())
    findings = provider.examine(lead(desk, "tcp://name:1"))
    assert findings[0].what.endswith("runs with 1 nodes")
    assert findings[-1].what == "the cluster answers"


def test_where_there_is_a_cluster_a_pod_in_it_can_try_the_way(desk: Desk) -> None:
    provider = desk.provider(lead="host")
    (found,) = provider.probe(lead(desk), print)
    assert found.level is Level.NOTE
    assert "no pod can try it" in found.what
    assert "does not exist yet" in found.what
    desk.provision(provider, desk.spec())
    (found,) = provider.probe(lead(desk), print)
    assert found.what == "a pod there reaches tcp://172.18.0.1:8050"


def _examined(desk: Desk, provider: KindProvider) -> Finding:
    return provider.examine(None)[0]


def test_a_cluster_that_does_not_run_is_wrong(desk: Desk) -> None:
    desk.make_cluster("dev")
    dev = desk.provider(create=False, cluster="dev")
    (desk.containers()["dev-control-plane"] / "state").write_text("exited")
    finding = _examined(desk, dev)
    assert (finding.level, finding.advice) == (
        Level.WRONG,
        "`docker start` its nodes, or delete it and create it again",
    )
    gone = desk.provider(create=False, cluster="gone")
    assert "no kind cluster gone" in _examined(desk, gone).what


def test_a_cluster_in_the_making_is_noted(desk: Desk) -> None:
    desk.make_cluster("dev")
    dev = desk.provider(create=False, cluster="dev", images=("flux:1",))
    assert _examined(desk, dev).level is Level.NOTE
