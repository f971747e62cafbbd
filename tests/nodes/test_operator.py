# SPDX-License-Identifier: MIT
"""burst_kube through the real Flux Operator: its MiniCluster's brokers join the lead.

BURST_TEST_FLUX_OPERATOR is the operator's `manager` program, built from its repository;
it runs beside the API server, which has the CRD that BURST_TEST_MINICLUSTER_CRD names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.shellimage import DAEMON_IMAGE, SHELL_IMAGE
from tests.kubelab.cluster import Cluster
from tests.nodes.isolated_site import isolated_site
from tests.nodes.miniclusters import (
    directories,
    flux_operator,
    mounted_directories,
    needs_operator,
    patch_of,
)
from tests.nodes.resizing import SLOT as SLOT_OF_FOUR
from tests.nodes.resizing import check_resizes
from tests.nodes.seed import (
    LEAD_ENVIRONMENT,
    Seed,
    planted,
    run_experiment,
    some_user,
    upgrade_daemon,
)
from tests.nodes.waiting import wait_until
from tests.support.fluxlead import needs_flux

pytestmark = [
    # The operator that a test runs is that of all namespaces.
    pytest.mark.xdist_group("namespace-burst"),
    pytest.mark.nodes,
    needs_flux,
    needs_operator,
]
KINDS = "miniclusters,jobs,pods,configmaps,secrets,services"


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Path]:
    """The operator, for the time of a test; its log."""
    log = tmp_path / "operator.log"
    with flux_operator(log):
        yield log


def objects(cluster: Cluster, namespace: str) -> list[Any]:
    """Return all but what every namespace has."""
    found = cluster.kubectl("get", KINDS, "-n", namespace, "-o", "json")
    common = ("kube-root-ca.crt",)
    return [
        item
        for item in json.loads(found)["items"]
        if item["metadata"]["name"] not in common
    ]


@pytest.mark.usefixtures("operator")
def test_a_burst_grows_by_another_minicluster_and_shrinks(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    form: dict[str, Any] = {"form": "operator", "user": os.geteuid()}
    form |= {"image": SHELL_IMAGE, "host_paths": directories()}
    with isolated_site(cluster, namespace, tmp_path, SLOT_OF_FOUR, **form) as site:
        check_resizes(site, "minicluster")
    wait_until(lambda: not objects(cluster, namespace), "all to be gone")


class OperatorSeed(Seed):
    """The lead is a MiniCluster too, as its bursts are."""

    overlay = "overlays/kind"
    far_parts = ("miniclusters",)
    parent = "MiniCluster"
    made = frozenset({"Secret", "Job", "Pod"})

    def followers(self) -> dict[str, Any]:
        return {
            "form": "operator",
            "image": SHELL_IMAGE,
            "user": some_user(),
            "host_paths": directories(),
        }

    def programs(self) -> dict[str, Any]:
        user = some_user()
        security = {"runAsUser": user, "runAsGroup": user}
        view = {"image": SHELL_IMAGE, "disable": True, "securityContext": security}
        changes = {
            "/flux/container": view,
            "/pod/securityContext": {"fsGroup": user},
            "/containers/0/imagePullPolicy": "Never",
            "/containers/1/imagePullPolicy": "Never",
            "/containers/0/image": SHELL_IMAGE,
            "/containers/1/image": DAEMON_IMAGE,
            "/containers/0/resources/requests/cpu": "100m",
            # The second container sees what the first does.
            **{
                f"/containers/0/volumes/{name}": volume
                for name, volume in mounted_directories().items()
            },
            **{
                f"/containers/{container}/environment/{name}": value
                for container in (0, 1)
                for name, value in LEAD_ENVIRONMENT.items()
            },
            **{f"/containers/{n}/securityContext": security for n in (0, 1)},
        }
        return patch_of("lead", changes)


def test_the_lead_may_be_a_minicluster_too(
    operator: Path, cluster: Cluster, tmp_path: Path
) -> None:
    """Jobs burst by `flux submit`, and the daemon beside the lead is upgraded alone."""
    with planted(OperatorSeed, cluster, tmp_path) as seed:
        seed.apply()
        run_experiment(seed)
        upgrade_daemon(seed)
        # The operator's log has the ConfigMaps that it makes.
        assert seed.key() not in operator.read_text()
