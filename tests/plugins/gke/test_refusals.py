# SPDX-License-Identifier: MIT
"""A burst that GKE refuses, or makes in part, as the service answers it over gRPC."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.rpc.code_pb2 import Code

from burst.errors import InsufficientCapacity, ProviderError, Refused, Transient
from burst.provider import Failure, Phase
from tests.plugins.gke import gke
from tests.plugins.gke.answers import EXTERNAL_IP, STOCKOUT, igm, quota_exceeded
from tests.plugins.gke.build import OFFER, World, orders, spec
from tests.plugins.gke.gke import Denied, Fate

CREATE = "create_cluster", "create_node_pool"


def deny(world: World, *answers: Denied) -> None:
    for method in CREATE:
        world.gke.denials[method] = list(answers)


DISABLED = "SERVICE_DISABLED", {"service": "compute.googleapis.com"}
LIMITED: tuple[str, dict[str, str]] = "RATE_LIMIT_EXCEEDED", {}


@pytest.mark.parametrize(
    ("denied", "kind", "says"),
    [
        (Denied("PERMISSION_DENIED", "", info=DISABLED), Refused, "enable compute.goo"),
        (Denied("RESOURCE_EXHAUSTED", "", 12.0, LIMITED), Transient, LIMITED[0]),
        (Denied("NOT_FOUND", "network net not found"), Refused, "network net"),
    ],
)
def test_what_a_request_is_answered(
    form: World, denied: Denied, kind: type[ProviderError], says: str
) -> None:
    deny(form, denied)
    with pytest.raises(kind, match=says) as caught:
        form.provider.provision(form.spec)
    assert caught.type is kind
    assert form.gke.things() == {}
    if isinstance(caught.value, Transient):
        assert caught.value.retry_after == 12.0
        form.provision()
    assert orders(form) == (1 if kind is Transient else 0)


def test_the_details_of_an_operation_decide(form: World) -> None:
    info: tuple[str, dict[str, str]] = ("BILLING_DISABLED", {})
    form.gke.fates = [Fate(error=(int(Code.INTERNAL), "no"), info=info, remains="")]
    with pytest.raises(Refused, match="open billing account"):
        form.provision()


@pytest.mark.parametrize(
    ("condition", "kind", "failure"),
    [
        (("UNKNOWN", igm("CONDITION_NOT_MET", EXTERNAL_IP)), Refused, Failure.REFUSED),
        (gke.STOCKOUT, InsufficientCapacity, Failure.CAPACITY),
    ],
)
def test_a_condition_is_heeded_while_it_is_made(
    form: World,
    condition: tuple[str, str],
    kind: type[ProviderError],
    failure: Failure,
) -> None:
    form.gke.fates = [Fate(looks=100, conditions=[condition], remains="ERROR")]
    with pytest.raises(kind, match=re.escape(condition[1])) as caught:
        form.provision()
    assert caught.type is kind
    status = form.status()
    assert (status.phase, status.failure) == (Phase.FAILED, failure)


def test_a_notice_of_a_cluster_that_is_made_ends_no_burst(form: World) -> None:
    said = ("NODE_SERVICE_ACCOUNT_MISSING_PERMISSIONS", "Required 'a.b.c' permission")
    form.gke.fates = [Fate(looks=3, conditions=[said])]
    form.provision()
    assert form.status().phase is Phase.RUNNING


def test_nodes_that_came_up_before_a_stockout_are_deleted(form: World) -> None:
    stockout = ("GCE_STOCKOUT", STOCKOUT)
    form.gke.fates = [Fate(looks=2, conditions=[stockout], remains="ERROR", up=1)]
    with pytest.raises(InsufficientCapacity, match="what was made is deleted"):
        form.provision()
    assert sum(map(len, form.gke.vms.values())) == 1
    form.reap()
    assert not form.gke.vms
    assert not form.gke.things()


OFFERS: dict[str, Any] = {
    OFFER: {"machine_type": "n2-standard-8", "max_nodes": 4},
    "small": {"machine_type": "n2-standard-4", "max_nodes": 4},
    "large": {"machine_type": "n2-standard-16", "max_nodes": 4},
    "gpu": {
        "machine_type": "g2-standard-4",
        "max_nodes": 4,
        "gpus": 1,
        "accelerator": "nvidia-l4",
    },
}


@pytest.mark.parametrize(
    ("quota", "offer", "others"),
    [("CPUS_ALL_REGIONS", OFFER, ["large"]), ("GPUS_ALL_REGIONS", "gpu", [])],
)
def test_a_quota_of_the_project_sets_other_offers_aside(
    world: World, tmp_path: Path, quota: str, offer: str, others: list[str]
) -> None:
    said = quota_exceeded(quota, "8.0 globally")
    condition = ("GCE_QUOTA_EXCEEDED", said)
    world.share(offers=OFFERS)
    world.spec = msgspec.structs.replace(spec(tmp_path), offer=offer)
    for fate in (Fate(conditions=[condition], remains="ERROR"), None):
        if fate is None:
            world.reap()
            world.spec = msgspec.structs.replace(spec(tmp_path, 1), offer=offer)
            deny(world, Denied("RESOURCE_EXHAUSTED", said))
        world.gke.fates = [fate] if fate else []
        with pytest.raises(InsufficientCapacity, match=quota) as caught:
            world.provision()
        assert list(caught.value.offers) == others
        assert "another region does not help" in caught.value.advice
