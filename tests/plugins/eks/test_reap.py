# SPDX-License-Identifier: MIT
"""How a burst in EKS ends: by its reaping, by its lease, by `burst gc`."""

from __future__ import annotations

import datetime

import pytest
from moto.autoscaling.models import autoscaling_backends

from burst.errors import Transient
from burst.provider import Phase
from tests.plugins.eks.account import Account, provision, status
from tests.plugins.eks.moto_eks import ACCOUNT, NOW, REGION


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
