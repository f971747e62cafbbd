# SPDX-License-Identifier: MIT
"""How a burst in EKS ends: by its reaping, by its lease, by `burst gc`."""

from __future__ import annotations

import datetime
from pathlib import Path

import msgspec
import pytest
from moto.autoscaling.models import autoscaling_backends

from burst.errors import Transient
from burst.provider import Phase
from burst.testing import example_lead, example_spec
from tests.plugins.eks.account import Account, provision, status
from tests.plugins.eks.moto_eks import ACCOUNT, CLUSTER, NOW, REGION, ROLE, SUBNETS
from tests.support.reaping import reap_until_gone


def test_nodes_are_deleted_once_no_pod_is_left(eks: Account) -> None:
    provider = eks.begun()
    eks.made[0].ends_after = 3
    provider.reap(eks.spec.burst_id)
    assert eks.group.status == "ACTIVE"
    assert eks.reap(provider)
    assert not eks.groups
    assert not eks.pods.bursts


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


def test_bursts_of_lost_leads_can_be_reaped(eks: Account, tmp_path: Path) -> None:
    for number, owner in enumerate(("owner-a", "owner-b")):
        spec = example_spec(example_lead(tmp_path, owner), number, "nodes")
        spec = msgspec.structs.replace(spec, lease_end=NOW + 60)
        with pytest.raises(Transient, match="begun"):
            eks.provider(owner).provision(spec)
    eks.backend.create_nodegroup(CLUSTER, ROLE, "burst-buffers", SUBNETS)
    listed = eks.provider("owner-c").list_all()
    assert [(b.owner, b.provider, b.lease_end) for b in listed] == [
        ("owner-a", "eks", NOW + 60),
        ("owner-b", "eks", NOW + 60),
    ]
    for burst in listed:
        reap_until_gone(eks.provider(burst.owner, burst.provider), burst.burst_id)
    assert list(eks.groups) == ["burst-buffers"]
