# SPDX-License-Identifier: MIT
"""EksProvider keeps the contract, with moto's EKS on loopback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from burst.provider import BurstSpec, Provider
from burst.testing import ProviderContract, example_lead, example_spec
from burst.testing.contract import Count, MakeProvider, MakeSpec
from tests.plugins.eks.backend import EksBackend
from tests.plugins.eks.moto_eks import MotoEks


class TestEks(ProviderContract):
    patience = 90.0
    pause = 0.005

    @pytest.fixture
    def make_provider(self, eks: MotoEks) -> MakeProvider:
        return eks.provider

    @pytest.fixture
    def backend(self, eks: MotoEks) -> EksBackend:
        return EksBackend(eks)

    @pytest.fixture
    def make_interrupted(self, eks: MotoEks) -> MakeProvider:
        def make(owner: str) -> Provider:
            eks.cut = True
            return eks.provider(owner)

        return make

    @pytest.fixture
    def make_spec(self, tmp_path: Path) -> MakeSpec:
        def make(owner: str, number: int) -> BurstSpec:
            return example_spec(example_lead(tmp_path, owner), number, "nodes")

        return make

    @pytest.fixture
    def misconfigured(self, eks: MotoEks) -> Callable[[], Provider]:
        return lambda: eks.provider(cluster="another")

    @pytest.fixture
    def count(self, eks: MotoEks) -> Count | None:
        def count_one(spec: BurstSpec) -> int:
            return max(eks.nodes(spec.burst_id), eks.pods.count(spec.burst_id))

        return count_one
