# SPDX-License-Identifier: MIT
"""What an autoscaler did reaches the status of a burst, by events of a real API server.

The autoscaler is played; the scheduler that finds no node is not.
"""

from __future__ import annotations

import time

import pytest

from burst.provider import Phase
from tests.kubernetes.autoscaler import Autoscaler
from tests.kubernetes.bursts import Bursts, finds_no_nodes, wait_status
from tests.support.pod_words import pod_words

pytestmark = pytest.mark.kubernetes
NOWHERE = {"node.kubernetes.io/instance-type": "none"}


def test_nodes_that_are_added_are_told_until_the_pods_have_them(bursts: Bursts) -> None:
    provider = bursts.provider(pod=pod_words(nodeSelector=NOWHERE))
    provider.provision(bursts.spec)
    wait_status(provider, finds_no_nodes)
    scaler = Autoscaler(bursts.api, bursts.namespace, "cluster-autoscaler")
    pods = bursts.objects("pods")
    for pod in pods:
        message = "pod didn't trigger scale-up: 1 max node group size reached"
        scaler.tell(pod, "NotTriggerScaleUp", message)
    status = wait_status(provider, lambda s: "autoscaler" in s.why)
    assert status.phase is Phase.PENDING
    assert "adds no node" in status.why
    assert "1 max node group size reached" in status.why
    time.sleep(1.1)  # times of events are in seconds
    for pod in pods:
        message = "pod triggered scale-up: [{pool-1 0->2 (max: 4)}]"
        scaler.tell(pod, "TriggeredScaleUp", message)
    status = wait_status(provider, lambda s: "autoscaler adds nodes" in s.why)
    assert "[{pool-1 0->2 (max: 4)}]" in status.why
    assert "adds no node" not in status.why
    assert all("adds nodes" in follower.why for follower in status.followers)
    # The nodes are there: played, as they have no kubelets.
    for pod in pods:
        bursts.bind(pod["metadata"]["name"], "new-node")
    wait_status(provider, lambda s: s.why.endswith("is being started"))


def test_a_node_that_is_taken_away_is_told_with_the_next_pod(bursts: Bursts) -> None:
    provider = bursts.provider()
    provider.provision(bursts.spec)
    wait_status(provider, lambda s: s.phase is Phase.RUNNING and not s.why)
    provider.observe()  # from then on it is told of what happens between two looks
    scaler = Autoscaler(bursts.api, bursts.namespace, "cluster-autoscaler")
    pod = bursts.objects("pods")[0]
    # No other pod of it is to run by itself.
    bursts.make_quota(pods="1")
    scaler.tell(pod, "ScaleDown", "deleting pod for node scale down")
    scaler.evict(pod)
    words = "the autoscaler took its node away"
    status = wait_status(provider, lambda s: words in s.why)
    assert status.phase is Phase.PENDING
    assert "ScaleDown: deleting pod for node scale down" in status.why
    gone = "was evicted, as when a node is drained: Eviction API: evicting"
    none = f"{gone}; has no pod yet; "
    status = wait_status(
        provider, lambda s: any(f.why.startswith(none) for f in s.followers)
    )
    assert gone in [follower.lost for follower in status.followers]
    told = [f.why for f in status.followers if words in f.why]
    assert len(told) == 1, told
    assert told[0].startswith(none)
