# SPDX-License-Identifier: MIT
"""Whoever deletes a burst's Job deletes all of the burst."""

from __future__ import annotations

import msgspec
import pytest

from burst.kits.kube.kinds import name_of
from burst.model.program import Program
from tests.kubernetes.bursts import Bursts, bring_up
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
    program = Program(kind="interactive", jobspec="")
    bursts.spec = msgspec.structs.replace(bursts.spec, ranks=(), program=program)
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
