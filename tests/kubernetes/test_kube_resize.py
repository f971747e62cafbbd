# SPDX-License-Identifier: MIT
"""Bursts grow and shrink at a real API server, which fails and lies where it can."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from burst_kube.provider import KubeProvider

from burst.errors import (
    InsufficientCapacity,
    SpecRefused,
    Transient,
)
from burst.kits.kube.kinds import annotations_of, name_of
from burst.kits.pods.names import HOSTS, INDEX, KUEUE_QUEUE, LEAVING, parse_hosts
from burst.provider import Phase
from tests.kubernetes.bursts import (
    Bursts,
    attempt,
    bring_up,
    reap_all,
    resize_all,
    runs,
    sized,
    wait_for_number,
    wait_status,
)
from tests.kubernetes.operator import PlayedOperator
from tests.kubernetes.proxy import Fault, Proxy
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kubernetes


def starts(bursts: Bursts) -> dict[str, str]:
    """Return which host each pod's script reads, by the pod's name."""
    files = {
        name_of(item): item["data"]["hosts"].splitlines()
        for item in bursts.objects("configmaps")
        if "hosts" in item.get("data", {})
    }
    found = {}
    for pod in bursts.objects("pods"):
        (source,) = (
            volume["configMap"]["name"]
            for volume in pod["spec"]["volumes"]
            if volume["name"] == "config"
        )
        index = int(pod["metadata"]["labels"][INDEX])
        found[name_of(pod)] = files[source][index]
    return found


@pytest.fixture
def provider(bursts: Bursts, proxy: Proxy) -> KubeProvider:
    return bursts.provider(kubeconfig=str(proxy.kubeconfig))


def test_each_pod_reads_its_own_host_whatever_was_there_before(
    bursts: Bursts, provider: KubeProvider
) -> None:
    """Also where another burst has a host between, which was this one's before."""
    one, three = sized(bursts, "burst-0-0"), sized(bursts, "burst-0-[0-2]")
    bring_up(provider, one)
    (first,) = starts(bursts)
    resize_all(provider, three)
    assert sorted(starts(bursts).values()) == list(three.hosts)
    resize_all(provider, sized(bursts, "burst-0-[0-1]"))
    resize_all(provider, one)
    assert starts(bursts) == {first: "burst-0-0"}
    other = sized(bursts, "burst-0-[0,2-3]")
    resize_all(provider, other)
    assert sorted(starts(bursts).values()) == list(other.hosts)
    assert starts(bursts)[first] == "burst-0-0"
    reap_all(provider, other)
    for kind in ("pods", "jobs", "secrets"):
        wait_for_number(bursts, kind, 0)


def test_what_was_made_as_one_shrinks_from_its_highest_index(
    bursts: Bursts, provider: KubeProvider
) -> None:
    four = sized(bursts, "burst-0-[0-3]")
    bring_up(provider, four)
    before = starts(bursts)
    two = sized(bursts, "burst-0-[0-1]")
    provider.resize(two)
    (status,) = provider.observe()
    ending = {f.host for f in status.followers if f.phase is Phase.ENDING}
    assert ending == {"burst-0-2", "burst-0-3"}
    again = attempt(lambda: provider.resize(four))
    assert isinstance(again, Transient)
    resize_all(provider, two)
    stay = {pod: host for pod, host in before.items() if host in two.hosts}
    assert starts(bursts) == stay
    (job,) = bursts.objects("jobs")
    assert (job["spec"]["completions"], job["spec"]["parallelism"]) == (2, 2)
    assert parse_hosts(annotations_of(job)[HOSTS]) == two.hosts
    assert LEAVING not in annotations_of(job)
    provider.provision(two)
    error = attempt(lambda: provider.provision(four))
    assert isinstance(error, SpecRefused)
    assert "with other hosts" in error.what
    reap_all(provider, two)


@pytest.mark.parametrize(
    ("then", "lost", "after"),
    [
        ("burst-0-[0-1]", "secrets", True),
        ("burst-0-0", "start", True),
        ("burst-0-[0-3]", "jobs", True),
        ("burst-0-[0-3]", "start", False),
    ],
)
def test_a_growth_that_broke_off_goes_on_is_taken_back_or_becomes_a_larger_one(
    bursts: Bursts,
    proxy: Proxy,
    provider: KubeProvider,
    then: str,
    lost: str,
    *,
    after: bool,
) -> None:
    one, last = sized(bursts, "burst-0-0"), sized(bursts, then)
    bring_up(provider, one)
    request = ("PATCH", "/jobs/") if lost == "start" else ("POST", f"/{lost}\\?")
    proxy.faults.append(Fault(*request, drop=not after, after=after, times=1))
    broken = attempt(lambda: provider.resize(sized(bursts, "burst-0-[0-1]")))
    assert isinstance(broken, Transient)
    resize_all(provider, last)
    # The Job's controller may make a pod as its Job goes; that and the Secret go with
    # it, a moment later.
    wait_for_number(bursts, "pods", len(last.hosts))
    assert sorted(starts(bursts).values()) == list(last.hosts)
    if len(last.hosts) < 3:
        assert len(bursts.objects("jobs")) == len(last.hosts)
        wait_for_number(bursts, "secrets", len(last.hosts))
    reap_all(provider, last)


