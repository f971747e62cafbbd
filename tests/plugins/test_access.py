# SPDX-License-Identifier: MIT
"""By which commands a person reaches the cluster of a burst."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from burst_gke.provider import GkeProvider
from burst_kind.provider import KindProvider
from burst_kind.settings import KindSettings
from burst_kube.provider import KubeProvider, KubeSettings

from burst.kits.pods import OfferTable
from burst.model.burst import BurstId
from tests.plugins.gke.build import NAMED_POOL, settings

ID = BurstId("burst-0-a1")
LABELS = (
    "--selector=burst.flux-framework.org/owner=owner-a,"
    "burst.flux-framework.org/provider=far,burst.flux-framework.org/id=burst-0-a1"
)
PODS: dict[str, Any] = {
    "image": "local.test/flux:1",
    "namespace": "bursts",
    "offers": {"nodes": OfferTable(cores=2, max_nodes=4)},
}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (
            {"name_prefix": "far"},
            "far-burst-0-a1 --project={} --location=us-central1-a",
        ),
        ({"endpoint": "private"}, "--location=us-central1-a --internal-ip"),
        ({"endpoint": "dns"}, "--location=us-central1-a --dns-endpoint"),
        (NAMED_POOL, f"get-credentials {NAMED_POOL['cluster']} "),
    ],
)
def test_of_gke_gcloud_gets_a_kubeconfig(table: dict[str, Any], words: str) -> None:
    made = settings(**table)
    line, _ = GkeProvider("far", made, "owner-a").access(ID)
    assert line.startswith("gcloud container clusters get-credentials ")
    assert words.format(made.project) in line


def test_of_kind_it_is_kind_that_does() -> None:
    known = KindSettings(**PODS, cluster="near")
    made = KindProvider("far", known, "owner-a")
    export, listing = made.access(ID)
    assert export == "kind export kubeconfig --name=near"
    where = ("--context=kind-near", "--namespace=bursts")
    assert shlex.split(listing) == ["kubectl", *where, "get", "pods", LABELS]


@pytest.mark.parametrize(
    ("table", "flags"),
    [
        ({}, []),
        (
            {"kubeconfig": "/my files/config", "context": "far"},
            ["--kubeconfig=/my files/config", "--context=far"],
        ),
    ],
)
def test_of_another_cluster_kubectl_uses_the_same_file(
    table: dict[str, Any], flags: list[str]
) -> None:
    made = KubeProvider("far", KubeSettings(**PODS, **table), "owner-a")
    (listing,) = made.access(ID)
    words = ["kubectl", *flags, "--namespace=bursts", "get", "pods", LABELS]
    assert shlex.split(listing) == words
