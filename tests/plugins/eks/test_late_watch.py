# SPDX-License-Identifier: MIT
"""What was just made is read, although watches of the pods are late."""

from __future__ import annotations

from burst_eks.provider import EksDependencies, EksProvider
from burst_eks.settings import EksSettings

from burst.kits.kube import Cluster
from burst.kits.pods import PodBursts, Tags
from tests.kits.kubeserver import api_server, cluster_of
from tests.kits.played_namespace import JOBS, PODS, let_provision
from tests.plugins.eks.account import Account, provision


def test_what_was_provisioned_is_listed(eks: Account) -> None:
    with api_server() as said:
        said.watches |= {PODS: [], JOBS: []}
        said.serve_nothing()

        def pods(_: Cluster, given: EksSettings, tags: Tags) -> PodBursts:
            return PodBursts(cluster_of(said), given, tags)

        given = EksDependencies(eks.cloud(), pods, eks.clock)
        provider = EksProvider("eks", eks.settings(namespace="jobs"), "owner-a", given)
        for _ in range(2):
            assert not provider.observe()
        assert said.watches[PODS]
        made = let_provision(said, eks.spec.burst_id)
        provision(provider, eks.spec)
        said.serve(JOBS, made)
        (found,) = provider.observe()
        assert [follower.host for follower in found.followers] == ["burst-0-0"]
        for watch in (*said.watches[PODS], *said.watches[JOBS]):
            watch.end(cut=True)
