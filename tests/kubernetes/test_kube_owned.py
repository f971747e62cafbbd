# SPDX-License-Identifier: MIT
"""Whoever deletes a burst's Job deletes all of the burst, and no Secret is read."""

from __future__ import annotations

import msgspec
import pytest
from burst_kube.provider import KubeProvider

from burst.kits.kube.kinds import SECRET, name_of
from burst.model.program import Program
from burst.provider import Phase
from tests.kubernetes.bursts import Bursts, bring_up, reap_all
from tests.kubernetes.operator import PlayedOperator
from tests.kubernetes.proxy import Proxy
from tests.kubernetes.rights import grant
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


def isolated(bursts: Bursts) -> None:
    program = Program(kind="interactive", jobspec="")
    bursts.spec = msgspec.structs.replace(bursts.spec, ranks=(), program=program)


@pytest.mark.parametrize("mode", ["joined", "isolated"])
def test_to_delete_the_job_is_to_delete_all(bursts: Bursts, mode: str) -> None:
    if mode == "isolated":
        isolated(bursts)
    provider = bursts.provider()
    bring_up(provider, bursts.spec)
    owned = {"configmaps", "secrets", *(["services"] if mode == "isolated" else [])}
    assert owned <= left(bursts).keys()
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


def test_no_secret_is_read_listed_changed_or_deleted(
    bursts: Bursts, account: KubeProvider
) -> None:
    grant(bursts, account)
    cluster = account.bursts().cluster
    may = [
        verb
        for verb in ("create", "get", "list", "watch", "patch", "update", "delete")
        if cluster.may(verb, SECRET, bursts.namespace)
    ]
    assert may == ["create"]
    bring_up(account, bursts.spec)
    reap_all(account, bursts.spec)
    wait_empty(bursts)


@pytest.mark.usefixtures("miniclusters")
def test_nor_with_an_operator(bursts: Bursts, proxy: Proxy) -> None:
    provider = bursts.provider(kubeconfig=str(proxy.kubeconfig), form="operator")
    with PlayedOperator(bursts.api, bursts.namespace):
        bring_up(provider, bursts.spec)
        (secret,) = bursts.objects("secrets")
        (owner,) = secret["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("MiniCluster", bursts.spec.burst_id)
        reap_all(provider, bursts.spec)
        wait_empty(bursts)
    verbs = {method for method, path in proxy.seen if "/secrets" in path}
    assert verbs == {"POST"}


def test_a_quota_on_secrets_leaves_a_job_that_makes_nothing(bursts: Bursts) -> None:
    bursts.make_quota(**{"count/secrets": "0"})
    provider = bursts.provider()
    with pytest.raises(Exception, match="exceeded quota"):
        provider.provision(bursts.spec)
    assert left(bursts).keys() == {"jobs", "configmaps"}
    (status,) = provider.observe()
    assert status.phase is Phase.PENDING
    reap_all(provider, bursts.spec)
    wait_empty(bursts)
