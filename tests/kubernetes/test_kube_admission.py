# SPDX-License-Identifier: MIT
"""What a cluster adds to pods, forbids, or keeps waiting, on a real API server."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from burst_kube import KubeProvider

from burst.config import Seconds
from burst.kits.pods import PodBursts
from burst.provider import BurstStatus, Failure, Phase
from tests.kubernetes.bursts import Bursts, reap_all, wait_status
from tests.kubernetes.proxy import Proxy

pytestmark = pytest.mark.kubernetes


def running(status: BurstStatus) -> bool:
    return status.phase is Phase.RUNNING


def a_minute_later(bursts: Bursts, provider: KubeProvider) -> BurstStatus:
    """Return the status as it would be then, if nothing else happened."""
    cluster, tags = provider.bursts().cluster, provider.tags
    settings = msgspec.structs.replace(bursts.settings)
    later = PodBursts(cluster, settings, tags, clock=lambda: time.time() + 61)
    (status,) = later.observe()
    return status


def check_denied(bursts: Bursts, provider: KubeProvider, words: str) -> None:
    provider.provision(bursts.spec)
    status = wait_status(provider, lambda seen: words in seen.why)
    assert status.phase is Phase.PENDING
    later = a_minute_later(bursts, provider)
    assert (later.phase, later.failure) == (Phase.FAILED, Failure.OTHER)
    assert words in later.why
    reap_all(provider, bursts.spec)


def test_a_quota_that_demands_limits(bursts: Bursts) -> None:
    bursts.make_quota(**{"limits.cpu": "4"})
    check_denied(bursts, bursts.provider(), "must specify limits.cpu")


def test_a_pod_security_standard(bursts: Bursts) -> None:
    path = f"/api/v1/namespaces/{bursts.namespace}"
    standard = {"pod-security.kubernetes.io/enforce": "restricted"}
    bursts.api.patch(path, {"metadata": {"labels": standard}})
    check_denied(bursts, bursts.provider(user=0), "violates PodSecurity")


def test_a_limit_range(bursts: Bursts) -> None:
    path = f"/api/v1/namespaces/{bursts.namespace}/limitranges"
    limits = [{"type": "Container", "min": {"cpu": "2"}}]
    limit_range = {"metadata": {"name": "large"}, "spec": {"limits": limits}}
    bursts.api.create(path, limit_range)
    check_denied(bursts, bursts.provider(), "minimum cpu usage per Container is 2")


def test_a_service_account_that_does_not_exist(bursts: Bursts) -> None:
    provider = bursts.provider(service_account="nobody")
    check_denied(bursts, provider, 'serviceaccount "nobody" not found')


def test_a_priority_class_that_does_not_exist(bursts: Bursts, proxy: Proxy) -> None:
    def admit(path: str, manifest: dict[str, Any]) -> None:
        if path.endswith("/jobs"):
            manifest["spec"]["template"]["spec"]["priorityClassName"] = "highest"

    proxy.admit = admit
    provider = bursts.provider(kubeconfig=str(proxy.kubeconfig))
    check_denied(bursts, provider, "no PriorityClass with name highest was found")


def test_a_denial_that_is_repaired_is_over(bursts: Bursts) -> None:
    provider = bursts.provider(service_account="late")
    provider.provision(bursts.spec)
    wait_status(provider, lambda seen: '"late" not found' in seen.why)
    path = f"/api/v1/namespaces/{bursts.namespace}/serviceaccounts"
    bursts.api.create(path, {"metadata": {"name": "late"}})
    wait_status(provider, running)
    assert a_minute_later(bursts, provider).phase is Phase.RUNNING


def add_sidecars(path: str, manifest: dict[str, Any]) -> None:
    """Put a container first, and a native sidecar, as Istio and gcsfuse do."""
    if path.endswith("/jobs"):
        pod = manifest["spec"]["template"]["spec"]
        plain = {"image": "proxy:1"}
        pod["containers"].insert(0, {"name": "istio-proxy", **plain})
        native = {"name": "gcsfuse", "restartPolicy": "Always", **plain}
        pod["initContainers"] = [native]


def test_sidecars_are_not_the_broker(bursts: Bursts, proxy: Proxy) -> None:
    proxy.admit = add_sidecars
    provider = bursts.provider(kubeconfig=str(proxy.kubeconfig))
    provider.provision(bursts.spec)
    assert wait_status(provider, running).why == ""
    pod = bursts.objects("pods")[0]
    assert [c["name"] for c in pod["spec"]["containers"]] == ["istio-proxy", "broker"]
    ended = {"terminated": {"exitCode": 3, "reason": "Error"}}
    native = {"name": "gcsfuse", "restartCount": 1, "started": False}
    proxied = {"name": "istio-proxy", "restartCount": 0, "state": ended}
    broker = {"name": "broker", "restartCount": 0, "state": {"running": {}}}
    sidecars = {
        "containerStatuses": [proxied, broker],
        "initContainerStatuses": [{**native, "state": ended}],
    }
    bursts.patch_pod(pod, sidecars)
    (status,) = provider.observe()
    assert (status.phase, status.why) == (Phase.RUNNING, "")
    failed = {**broker, "state": ended}
    bursts.patch_pod(pod, {"containerStatuses": [proxied, failed]})
    status = wait_status(provider, lambda seen: "exit status 3" in seen.why)
    logs = [path for _, path in proxy.seen if "/log?" in path]
    assert logs
    assert all("container=broker" in path for path in logs)
    reap_all(provider, bursts.spec)


def test_a_job_that_kueue_suspends_is_queued(bursts: Bursts) -> None:
    """Kueue suspends Jobs, those that run as well, and starts them; here the test."""
    path = f"/apis/batch/v1/namespaces/{bursts.namespace}/jobs/{bursts.spec.burst_id}"
    provider = bursts.provider()
    provider.provision(bursts.spec)
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


def test_a_job_in_a_queue_is_started_by_its_queue(bursts: Bursts, proxy: Proxy) -> None:
    def admit(path: str, manifest: dict[str, Any]) -> None:
        if path.endswith("/jobs"):
            manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "batch"

    proxy.admit = admit
    provider = bursts.provider(kubeconfig=str(proxy.kubeconfig))
    provider.provision(bursts.spec)
    wait_status(provider, lambda seen: "is queued" in seen.why)
    assert bursts.objects("pods") == []
    assert len(bursts.objects("secrets")) == 1
    path = f"/apis/batch/v1/namespaces/{bursts.namespace}/jobs/{bursts.spec.burst_id}"
    bursts.api.patch(path, {"spec": {"suspend": False}})
    wait_status(provider, running)
    reap_all(provider, bursts.spec)
