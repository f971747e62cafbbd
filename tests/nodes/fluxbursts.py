# SPDX-License-Identifier: MIT
"""Bursts of burst_kube's at a real Flux lead outside: made, used, and taken down."""

from __future__ import annotations

import re

from burst_kube.provider import KubeProvider

from burst.provider import BurstSpec, Phase
from burst.testing import example_spec
from tests.nodes.waiting import wait_until
from tests.support.fluxlead import FluxLead
from tests.support.reaping import reap_until_gone


def reap_all(provider: KubeProvider, spec: BurstSpec) -> None:
    """Reap until nothing is left."""
    reap_until_gone(provider, spec.burst_id)


def check_hosts(lead: FluxLead, *hosts: str) -> None:
    """Run a job on all that are not the lead's own, and see where it ran."""
    command = ("flux", "getattr", "hostname")
    names = lead.run(f"-N{len(hosts)}", "--requires=burst", "--cwd=/", *command)
    assert sorted(names) == sorted(hosts)


def wait_for_return(
    lead: FluxLead, provider: KubeProvider, spec: BurstSpec, how: str
) -> None:
    """Wait until a broker that ended was started again, and all are online.

    It is restarted more than once where the lead still has its old connection.
    """
    restarted = rf"was restarted (once|\d+ times), last after {how}"
    wait_until(
        lambda: re.search(restarted, provider.observe()[0].why),
        lambda: f"{restarted}: {provider.observe()}",
    )
    wait_until(lambda: set(spec.hosts) <= lead.online(), "it to be back")


def burst(lead: FluxLead, provider: KubeProvider, nodes: int) -> BurstSpec:
    """Bring up a burst of so many nodes, run a job on it, and return its spec."""
    spec = example_spec(lead.identity(), 0, "nodes", nodes)
    provider.provision(spec)
    wait_until(
        lambda: set(spec.hosts) <= lead.online(),
        lambda: f"the followers to join: {provider.observe()}",
    )
    # A broker may have joined before its kubelet has told that it runs.
    running = [Phase.RUNNING]
    wait_until(lambda: [s.phase for s in provider.observe()] == running, "pods to run")
    check_hosts(lead, *spec.hosts)
    return spec