@pytest.mark.parametrize(
    ("size", "fault"),
    [
        ("burst-0-0", "after"),
        ("burst-0-[0-1]", "before"),
        ("burst-0-[0-2]", "conflict"),
    ],
)
def test_a_shrink_goes_on_where_it_broke_off(
    bursts: Bursts, proxy: Proxy, provider: KubeProvider, size: str, fault: str
) -> None:
    """Whether it takes pods of the first Job, of that of the growth, or all of this."""
    provider.provision(sized(bursts, "burst-0-[0-1]"))
    wait_status(provider, runs("burst-0-0", "burst-0-1"))
    resize_all(provider, sized(bursts, "burst-0-[0-3]"))
    known = set(starts(bursts).items())
    conflict = {"status": 409, "body": {"kind": "Status", "reason": "Conflict"}}
    kinds: dict[str, dict[str, Any]] = {
        "before": {"drop": True},
        "after": {"after": True},
        "conflict": conflict,
    }
    for verb in ("PATCH", "DELETE"):
        proxy.faults.append(Fault(verb, "/jobs/", times=2, **kinds[fault]))
    small = sized(bursts, size)
    assert isinstance(attempt(lambda: provider.resize(small)), Transient)
    resize_all(provider, small)
    assert set(starts(bursts).items()) <= known
    assert sorted(starts(bursts).values()) == list(small.hosts)
    reap_all(provider, small)
    wait_for_number(bursts, "pods", 0)


def test_a_quota_refuses_a_growth_and_the_burst_goes_on(
    bursts: Bursts, provider: KubeProvider
) -> None:
    one, two = sized(bursts, "burst-0-0"), sized(bursts, "burst-0-[0-1]")
    bring_up(provider, one)
    bursts.make_quota(secrets="1")
    error = attempt(lambda: provider.resize(two))
    assert isinstance(error, InsufficientCapacity)
    (status,) = provider.observe()
    assert {f.host: f.phase for f in status.followers}["burst-0-0"] is Phase.RUNNING
    resize_all(provider, one)
    assert len(bursts.objects("jobs")) == 1
    reap_all(provider, one)


def test_lists_from_before_make_nothing_twice_and_nothing_gone(
    bursts: Bursts, proxy: Proxy, provider: KubeProvider
) -> None:
    one, two = sized(bursts, "burst-0-0"), sized(bursts, "burst-0-[0-1]")
    bring_up(provider, one)
    provider.resize(one)
    proxy.stale = "labelSelector"
    provider.resize(one)
    for _ in range(2):
        provider.resize(two)
    assert len(bursts.objects("jobs")) == 2
    larger = attempt(lambda: provider.resize(sized(bursts, "burst-0-[0-2]")))
    assert isinstance(larger, Transient)
    proxy.stale = ""
    resize_all(provider, two)
    reap_all(provider, two)


def test_a_pod_that_has_ended_leaves_with_its_host(
    bursts: Bursts, provider: KubeProvider
) -> None:
    """A Job keeps those that ended of themselves, and another would be taken for it."""
    two = sized(bursts, "burst-0-[0-1]")
    bring_up(provider, two)
    (last,) = (pod for pod, host in starts(bursts).items() if host == "burst-0-1")
    (pod,) = (pod for pod in bursts.objects("pods") if name_of(pod) == last)
    bursts.end_pod(pod, 0)
    wait_status(provider, lambda status: status.phase is Phase.FAILED)
    resize_all(provider, sized(bursts, "burst-0-0"))
    wait_for_number(bursts, "pods", 1)
    resize_all(provider, two)
    reap_all(provider, two)


def test_a_first_job_that_is_complete_takes_no_other_with_it(
    bursts: Bursts, provider: KubeProvider
) -> None:
    """Kubernetes deletes a Job some time after its end, and all that it owns."""
    one, two = sized(bursts, "burst-0-0"), sized(bursts, "burst-0-[0-1]")
    bring_up(provider, one)
    (first,) = bursts.objects("pods")
    resize_all(provider, two)
    bursts.end_pod(first, 0)
    job = bursts.job(one.burst_id)
    told = wait_status(provider, lambda s: f"of Job {one.burst_id} have" in s.why)
    phases = {each.host: each.phase for each in told.followers}
    assert phases == {"burst-0-0": Phase.FAILED, "burst-0-1": Phase.RUNNING}
    (second,) = (p for p in bursts.objects("pods") if name_of(p) != name_of(first))
    bursts.api.patch(job, {"spec": {"ttlSecondsAfterFinished": 0}})
    told = wait_status(provider, lambda status: len(status.followers) == 1)
    assert told.why == f"{one.burst_id} was deleted, and not by burst"
    assert [(f.host, f.phase) for f in told.followers] == [("burst-0-1", Phase.RUNNING)]
    (left,) = bursts.objects("pods")
    assert left["metadata"]["uid"] == second["metadata"]["uid"]
    reap_all(provider, two)
    for kind in ("pods", "jobs", "secrets"):
        wait_for_number(bursts, kind, 0)


