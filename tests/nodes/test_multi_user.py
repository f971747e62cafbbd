# SPDX-License-Identifier: MIT
"""Guests' jobs in real pods: as themselves, by a setuid IMP, and away from all keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from burst.model.ranks import parse_idset
from tests.intake.modes import CONFINING
from tests.kubelab.cluster import Cluster
from tests.multiuser.apart import BY_USERS, serve
from tests.multiuser.lab import GUESTS, UIDS, Lab
from tests.nodes.multi_user_site import MultiUserSite, site_on_nodes
from tests.nodes.waiting import wait_until

pytestmark = [
    pytest.mark.nodes,
    pytest.mark.multiuser,
    # The nodes have one IMP, which is setuid meanwhile.
    pytest.mark.xdist_group("multi-user"),
]

WHO = (
    "sh",
    "-c",
    "id -un; id -u; flux getattr hostname; ls -d /burst/config;"
    " flux submit --requires=burst true || echo refused",
)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as lab:
        yield lab


@pytest.fixture
def extra() -> dict[str, Any]:
    """Return tables for the lead's configuration; tests parametrize it."""
    return {}


@pytest.fixture
def site(
    lab: Lab, cluster: Cluster, namespace: str, extra: Mapping[str, Any]
) -> Iterator[MultiUserSite]:
    with site_on_nodes(lab, cluster, namespace, extra) as site:
        yield site


def _as_sites_have_it() -> dict[str, Any]:
    """Return named queues that require properties, limits and the validator."""
    tables = CONFINING["queue"]
    validator = {"plugins": ["jobspec", "feasibility"]}
    limits = {"duration": "2h", "job-size": {"max": {"nnodes": 8}}}
    defaults = {"queue": "batch", "duration": "10m"}
    return {
        **tables,
        "ingest": {**tables["ingest"], "validator": validator},
        "policy": {"jobspec": {"defaults": {"system": defaults}}, "limits": limits},
    }


@pytest.mark.parametrize(
    ("extra", "mode"),
    [(CONFINING["scheduler"], "scheduler"), (_as_sites_have_it(), "queue")],
    ids=["scheduler", "queue"],
)
def test_jobs_of_guests_run_in_pods_as_themselves_each_in_a_burst_of_his_own(
    site: MultiUserSite, cluster: Cluster, namespace: str, mode: str
) -> None:
    system = site.system
    enforce = "pod-security.kubernetes.io/enforce=privileged"  # for host_paths
    cluster.kubectl("label", "namespace", namespace, enforce)
    with serve(system, mode, providers={"far": site.table}) as daemon:
        asked = ("submit", "--burst", "-N2", "--cwd=/", "-c4", *WHO)
        jobs = {guest: system.flux(guest, *asked, **BY_USERS) for guest in GUESTS}
        for guest, job in jobs.items():
            done = system.wait_for_end(guest, job)
            assert done.returncode == 0, (str(done)[-1500:], daemon.log()[-3000:])
            words = done.stdout.split()
            assert words.count(str(UIDS[guest])) == 2
            assert words.count(guest) == 2
            assert words.count("/burst/config") == 2, "they ran in pods"
            assert sum(word.startswith("burst-") for word in words) == 2
            # Pods lack the frobnicator, without which a broker here takes no job.
            assert words.count("refused") == 2, done.stderr
            assert done.stderr.count("worker unexpectedly exited") == 2
        ranks = [set(parse_idset(r)) for r in system.jobs("{ranks}", *jobs.values())]
        assert not ranks[0] & ranks[1]
        wait_until(
            lambda: all(b["state"] == "inactive" for b in system.bursts()),
            lambda: str(system.bursts()),
        )
