# SPDX-License-Identifier: MIT
"""A burst of pods that grows and shrinks by `burst resize` while a job runs on it."""

from __future__ import annotations

import json
from typing import Any

from burst.lead_setup.lead_plan import PlannedSlot
from burst.model.shape import Shape
from tests.nodes.isolated_site import IsolatedSite
from tests.nodes.waiting import wait_until

SLOT = PlannedSlot(hosts="burst-0-[0-3]", shape=Shape(1))
_HOSTNAME = ("--cwd=/", "flux", "getattr", "hostname")


def check_resizes(site: IsolatedSite, parent: str) -> None:
    """Grow from 1 to 3, shrink to 2 and to 1, and grow again; then lose the first part.

    The job on the first pod runs all the time, and its pod is the same. `parent` is the
    kind of what makes pods.
    """
    burst = site.burst("request", "-N1").splitlines()[0].split()[-1]
    wait_until(lambda: site.lead.online() >= {"burst-0-0"}, site.look)
    first = _begin_job(site, "burst-0-0")
    (pod,) = _pods(site)
    for nodes in (3, 2, 1, 2):
        said = site.burst("resize", burst, str(nodes))
        assert f"{burst} has {nodes} node" in said, said
        others = {f"burst-0-{number}" for number in range(1, nodes)}
        assert _further(site) == others
        if others:
            words = (f"-N{len(others)}", "--requires=host:burst-0-[1-3]")
            assert set(site.lead.run(*words, *_HOSTNAME)) == others
        assert len(_pods(site)) == nodes
        assert _status(site, first) == "RUN"
    assert pod in _pods(site)
    second = _begin_job(site, "burst-0-1")

    def jobs() -> list[str]:
        return [job for b in _bursts(site) if b["id"] == burst for job in b["jobs"]]

    # Neither is a job that the burst was made for.
    wait_until(lambda: jobs() == [first, second], site.look)
    told = f"{burst} of far: online"
    wait_until(lambda: told in site.burst("explain", second), site.look)
    _evict_first(site, burst, first)
    assert _status(site, second) == "RUN"
    _delete_first_part(site, burst, parent)
    assert _status(site, second) == "RUN"
    site.flux("cancel", second)
    site.gone()


def _begin_job(site: IsolatedSite, host: str) -> str:
    where = ("--setattr=burstable", f"--requires=host:{host}", "--cwd=/")
    job = site.flux("submit", *where, "sleep", "inf")
    wait_until(lambda: _status(site, job) == "RUN", site.look)
    return job


def _evict_first(site: IsolatedSite, burst: str, job: str) -> None:
    """Evict the first pod, as a drain does: it is replaced, and all are told of it.

    What the next one mounts was deleted by a person, and is there again later.
    """
    get = ("get", f"secret/{burst}", "-n", site.namespace, "-o", "json")
    mounted = json.loads(site.cluster.kubectl(*get))
    site.cluster.kubectl("delete", f"secret/{burst}", "-n", site.namespace)
    before = {pod["metadata"]["uid"] for pod in site.objects("pods")}
    (pod,) = (
        pod["metadata"]["name"]
        for pod in site.objects("pods")
        if pod["metadata"]["name"].startswith(f"{burst}-0-")
    )
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": site.namespace},
    }
    path = f"/api/v1/namespaces/{site.namespace}/pods/{pod}/eviction"
    create = ("create", "--raw", path, "-f", "-")
    site.cluster.kubectl(*create, manifest=eviction)

    def replaced() -> bool:
        pods = {pod["metadata"]["uid"] for pod in site.objects("pods")}
        return len(pods) == len(pods & before) + 1 == 2

    wait_until(replaced, site.look)
    lacks = "its next pod cannot be started: FailedMount: "
    wait_until(lambda: lacks in str(_bursts(site)), site.look)
    del mounted["metadata"]["resourceVersion"], mounted["metadata"]["uid"]
    site.cluster.kubectl("create", "-f", "-", manifest=mounted)
    wait_until(lambda: site.lead.online() >= {"burst-0-0", "burst-0-1"}, site.look)
    on_first = ("-N1", "--requires=host:burst-0-0")
    assert site.lead.run(*on_first, *_HOSTNAME) == ["burst-0-0"]
    words = "burst-0-0 was evicted, as when a node is drained"
    for what in (burst, job):
        assert words in site.burst("explain", what)
    assert words in site.log.read_text()
    event = ("events", "-n", site.namespace, "-o", "jsonpath={.items[*].message}")
    wait_until(
        lambda: f"it lost rank 1: {words}" in site.cluster.kubectl("get", *event),
        site.look,
    )


def _bursts(site: IsolatedSite) -> list[dict[str, Any]]:
    return list(json.loads(site.burst("status", "--json"))["bursts"])


def _delete_first_part(site: IsolatedSite, burst: str, parent: str) -> None:
    """Delete what makes the first pod, as Kubernetes does some time after its end.

    The daemon ends the burst, and waits for the job on the other node.
    """
    one = (parent, burst, "-n", site.namespace)
    site.cluster.kubectl("delete", *one)
    wait_until(
        lambda: f"{burst} was deleted" in site.burst("explain", burst), site.look
    )


def _status(site: IsolatedSite, job: str) -> str:
    return site.flux("jobs", "-ano", "{status}", job)


def _further(site: IsolatedSite) -> set[str]:
    return set(site.lead.online()) - {"lead-0", "burst-0-0"}


def _pods(site: IsolatedSite) -> list[Any]:
    """Return what tells whether a pod, or the broker in it, is another one.

    A broker joins before its node has told the API server of its container.
    """
    found = [(item["metadata"], item["status"]) for item in site.objects("pods")]
    return [
        (
            meta["uid"],
            sum(s["restartCount"] for s in status.get("containerStatuses", ())),
        )
        for meta, status in found
    ]
