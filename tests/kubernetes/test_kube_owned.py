# SPDX-License-Identifier: MIT
"""What Kubernetes does of itself with a burst: to its end, and with its parts."""

from __future__ import annotations

from typing import Any

import pytest

from burst.kits.kube.kinds import name_of
from burst.kits.pods.names import INDEX
from burst.provider import Phase
from burst.testing import isolate
from tests.kubernetes.bursts import Bursts, bring_up, reap_all, wait_status
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kubernetes
_OF_ALL = "kube-root-ca.crt"
KINDS = ("jobs", "pods", "configmaps", "secrets", "services")


def left(bursts: Bursts) -> dict[str, list[str]]:
    """Return what the namespace has, but for what Kubernetes puts into each."""
    found = {
        kind: [
            name for item in bursts.objects(kind) if (name := name_of(item)) != _OF_ALL
        ]
        for kind in KINDS
    }
    return {kind: names for kind, names in found.items() if names}


def wait_empty(bursts: Bursts) -> None:
    wait_until(lambda: not left(bursts), lambda: left(bursts))


def test_to_delete_the_job_is_to_delete_all(bursts: Bursts) -> None:
    """Of an isolated burst, which has a Service as well."""
    bursts.spec = isolate(bursts.spec)
    provider = bursts.provider()
    bring_up(provider, bursts.spec)
    assert left(bursts).keys() == set(KINDS)
    bursts.lab.kubectl("delete", "job", bursts.spec.burst_id, "-n", bursts.namespace)
    wait_empty(bursts)
    wait_until(lambda: not provider.observe(), provider.observe)


def test_what_its_lease_ended_is_deleted_by_kubernetes(bursts: Bursts) -> None:
    """The time until then is made short here; the daemon is not there."""
    provider = bursts.provider()
    bring_up(provider, bursts.spec)
    path = bursts.job(bursts.spec.burst_id)
    assert bursts.api.get(path)["spec"]["ttlSecondsAfterFinished"] == 300
    hurry = {"activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 1}
    bursts.api.patch(path, {"spec": hurry})
    wait_empty(bursts)


def test_an_isolated_lead_that_fails_is_not_made_again(bursts: Bursts) -> None:
    spec, provider = isolate(bursts.spec), bursts.provider()
    bring_up(provider, spec)

    def lead() -> Any:
        pods = bursts.objects("pods")
        (found,) = (p for p in pods if p["metadata"]["labels"][INDEX] == "0")
        return found

    first = lead()
    bursts.end_pod(first, 1)
    status = wait_status(provider, lambda s: s.phase is Phase.FAILED)
    assert "ended without a result: exit status 1" in status.why

    def counted() -> bool:
        (job,) = bursts.objects("jobs")
        return bool(job["status"].get("failedIndexes") == "0")

    wait_until(counted, lambda: bursts.objects("jobs"))
    assert lead()["metadata"]["uid"] == first["metadata"]["uid"]
    assert len(bursts.objects("pods")) == 2
    reap_all(provider, spec)
