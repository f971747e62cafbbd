# SPDX-License-Identifier: MIT
"""What becomes of pods reaches the reader in words, and the daemon as a phase."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from burst.config import Seconds
from burst.errors import InsufficientCapacity
from burst.provider import BurstStatus, Failure, Phase
from tests.kubernetes.bursts import Bursts, attempt, wait_status, wait_until

pytestmark = pytest.mark.kubernetes


def running(status: BurstStatus) -> bool:
    return status.phase is Phase.RUNNING and not status.why


def failed(status: BurstStatus) -> bool:
    return status.phase is Phase.FAILED


def test_pods_without_a_node_are_pending_and_then_want_of_capacity(
    bursts: Bursts,
) -> None:
    nowhere = {"node.kubernetes.io/instance-type": "none"}
    bursts.provider(node_selector=nowhere).provision(bursts.spec)
    status = wait_status(bursts.provider(), lambda s: "finds no node" in s.why)
    assert status.phase is Phase.PENDING
    assert "didn't match Pod's node affinity/selector" in status.why
    impatient = bursts.provider(schedule=Seconds(0))
    status = wait_status(impatient, failed)
    assert status.failure is Failure.CAPACITY


def make_quota(bursts: Bursts, **hard: str) -> None:
    path = f"/api/v1/namespaces/{bursts.namespace}/resourcequotas"
    bursts.api.create(path, {"metadata": {"name": "small"}, "spec": {"hard": hard}})

    def counted() -> bool:
        return "used" in bursts.api.get(f"{path}/small")["status"]

    wait_until(counted, lambda: "the quota to hold")


def test_a_quota_on_pods_is_pending_and_then_want_of_capacity(bursts: Bursts) -> None:
    make_quota(bursts, pods="1")
    provider = bursts.provider()
    provider.provision(bursts.spec)
    status = wait_status(provider, lambda s: "exceeded quota" in s.why)
    assert status.phase is Phase.PENDING
    assert {f.why for f in status.followers} >= {"has no pod yet"}
    status = wait_status(bursts.provider(schedule=Seconds(0)), failed)
    assert status.failure is Failure.CAPACITY


def test_a_quota_on_what_we_make_ends_the_burst(bursts: Bursts) -> None:
    make_quota(bursts, **{"count/jobs.batch": "0"})
    error = attempt(lambda: bursts.provider().provision(bursts.spec))
    assert isinstance(error, InsufficientCapacity)
    assert "exceeded quota" in error.what


def test_one_broker_on_a_node_leaves_others_waiting(bursts: Bursts) -> None:
    """The lab has two nodes, and a burst of two takes both."""
    provider = bursts.provider(one_per_node=True)
    provider.provision(bursts.spec)
    wait_status(provider, running)
    assert len({pod["spec"]["nodeName"] for pod in bursts.objects("pods")}) == 2


def container(**fields: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "broker", "restartCount": 0, **fields}]}


@pytest.mark.parametrize(
    ("status", "phase", "words"),
    [
        pytest.param(
            {
                "phase": "Pending",
                **container(
                    state={
                        "waiting": {
                            "reason": "ImagePullBackOff",
                            "message": "no such image",
                        }
                    }
                ),
            },
            Phase.PENDING,
            "image local.test/flux:v0.88.0 cannot be pulled: ImagePullBackOff: no such",
            id="image",
        ),
        pytest.param(
            container(
                restartCount=2,
                state={"running": {}},
                lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
            ),
            Phase.RUNNING,
            "was restarted 2 times, last after exit status 137, OOMKilled",
            id="restarted",
        ),
        pytest.param(
            {"phase": "Succeeded"}, Phase.FAILED, "its broker has ended", id="ended"
        ),
    ],
)
def test_a_pods_own_word(
    bursts: Bursts, status: dict[str, Any], phase: Phase, words: str
) -> None:
    provider = bursts.provider()
    provider.provision(bursts.spec)
    wait_status(provider, running)
    bursts.patch_pod(bursts.objects("pods")[0], status)
    seen = wait_status(provider, lambda s: words in s.why)
    assert seen.phase is phase


def test_a_pod_that_was_evicted_gets_another_in_its_place(bursts: Bursts) -> None:
    provider = bursts.provider()
    provider.provision(bursts.spec)
    wait_status(provider, running)
    pod = bursts.objects("pods")[0]
    message = "The node was low on resource: memory."
    evicted = {"phase": "Failed", "reason": "Evicted", "message": message}
    bursts.patch_pod(pod, evicted)
    status = wait_status(provider, lambda s: bool(s.why))
    assert status.phase is Phase.PENDING
    assert f"was evicted by its node: {message}" in status.why


def test_kubernetes_ends_a_burst_whose_lease_is_over(bursts: Bursts) -> None:
    provider = bursts.provider()
    spec = msgspec.structs.replace(bursts.spec, lease_end=time.time() + 1)
    provider.provision(spec)
    status = wait_status(provider, failed)
    assert status.why == "its lease is over, and Kubernetes has ended it"
    wait_until(lambda: not bursts.objects("pods"), lambda: "its pods to go")
