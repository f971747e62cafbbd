# SPDX-License-Identifier: MIT
"""EksProvider keeps the contract, with moto's EKS on loopback."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import pytest

from burst.provider import BurstSpec, Provider
from burst.testing import Backend, ProviderContract
from burst.testing.backend import Moment
from burst.testing.contract import Count, MakeProvider
from tests.contract.example_specs import ExampleSpecs
from tests.plugins.eks.moto_eks import STOCKOUT, MotoEks
from tests.support.interrupted import Interrupted


class EksBackend(Backend):
    """What a test does to AWS, and to what runs in the cluster."""

    def __init__(self, eks: MotoEks) -> None:
        self.eks = eks

    def unreachable(self) -> contextlib.AbstractContextManager[object]:
        return self.eks.unreachable()

    @contextlib.contextmanager
    def stalled(self) -> Iterator[None]:
        self.eks.stalled = True
        yield
        self.eks.stalled = False

    def full(self, owner: str) -> Provider:
        self.eks.issues = [STOCKOUT]
        return self.eks.provider(owner)

    def crashing(self, owner: str, when: Moment) -> Provider:
        if when == "before":
            return Interrupted(self.eks.provider(owner), self.eks.unreachable)
        self.eks.cut = True
        return self.eks.provider(owner)

    def named(self, owner: str, name: str) -> Provider:
        return self.eks.provider(owner, name)

    def kill(self, spec: BurstSpec, host: str) -> None:
        self._fail(spec, host, "was killed")

    def end(self, spec: BurstSpec, host: str) -> None:
        self._fail(spec, host, "its broker has ended")

    def _fail(self, spec: BurstSpec, host: str, why: str) -> None:
        for burst in self.eks.pods.bursts.values():
            if burst.spec.burst_id == spec.burst_id:
                burst.failed[host] = why

    def given(self, spec: BurstSpec) -> str:
        given = self.eks.made[-1].given
        return given.endpoint if given else ""

    def left(self, spec: BurstSpec) -> Sequence[str]:
        return [*self.eks.groups, *map(str, self.eks.pods.bursts)]


class TestEks(ExampleSpecs, ProviderContract):
    patience = 600.0
    pause = 0.005

    @pytest.fixture
    def make_provider(self, eks: MotoEks) -> MakeProvider:
        return eks.provider

    @pytest.fixture
    def backend(self, eks: MotoEks) -> EksBackend:
        return EksBackend(eks)

    @pytest.fixture
    def make_interrupted(self, backend: Backend) -> MakeProvider:
        return lambda owner: backend.crashing(owner, "after")

    @pytest.fixture
    def misconfigured(self, eks: MotoEks) -> Callable[[], Provider]:
        return lambda: eks.provider(cluster="another")

    @pytest.fixture
    def count(self, eks: MotoEks) -> Count | None:
        def count_one(spec: BurstSpec) -> int:
            return max(eks.nodes(spec.burst_id), eks.pods.count(spec.burst_id))

        return count_one
