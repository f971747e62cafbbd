# SPDX-License-Identifier: MIT
"""What a burst in EKS is, from its request until nothing is left."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec
import pytest
from burst_eks.groups import name_of, prefix_of
from moto.autoscaling.models import autoscaling_backends

from burst.errors import InsufficientCapacity, Refused, SpecRefused, Transient
from burst.kits.pods import Tags
from burst.model.burst import BurstId
from burst.model.finding import Level
from burst.provider import Failure, Phase
from tests.plugins.eks.account import TAGS, Account, provision, status
from tests.plugins.eks.moto_eks import (
    ACCOUNT,
    CLUSTER,
    NOW,
    REGION,
    ROLE,
    STOCKOUT,
    SUBNETS,
)

LABEL = "burst.flux-framework.org"


def test_a_node_group_is_requested_for_the_burst_alone(eks: Account) -> None:
    eks.lease(3600)
    said = provision(eks.provider(), eks.spec)
    name = eks.name
    assert f"EKS has begun to make {name}" in said[0]
    group = eks.groups[name]
    assert group.scaling_config == {"minSize": 2, "maxSize": 2, "desiredSize": 2}
    assert group.instance_types == ["c7i.4xlarge"]
    assert group.capacity_type == "ON_DEMAND"
    assert group.node_role == ROLE
    assert group.subnets == SUBNETS
    assert group.labels == TAGS.labels(eks.spec.burst_id)
    assert group.taints == [
        {"key": "burst", "value": eks.spec.burst_id, "effect": "NO_SCHEDULE"}
    ]
    tags = dict(group.tags)
    assert tags.pop(f"{LABEL}/spec")
    lease = {f"{LABEL}/lease-end": str(int(NOW + 3600))}
    assert tags == {**TAGS.labels(eks.spec.burst_id), **lease}
    # Its pods go to these nodes, and to no others.
    pods = eks.settings_of_pods[-1]
    taint = {"key": "burst", "operator": "Equal", "value": eks.spec.burst_id}
    assert pods.pod["spec"] == {
        "nodeSelector": {"eks.amazonaws.com/nodegroup": name},
        "tolerations": [taint],
    }


def test_its_nodes_cost_wherever_its_pods_are(eks: Account) -> None:
    assert status(eks.begun()).has_nodes


def test_settings_are_in_the_request(eks: Account) -> None:
    offer = {
        "instance_types": ["g6.xlarge", "g5.xlarge"],
        "cores": 2,
        "max_nodes": 4,
        "spot": True,
        "ami_type": "AL2023_x86_64_NVIDIA",
    }
    provider = eks.provider(
        offers={"nodes": offer}, subnets=["subnet-0c"], disk_gb=80, tags={"bill": "lab"}
    )
    provision(provider, eks.spec)
    group = eks.group
    assert group.capacity_type == "SPOT"
    assert group.instance_types == ["g6.xlarge", "g5.xlarge"]
    assert group.ami_type == "AL2023_x86_64_NVIDIA"
    assert (group.subnets, group.disk_size) == (["subnet-0c"], 80)
    assert group.tags["bill"] == "lab"
    assert provider.offers()[0].spot


def test_a_group_that_no_list_shows_yet_is_met_by_its_name(eks: Account) -> None:
    with pytest.raises(Transient, match="begun"):
        eks.provider().provision(eks.spec)
    eks.errors["POST"] = 409, "ResourceInUseException"
    provision(eks.provider(), eks.spec)
    assert len(eks.groups) == 1


def test_a_group_of_that_name_that_is_not_ours_is_let_be(eks: Account) -> None:
    name = eks.name
    eks.backend.create_nodegroup(CLUSTER, ROLE, name, SUBNETS)
    provider = eks.provider()
    with pytest.raises(SpecRefused, match="is not ours"):
        provider.provision(eks.spec)
    assert provider.observe() == []
    assert eks.reap(provider) == 0
    assert name in eks.groups


def test_with_other_hosts_it_is_declined(eks: Account) -> None:
    provider = eks.begun()
    hosts = eks.spec.lead.hosts[3:5]
    other = msgspec.structs.replace(eks.spec, hosts=hosts, ranks=(3, 4))
    with pytest.raises(SpecRefused, match="reap it first"):
        provider.provision(other)
    faster = {"instance_types": ["c8i.4xlarge"], "cores": 8, "max_nodes": 4}
    with pytest.raises(SpecRefused, match="other instances"):
        eks.provider(offers={"nodes": faster}).provision(eks.spec)


@pytest.mark.parametrize(
    ("issue", "error", "failure"),
    [
        (STOCKOUT, InsufficientCapacity, Failure.CAPACITY),
        ({"code": "AccessDenied", "message": "by nodes"}, Refused, Failure.REFUSED),
    ],
)
def test_a_group_that_cannot_be_made_ends_the_burst_before_eks_gives_up(
    eks: Account, issue: dict[str, Any], error: type[Exception], failure: Failure
) -> None:
    eks.issues, eks.looks = [issue], 1000
    provider = eks.provider()
    with pytest.raises(error, match=f"is CREATING; {issue['code']}") as raised:
        provision(provider, eks.spec)
    assert type(raised.value) is error
    found = status(provider)
    assert (found.phase, found.failure) == (Phase.FAILED, failure)
    assert issue["message"] in found.why
    eks.looks = 1
    assert eks.reap(provider)
    assert not eks.groups


def test_a_group_that_failed_for_unknown_reasons_is_observed(eks: Account) -> None:
    eks.issues = [{"code": "Unknown", "message": "something"}]
    provider = eks.begun()
    found = status(provider)
    assert (found.phase, found.failure) == (Phase.FAILED, Failure.OTHER)
    assert "is CREATE_FAILED; Unknown: something" in found.why
    assert not eks.pods.bursts


def test_names_are_of_owner_provider_and_burst_and_fit() -> None:
    short = name_of(TAGS, BurstId("burst-0-a1"))
    assert short.startswith(prefix_of(TAGS))
    assert short.endswith("-burst-0-a1")
    assert name_of(Tags("owner-a", "far"), BurstId("burst-0-a1")) != short
    long = {name_of(TAGS, BurstId("b" * 60 + end)) for end in "xy"}
    assert {len(name) for name in long} == {63}
    assert len(long) == 2


def test_examine_says_who_this_is_and_what_is_there(eks: Account) -> None:
    provider = eks.begun()
    said = {f.what: f.level for f in provider.examine(eks.spec.lead)}
    assert any(text.startswith("AWS knows this daemon as arn:aws:") for text in said)
    assert f"bursts in cluster {CLUSTER} now: {eks.spec.burst_id}" in said
    assert "the cluster answers" in said
    assert Level.WRONG not in said.values()


def test_a_probe_runs_in_the_cluster(eks: Account) -> None:
    (found,) = eks.provider().probe(eks.spec.lead, lambda _: None)
    assert eks.spec.lead.endpoint in found.what


def test_access_and_place_name_the_cluster(eks: Account) -> None:
    provider = eks.provider(profile="far", namespace="bursts")
    kubeconfig, pods = provider.access(BurstId("burst-0-a1"))
    assert kubeconfig == (
        f"aws eks update-kubeconfig --name={CLUSTER} --region={REGION} --profile=far"
    )
    assert "--namespace=bursts" in pods
    assert provider.place() == f"{REGION} profile far cluster bursts namespace bursts"
    assert not provider.has("resize")


def test_a_deletion_that_failed_is_repeated(eks: Account) -> None:
    provider = eks.begun()
    eks.errors["DELETE"] = 409, "ResourceInUseException"
    with pytest.raises(Transient, match="to delete node group"):
        eks.reap(provider)
    del eks.errors["DELETE"]
    eks.group.status = "DELETE_FAILED"
    assert status(provider).phase is Phase.FAILED
    assert eks.reap(provider)
    assert not eks.groups


def test_at_the_end_of_the_lease_aws_ends_the_instances(eks: Account) -> None:
    autoscaling = autoscaling_backends[ACCOUNT][REGION]
    eks.lease(3600)
    provider = eks.provider()
    with pytest.raises(Transient):
        provider.provision(eks.spec)
    eks.group.resources["autoScalingGroups"] = [{"name": "eks-burst-0"}]
    eks.stalled = True
    with pytest.raises(Transient, match="is CREATING"):
        provider.provision(eks.spec)
    (action,) = autoscaling.describe_scheduled_actions(
        "eks-burst-0", ["burst-lease-end"]
    )
    assert action.desired_capacity == action.min_size == action.max_size == 0
    end = datetime.datetime.fromisoformat(str(action.start_time))
    assert end.timestamp() == NOW + 3600


def test_after_the_end_of_a_lease_no_end_is_set(eks: Account) -> None:
    eks.lease(30)
    provider = eks.provider()
    with pytest.raises(Transient):
        provider.provision(eks.spec)
    eks.group.resources["autoScalingGroups"] = [{"name": "eks-burst-0"}]
    provision(provider, eks.spec)
    autoscaling = autoscaling_backends[ACCOUNT][REGION]
    assert not autoscaling.describe_scheduled_actions("eks-burst-0", [])
