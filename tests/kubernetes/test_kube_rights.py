# SPDX-License-Identifier: MIT
"""With the rights of manifests/ all goes; without, it is said which is lacking."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from burst_kube.provider import KubeProvider

from burst.errors import ProviderError, Refused, Transient
from burst.model.finding import Level
from burst.provider import BurstSpec
from tests.kubernetes.bursts import (
    Bursts,
    attempt,
    bring_up,
    reap_all,
    resize_all,
)
from tests.kubernetes.operator import PlayedOperator
from tests.kubernetes.rights import MANIFESTS, grant, grant_operator
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kubernetes


def test_the_role_of_the_manifests_is_enough(
    bursts: Bursts, account: KubeProvider
) -> None:
    grant(bursts, account)
    named = bursts.provider(names=True)
    _live(named, bursts.spec)


@pytest.mark.usefixtures("miniclusters")
def test_the_role_of_the_manifests_is_enough_with_an_operator(
    bursts: Bursts, account: KubeProvider
) -> None:
    grant(bursts, account)
    provider = bursts.provider(form="operator")
    (lacking,) = (f for f in provider.examine(None) if f.level is Level.WRONG)
    assert "get miniclusters" in lacking.what
    assert "manifests/parts/miniclusters" in lacking.advice
    grant_operator(bursts, provider)
    with PlayedOperator(bursts.api, bursts.namespace):
        _live(provider, bursts.spec)


def _live(provider: KubeProvider, spec: BurstSpec) -> None:
    """Have a burst made, grow, shrink and be deleted."""
    bring_up(provider, spec)
    hosts = (*spec.hosts, spec.lead.hosts[spec.ranks[-1] + 1])
    ranks = (*spec.ranks, spec.ranks[-1] + 1)
    for count in (3, 2, 1):
        kept = {"hosts": hosts[:count], "ranks": ranks[:count]}
        resize_all(provider, msgspec.structs.replace(spec, **kept))
    reap_all(provider, spec)


def test_without_rights_it_says_which_are_lacking(
    bursts: Bursts, account: KubeProvider
) -> None:
    error = attempt(account.observe)
    assert isinstance(error, Refused)
    assert f"may not list jobs.batch in namespace {bursts.namespace}" in error.what
    assert "verb list on jobs" in error.advice
    (lacking,) = (f for f in account.examine(None) if f.level is Level.WRONG)
    for right in ("create secrets", "delete jobs.batch", "get pods/log", "list events"):
        assert right in lacking.what


def test_a_namespace_that_was_deleted_with_the_role_in_it(bursts: Bursts) -> None:
    """The daemon's account is in another one, and may read namespaces."""
    lab, far, home = bursts.lab, bursts.namespace, f"{bursts.namespace}-lead"
    who = f"--serviceaccount={home}:daemon"
    for words in (
        ("namespace", home),
        ("serviceaccount", "daemon", "-n", home),
        ("rolebinding", "daemon", "--role=burst-daemon", who, "-n", far),
        ("clusterrole", home, "--verb=get", "--resource=namespaces"),
        ("clusterrolebinding", home, f"--clusterrole={home}", who),
    ):
        lab.kubectl("create", *words)
    lab.kubectl("apply", "-n", far, "-f", MANIFESTS / "role/role.yaml")
    token = lab.kubectl("create", "token", "daemon", "-n", home).strip()
    provider = bursts.provider(
        kubeconfig=str(lab.write_kubeconfig(home, {"token": token}))
    )
    seen: list[Any] = []

    def look() -> ProviderError | None:
        return attempt(lambda: seen.append(list(provider.observe())))

    wait_until(lambda: look() is None, look)
    bring_up(provider, bursts.spec)

    lab.kubectl("delete", "namespace", far, "--wait=false")
    # Until it is gone its Role may lack already.
    there = f"/api/v1/namespaces/{far}"
    wait_until(lambda: bursts.api.get(there) is None, lambda: bursts.api.get(there))
    wait_until(lambda: not provider.observe(), provider.observe)
    reap_all(provider, bursts.spec)
    error = attempt(lambda: provider.provision(bursts.spec))
    assert isinstance(error, Refused)
    assert error.what == f"there is no namespace {far}"
    for words in (("clusterrole", home), ("clusterrolebinding", home)):
        lab.kubectl("delete", *words)


def test_other_hosts_under_one_id_are_refused(bursts: Bursts) -> None:
    provider = bursts.provider()
    provider.provision(bursts.spec)
    fewer = msgspec.structs.replace(
        bursts.spec, hosts=bursts.spec.hosts[:1], ranks=bursts.spec.ranks[:1]
    )
    error = attempt(lambda: provider.provision(fewer))
    assert isinstance(error, Refused)
    assert "with other hosts" in error.what


def test_a_service_of_the_burst_before_is_waited_for(bursts: Bursts) -> None:
    """A gateway's Service has the name that the lead's file has, for any burst."""
    entries = bursts.lead.bootstrap.hosts
    address = f"tcp://burst-0.{bursts.namespace}.svc.cluster.local:8050"
    first = msgspec.structs.replace(
        entries[1], host="burst-0-0", bind="tcp://*:8050", connect=address
    )
    rest = msgspec.structs.replace(entries[1], host="burst-0-[1-3]", parent="burst-0-0")
    bootstrap = msgspec.structs.replace(
        bursts.lead.bootstrap, hosts=(entries[0], first, rest, *entries[2:])
    )
    lead = msgspec.structs.replace(bursts.lead, bootstrap=bootstrap)
    spec = msgspec.structs.replace(bursts.spec, lead=lead)
    later = msgspec.structs.replace(spec, burst_id="burst-0-later1")
    provider = bursts.provider()
    bring_up(provider, spec)
    (service,) = bursts.objects("services")
    assert service["metadata"]["name"] == "burst-0"
    path = f"/apis/discovery.k8s.io/v1/namespaces/{bursts.namespace}/endpointslices"
    # A controller writes them after the pods run.
    wait_until(
        lambda: [len(s.get("endpoints") or []) for s in bursts.api.items(path)] == [1],
        lambda: f"one endpoint: {bursts.api.items(path)}",
    )
    error = attempt(lambda: provider.provision(later))
    assert isinstance(error, Transient)
    assert spec.burst_id in error.what
    reap_all(provider, spec)
    provider.provision(later)
    reap_all(provider, later)