def test_a_job_of_kueue_keeps_its_size(bursts: Bursts, provider: KubeProvider) -> None:
    """Kueue may put the label on it, where the namespace has a queue by default."""
    two = sized(bursts, "burst-0-[0-1]")
    bring_up(provider, two)
    path = bursts.job(two.burst_id)
    bursts.api.patch(path, {"metadata": {"labels": {KUEUE_QUEUE: "batch"}}})
    others = sized(bursts, "burst-0-0"), sized(bursts, "burst-0-[0-2]")
    for error in (attempt(partial(provider.resize, other)) for other in others):
        assert isinstance(error, SpecRefused)
        assert "Kueue" in error.what
    provider.resize(two)
    wait_status(provider, runs(*two.hosts))
    reap_all(provider, two)


def test_names_come_and_go_with_their_hosts(bursts: Bursts, proxy: Proxy) -> None:
    named = bursts.provider(kubeconfig=str(proxy.kubeconfig), names=True)
    two, one = sized(bursts, "burst-0-[0-1]"), sized(bursts, "burst-0-0")
    bring_up(named, two)
    proxy.faults.append(Fault("PATCH", "/jobs/", drop=True, times=1))
    resize_all(named, one)
    resize_all(named, sized(bursts, "burst-0-[0,2-3]"))
    services = bursts.objects("services")
    found = {name_of(item): item["spec"]["selector"] for item in services}
    hosts = ("burst-0-0", "burst-0-2", "burst-0-3")
    assert set(found) == {one.burst_id, *hosts}
    for host in hosts:
        chosen, pods = found[host].items(), bursts.objects("pods")
        (pod,) = (p for p in pods if chosen <= p["metadata"]["labels"].items())
        assert starts(bursts)[name_of(pod)] == host
    reap_all(named, one)
    wait_until(lambda: bursts.objects("services") == [], "the names to be gone")


@pytest.mark.usefixtures("miniclusters")
def test_a_minicluster_grows_by_another_and_shrinks(
    bursts: Bursts, proxy: Proxy
) -> None:
    """With names. What one owns is from before: it alone says what it has now."""
    words: dict[str, Any] = {"form": "operator", "names": True}
    provider = bursts.provider(kubeconfig=str(proxy.kubeconfig), **words)
    two, four = sized(bursts, "burst-0-[0-1]"), sized(bursts, "burst-0-[0-3]")
    with PlayedOperator(bursts.api, bursts.namespace):
        bring_up(provider, two)
        proxy.faults.append(Fault("POST", "/miniclusters\\?", after=True, times=1))
        assert isinstance(attempt(lambda: provider.resize(four)), Transient)
        resize_all(provider, four)
        assert len(bursts.objects("jobs")) == 2
        for hosts in ("burst-0-[0-2]", "burst-0-0"):
            proxy.faults.append(Fault("DELETE", "/miniclusters/", drop=True, times=1))
            proxy.faults.append(Fault("PATCH", "/miniclusters/", after=True, times=1))
            small = sized(bursts, hosts)
            resize_all(provider, small)
            proxy.faults.clear()
            # What was cut is whole, and nothing is lacking.
            provider.provision(small)
            provider.resize(small)
        # Kubernetes deletes what a MiniCluster had once that is gone.
        for kind in ("pods", "jobs"):
            wait_for_number(bursts, kind, 1)
        burst = two.burst_id
        stays = {"kube-root-ca.crt", burst, f"{burst}-entrypoint"}
        wait_until(
            lambda: set(map(name_of, bursts.objects("configmaps"))) == stays,
            lambda: bursts.objects("configmaps"),
        )
        resize_all(provider, two)
        reap_all(provider, two)
    # The operator goes on while a MiniCluster is being deleted.
    for kind in ("pods", "jobs", "secrets", "services"):
        wait_for_number(bursts, kind, 0)


@pytest.mark.usefixtures("miniclusters")
def test_a_minicluster_may_grow_by_others_where_a_growth_broke_off(
    bursts: Bursts, proxy: Proxy
) -> None:
    provider = bursts.provider(kubeconfig=str(proxy.kubeconfig), form="operator")
    with PlayedOperator(bursts.api, bursts.namespace):
        provider.provision(sized(bursts, "burst-0-0"))
        wait_status(provider, runs("burst-0-0"))
        proxy.faults.append(Fault("POST", "/configmaps\\?", after=True, times=1))
        broken = attempt(lambda: provider.resize(sized(bursts, "burst-0-[0-2]")))
        assert isinstance(broken, Transient)
        other = sized(bursts, "burst-0-[0-3]")
        resize_all(provider, other)
        reap_all(provider, other)
