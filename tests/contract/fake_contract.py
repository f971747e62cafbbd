# SPDX-License-Identifier: MIT
"""The provider contract for FakeProvider, whose backend is in memory."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet

import pytest

from burst.provider import BurstSpec, Provider
from burst.testing import (
    Backend,
    FakeCloud,
    FakeProvider,
    FakeSettings,
    ProviderContract,
)
from burst.testing.backend import Moment
from burst.testing.contract import Count, MakeProvider
from tests.contract.example_specs import ExampleSpecs


class FakeBackend(Backend):
    """The fake cloud, and providers in it."""

    def __init__(
        self, cloud: FakeCloud, make: Callable[[str, str], FakeProvider]
    ) -> None:
        self.cloud = cloud
        self.make = make

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        self.cloud.reachable = False
        try:
            yield
        finally:
            self.cloud.reachable = True

    @contextlib.contextmanager
    def stalled(self) -> Iterator[None]:
        self.cloud.stalled = True
        try:
            yield
        finally:
            self.cloud.stalled = False

    def full(self, owner: str) -> Provider:
        self.cloud.full = True
        return self.make(owner, "fake")

    def crashing(self, owner: str, when: Moment) -> Provider:
        provider = self.make(owner, "fake")
        if when == "before":
            provider.next_provision_error = RuntimeError("the process died")
        else:
            provider.next_answer_lost = True
        return provider

    def named(self, owner: str, name: str) -> Provider:
        return self.make(owner, name)

    def kill(self, spec: BurstSpec, host: str) -> None:
        for burst in self.cloud.bursts.values():
            if burst.spec == spec:
                burst.failed[host] = "was killed"

    def end(self, spec: BurstSpec, host: str) -> None:
        for burst in self.cloud.bursts.values():
            if burst.spec.burst_id == spec.burst_id:
                burst.made.remove(host)
                burst.failed[host] = "its broker has ended"

    def public(self, spec: BurstSpec) -> str:
        paths = self.cloud.files_of(spec.burst_id)
        return "".join(self.cloud.files[path] for path in paths)

    def given(self, spec: BurstSpec) -> str:
        return self.cloud.files[f"{spec.burst_id}/broker.toml"]

    def environment(self, spec: BurstSpec) -> str:
        return "\n".join(f"{k}={v}" for k, v in self.cloud.environment.items())

    def runs(self, spec: BurstSpec) -> int:
        return self.cloud.begun.count(spec.burst_id)

    def left(self, spec: BurstSpec) -> Sequence[str]:
        return self.cloud.files_of(spec.burst_id)

    def online(self, spec: BurstSpec) -> AbstractSet[int]:
        return self.cloud.online()


class FakeContract(ExampleSpecs, ProviderContract):
    """The contract over one fake cloud a test."""

    patience = 600.0
    pause = 0.01
    programs = True
    ends_leases = True
    lease = 2.0
    kind: type[FakeProvider] = FakeProvider

    @pytest.fixture
    def cloud(self) -> FakeCloud:
        return FakeCloud(clock=time.time)

    @pytest.fixture
    def make_named(self, cloud: FakeCloud) -> Callable[[str, str], FakeProvider]:
        def make(owner: str, name: str) -> FakeProvider:
            settings = FakeSettings(modes=("joined", "isolated"))
            return self.tune(
                self.kind(name=name, owner=owner, cloud=cloud, settings=settings)
            )

        return make

    @pytest.fixture
    def make_provider(
        self, make_named: Callable[[str, str], FakeProvider]
    ) -> MakeProvider:
        return lambda owner: make_named(owner, "fake")

    @pytest.fixture
    def backend(
        self, cloud: FakeCloud, make_named: Callable[[str, str], FakeProvider]
    ) -> Backend:
        return FakeBackend(cloud, make_named)

    @pytest.fixture
    def make_interrupted(self, make_provider: MakeProvider) -> MakeProvider:
        def make(owner: str) -> Provider:
            provider = make_provider(owner)
            assert isinstance(provider, FakeProvider)
            provider.build_only = 1
            return provider

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
