# SPDX-License-Identifier: MIT
"""A burst of pods that grows and shrinks by `burst resize` while a job runs on it."""

from __future__ import annotations

from typing import Any

from burst.lead_setup.lead_plan import PlannedSlot
from burst.model.shape import Shape
from tests.nodes.isolated_site import IsolatedSite
from tests.nodes.waiting import wait_until

SLOT = PlannedSlot(hosts="burst-0-[0-3]", shape=Shape(1))
_HOSTNAME = ("--cwd=/", "flux", "getattr", "hostname")


def check_resizes(site: IsolatedSite) -> None:
    """Grow from 1 to 3, shrink to 2 and to 1, and grow again; then take it down.

    The job on the first pod runs all the time, and its pod is the same.
    """
    burst = site.burst("request", "-N1").splitlines()[0].split()[-1]
    wait_until(lambda: site.lead.online() >= {"burst-0-0"}, site.look)
    first = ("--requires=host:burst-0-0", "--cwd=/")
    job = site.flux("submit", *first, "sh", "-c", "sleep 600")
    wait_until(lambda: _status(site, job) == "RUN", site.look)
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
        assert _status(site, job) == "RUN"
    assert pod in _pods(site)
    _maintain_first_node(site, burst)
    site.burst("down", burst)
    site.gone()


def _maintain_first_node(site: IsolatedSite, burst: str) -> None:
    """Delete the first pod, as an eviction does; a job on the other one goes on.

    Its broker ends with 0, and the objects of a growth belong to the first Job.
    """
    second = ("--requires=host:burst-0-1", "--cwd=/")
    job = site.flux("submit", *second, "sleep", "600")
    wait_until(lambda: _status(site, job) == "RUN", site.look)
    before = {pod["metadata"]["uid"] for pod in site.objects("pods")}
    first = ("-l", f"batch.kubernetes.io/job-name={burst}", "-n", site.namespace)
    site.cluster.kubectl("delete", "pods", *first, "--wait=false")

    def replaced() -> bool:
        pods = {pod["metadata"]["uid"] for pod in site.objects("pods")}
        return len(pods) == len(pods & before) + 1 == 2

    wait_until(replaced, site.look)
    wait_until(lambda: site.lead.online() >= {"burst-0-0", "burst-0-1"}, site.look)
    assert _status(site, job) == "RUN"
    site.flux("cancel", job)
    on_both = ("-N2", "--requires=host:burst-0-[0-1]")
    assert set(site.lead.run(*on_both, *_HOSTNAME)) == {"burst-0-0", "burst-0-1"}


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
