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
from tests.plugins.kind.harness import Desk, open_desk


class TestKindProvider(ProviderContract):
    """The cluster is made with the first burst and deleted with the last."""

    patience = 30.0
    pause = 0.02

    @pytest.fixture
    def desk(self) -> Iterator[Desk]:
        with open_desk() as desk:
            yield desk

    @pytest.fixture
    def backend(self, desk: Desk) -> KindBackend:
        return KindBackend(desk)

    @pytest.fixture
    def make_provider(self, desk: Desk) -> MakeProvider:
        return desk.provider

    @pytest.fixture
    def make_interrupted(self, desk: Desk) -> MakeProvider:
        def make(owner: str) -> Provider:
            desk.set("create-killed")
            return desk.provider(owner)

        return make

    @pytest.fixture
    def make_spec(self, desk: Desk) -> MakeSpec:
        def make(owner: str, number: int) -> BurstSpec:
            return desk.spec(number, owner)

        return make

    @pytest.fixture
    def misconfigured(self, desk: Desk) -> Callable[[], Provider]:
        return lambda: desk.provider(kind="/no/such/kind")

    @pytest.fixture
    def count(self, desk: Desk) -> Count | None:
        return lambda spec: desk.count(spec.burst_id)


class TestKindProviderInAClusterThatIsThere(TestKindProvider):
    """Only the bursts come and go; images are loaded before the first."""

    @pytest.fixture
    def desk(self) -> Iterator[Desk]:
        with open_desk() as desk:
            (desk.path / "flux.tar").touch()
            desk.make_cluster("dev", nodes=2)
            changes: dict[str, Any] = {
                "create": False,
                "cluster": "dev",
                "images": (f"{desk.path}/flux.tar",),
            }
            desk.settings = msgspec.structs.replace(desk.settings, **changes)
            before = desk.containers()
            yield desk
            assert desk.containers() == before
            files = (path for box in before.values() for path in box.rglob("burst-*"))
            assert list(files) == []
