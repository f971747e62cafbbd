# SPDX-License-Identifier: MIT
"""FakeProvider keeps the contract, also when it is slow and eventually consistent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from burst.provider import BurstSpec, Provider
from burst.testing import (
    FakeCloud,
    FakeProvider,
    FakeSettings,
    ProviderContract,
    example_lead,
    example_spec,
)
from burst.testing.contract import Count, MakeProvider, MakeSpec


class FakeContract(ProviderContract):
    """The contract over one fake cloud a test."""

    patience = 5.0
    pause = 0.0
    programs = True
    kind: type[FakeProvider] = FakeProvider

    @pytest.fixture
    def cloud(self) -> FakeCloud:
        return FakeCloud()

    @pytest.fixture
    def make_provider(self, cloud: FakeCloud) -> MakeProvider:
        return lambda owner: self.tune(
            self.kind(
                owner=owner,
                cloud=cloud,
                settings=FakeSettings(modes=("joined", "isolated")),
            )
        )

    @pytest.fixture
    def make_interrupted(self, make_provider: MakeProvider) -> MakeProvider:
        def make(owner: str) -> Provider:
            provider = make_provider(owner)
            assert isinstance(provider, FakeProvider)
            provider.build_only = 1
            return provider

        return make

    @pytest.fixture
    def make_spec(self, tmp_path: Path) -> MakeSpec:
        def make(owner: str, number: int) -> BurstSpec:
            return example_spec(example_lead(tmp_path, owner), number, "nodes")

        return make

    @pytest.fixture
    def misconfigured(self, cloud: FakeCloud) -> Callable[[], Provider]:
        settings = FakeSettings(credentials="bad")
        return lambda: self.kind(settings=settings, cloud=cloud)

    @pytest.fixture
    def count(self, cloud: FakeCloud) -> Count | None:
        return lambda spec: cloud.count(spec.burst_id)

    def tune(self, provider: FakeProvider) -> FakeProvider:
        return provider


class TestFakeProvider(FakeContract):
    pass


class TestEventuallyConsistentFakeProvider(FakeContract):
    def tune(self, provider: FakeProvider) -> FakeProvider:
        provider.listed_after = 3
        provider.starts_after = 2
        provider.ends_after = 4
        provider.listed_still = 3
        return provider


class TestFakeProviderThatLosesAnswers(FakeContract):
    def tune(self, provider: FakeProvider) -> FakeProvider:
        provider.next_answer_lost = True
        return provider


class TestWithoutACount(FakeContract):
    @pytest.fixture
    def count(self) -> Count | None:
        return None

    def tune(self, provider: FakeProvider) -> FakeProvider:
        provider.listed_still = 3
        return provider
