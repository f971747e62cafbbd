# SPDX-License-Identifier: MIT
"""What becomes of pods reaches the reader in words, and the daemon as a phase.

Here is what Kubernetes decides. What a status means that a kubelet writes is in
`tests/kits/test_pods_status.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from burst.config import Seconds
from burst.provider import BurstStatus, Failure, Phase
from tests.kubelab import fake
from tests.kubelab.cluster import Cluster
from tests.kubernetes.access import new_namespace
from tests.kubernetes.bursts import Bursts, bring_up, reap_all, wait_status
from tests.support.pod_words import pod_words
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kubernetes


def running(status: BurstStatus) -> bool:
    return status.phase is Phase.RUNNING and not status.why


CLAIM = "example.com/claimed-by"


@pytest.fixture
def claimed(bursts: Bursts, lab: Cluster) -> Iterator[Bursts]:
    """With two nodes on which no other test's pods are."""
    mine = {CLAIM: bursts.namespace}
    names = [f"{bursts.namespace}-{number}" for number in range(2)]
    taint = {"key": CLAIM, "effect": "NoSchedule"}
    for name in names:
        fake.create_node(lab, name, labels=mine, taints=[taint])
    tolerated = [{"key": CLAIM, "operator": "Exists"}]
    bursts.settings = msgspec.structs.replace(
        bursts.settings,
        one_per_node=True,
        pod=pod_words(nodeSelector=mine, tolerations=tolerated),
    )
    yield bursts
    lab.kubectl("delete", "node", *names, "--wait=false")


def test_another_namespaces_followers_take_nodes_too(
    claimed: Bursts, lab: Cluster
) -> None:
    """There are two nodes for both, and the first burst takes both: one a broker."""
    provider = claimed.provider()
    bring_up(provider, claimed.spec)
    assert len({pod["spec"]["nodeName"] for pod in claimed.objects("pods")}) == 2
    with new_namespace(lab, "elsewhere") as elsewhere:
        other = claimed.provider(namespace=elsewhere)
        other.provision(claimed.spec)
        status = wait_status(other, lambda s: "finds no node" in s.why)
        assert "didn't match pod anti-affinity rules" in status.why
        reap_all(provider, claimed.spec)
        wait_status(other, running)


def test_a_pod_that_made_way_for_others_is_reclaimed(claimed: Bursts) -> None:
    """The lab's kubelets end a pod at once: by then only its event tells."""
    provider = claimed.provider()
    bring_up(provider, claimed.spec)
    urgent = f"urgent-{claimed.namespace}"
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    claimed.api.create(classes, {"metadata": {"name": urgent}, "value": 1000})
    container = {
        "name": "all",
        "image": "local.test/all",
        "resources": {"requests": {"cpu": fake.SIZE["cpu"]}},
    }
    pod = {
        "metadata": {"name": "urgent"},
        "spec": {
            "priorityClassName": urgent,
            "containers": [container],
            **claimed.settings.pod["spec"],
        },
    }
    pods = f"/api/v1/namespaces/{claimed.namespace}/pods"
    # Admission learns of a class a moment after it was made.
    wait_until(lambda: not claimed.api.refusal(pods, pod), "the class to be known")
    claimed.api.create(pods, pod)
    status = wait_status(provider, lambda s: any(f.reclaimed for f in s.followers))
    assert status.phase is Phase.PENDING
    assert "was preempted" in status.why
    claimed.api.delete(f"{pods}/urgent")
    claimed.api.delete(f"{classes}/{urgent}")
    status = wait_status(provider, running)
    assert not any(follower.reclaimed for follower in status.followers)


def test_a_job_that_kueue_suspends_is_queued(bursts: Bursts) -> None:
    """Kueue suspends Jobs, those that run as well, and starts them; here the test."""
    path = bursts.job(bursts.spec.burst_id)
    provider = bursts.provider()
    bring_up(provider, bursts.spec)
    bursts.api.patch(path, {"spec": {"suspend": True}})
    status = wait_status(provider, lambda seen: "is queued" in seen.why)
    assert status.phase is Phase.PENDING
    provider.provision(bursts.spec)
    assert bursts.api.get(path)["spec"]["suspend"] is True
    impatient = bursts.provider(schedule=Seconds(0))
    late = wait_status(impatient, lambda seen: seen.phase is Phase.FAILED)
    assert late.failure is Failure.CAPACITY
    bursts.api.patch(path, {"spec": {"suspend": False}})
    wait_status(provider, running)
    reap_all(provider, bursts.spec)
