# SPDX-License-Identifier: MIT
"""The EKS of these tests as a provider's backend."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from burst.provider import BurstSpec, Provider
from burst.testing import Backend
from burst.testing.backend import Moment
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
