# SPDX-License-Identifier: MIT
"""KindProvider keeps the contract: with a cluster of its own, and in another's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from burst.provider import BurstSpec, Provider
from burst.testing import ProviderContract
from burst.testing.contract import Count, MakeProvider, MakeSpec
from tests.plugins.kind.backend import KindBackend
from tests.plugins.kind.harness import KindHarness, open_desk


class TestKindProvider(ProviderContract):
    """The cluster is made with the first burst and deleted with the last."""

    patience = 600.0
    pause = 0.02

    @pytest.fixture
    def kind(self) -> Iterator[KindHarness]:
        with open_desk() as kind:
            yield kind

    @pytest.fixture
    def backend(self, kind: KindHarness) -> KindBackend:
        return KindBackend(kind)

    @pytest.fixture
    def make_provider(self, kind: KindHarness) -> MakeProvider:
        return kind.provider

    @pytest.fixture
    def make_interrupted(self, kind: KindHarness) -> MakeProvider:
        def make(owner: str) -> Provider:
            kind.set("create-killed")
            return kind.provider(owner)

        return make

    @pytest.fixture
    def make_spec(self, kind: KindHarness) -> MakeSpec:
        def make(owner: str, number: int) -> BurstSpec:
            return kind.spec(number, owner)

        return make

    @pytest.fixture
    def misconfigured(self, kind: KindHarness) -> Callable[[], Provider]:
        return kind.without_programs

    @pytest.fixture
    def count(self, kind: KindHarness) -> Count | None:
        return lambda spec: kind.count(spec.burst_id)


class TestKindProviderInAClusterThatIsThere(TestKindProvider):
    """Only the bursts come and go; images are loaded before the first."""

    @pytest.fixture
    def kind(self) -> Iterator[KindHarness]:
        with open_desk() as kind:
            (kind.path / "flux.tar").touch()
            kind.make_cluster("dev", nodes=2)
            changes: dict[str, Any] = {
                "create": False,
                "cluster": "dev",
                "images": (f"{kind.path}/flux.tar",),
            }
            kind.settings = msgspec.structs.replace(kind.settings, **changes)
            before = kind.containers()
            yield kind
            assert kind.containers() == before
            files = (path for box in before.values() for path in box.rglob("burst-*"))
            assert list(files) == []
