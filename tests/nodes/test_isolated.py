# SPDX-License-Identifier: MIT
"""Isolated bursts on real nodes: real Flux there, which runs jobs in the lead's stead.

The lead and its daemon are outside. tests/nodes/test_containers.py has those that a
person uses, and containers beside their brokers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kubelab.cluster import Cluster
from tests.nodes.isolated_site import (
    NEVER,
    UNTIL_TOLD,
    IsolatedSite,
    container,
    isolated_site,
)
from tests.nodes.waiting import wait_until
from tests.support.fluxlead import needs_flux

pytestmark = [pytest.mark.nodes, needs_flux]
ISOLATED = (
    *("--setattr=burstable", "--setattr=burst.mode=isolated"),
    *("--setattr=burst.wait=0", "--cwd=/tmp"),
)


def test_a_job_runs_there_once_though_its_daemon_dies_and_a_service_has_an_address(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """A container that goes on beside the brokers keeps neither."""
    more: dict[str, Any] = {
        "service": ["python3", "-m", "http.server", "5000"],
        "pod": {"spec": {"containers": [container("endless", readinessProbe=NEVER)]}},
    }
    with isolated_site(cluster, namespace, tmp_path, **more) as site:
        check_job(site)
        check_service(site)


def check_job(site: IsolatedSite) -> None:
    """Its end and output come back, once, with its own environment."""
    says = 'echo "$GREETING from $(flux getattr hostname)"; echo oh >&2'
    words = (
        "-N2",
        "--env=GREETING=hello",
        *ISOLATED,
        "sh",
        "-c",
        f"{says}; {UNTIL_TOLD}",
    )
    job = site.flux("submit", *words)
    wait_until(lambda: len(site.objects("pods")) == 2, site.look)
    site.daemon.kill()
    site.daemon.wait()
    site.daemon = site.start()
    site.tell_pods()
    note = site.ended(job)
    assert note.startswith("ran in isolated burst burst-iso-"), note
    assert note.endswith(": exit status 0"), note
    name = note.split()[4].rstrip(":")
    said = site.burst("output", job)
    for index in (0, 1):
        assert said.count(f"hello from {name}-{index}\n") == 1
    assert said.count("oh\n") == 2
    assert site.flux("jobs", "-no", "{user.burst.state}", job) == "exit 0"
    tail = site.flux("jobs", "-no", "{user.burst.output}", job)
    assert f"hello from {name}-0" in tail
    site.gone()


def check_service(site: IsolatedSite) -> None:
    """The address that is told answers in the pod."""
    said = site.burst("request", "-N1", "--isolated", "--service")
    address = next(w for w in said.split() if w.startswith("http://"))
    (pod,) = site.objects("pods")
    where = ("exec", "-n", site.namespace, pod["metadata"]["name"], "-c", "broker")
    code = f"import urllib.request as u; print(u.urlopen({address!r}).status)"
    inside = (*where, "--", "python3", "-c", code)
    wait_until(
        lambda: site.cluster.kubectl(*inside, check=False).strip() == "200", site.look
    )
    # The daemon may not have seen yet that the job's burst, which is first, is gone.
    site.burst("down", "last")
    site.gone()
